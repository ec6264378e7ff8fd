"""Incremental encoding, counting and decoding of text and ids that arrive in pieces."""
