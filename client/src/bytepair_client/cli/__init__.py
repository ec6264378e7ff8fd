"""The command `bytepair`."""

from bytepair_client.cli.main import main

__all__ = ["main"]
