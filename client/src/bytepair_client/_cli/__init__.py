"""The command `bytepair`."""

from bytepair_client._cli.main import main

__all__ = ["main"]
