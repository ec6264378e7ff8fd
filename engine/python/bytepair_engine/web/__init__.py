"""CSS and JavaScript of pages that show tokens: the playground and `bytepair explain --html`."""

from bytepair_engine.web.assets import ASSETS

__all__ = ["ASSETS"]
