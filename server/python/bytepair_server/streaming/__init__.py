"""Streaming RPCs: one handler, and a session for each kind of stream."""
