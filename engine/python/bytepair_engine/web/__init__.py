"""Style and modules of pages that show tokens: the server's playground, and `bytepair explain`."""

from bytepair_engine.web.assets import ASSETS

__all__ = ["ASSETS"]
