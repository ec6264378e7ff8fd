"""Backends: the interface, the pure-Python reference, and the selection of a backend."""
