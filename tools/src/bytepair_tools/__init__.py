"""Offline commands, which use the engine and need no server."""
