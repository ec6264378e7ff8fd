"""Unary RPCs: from a request's bytes to the bytes of its answer, or to a status."""
