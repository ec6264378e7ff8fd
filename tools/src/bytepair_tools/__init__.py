"""Offline commands over the engine: they need no server."""
