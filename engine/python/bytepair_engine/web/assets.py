"""The CSS and JavaScript files of this folder, for the playground and for pages of commands.

They live here because the engine is the only common dependency of server and tools. They never
contact a server: a page passes them tokens and elements.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from typing import Final

#: Name to content: a style sheet, and JavaScript modules that import each other by these names.
#: Each module comes after its imports.
ASSETS: Final[Mapping[str, bytes]] = {
    name: (resources.files(__package__) / name).read_bytes()
    for name in (
        "tokens.css",
        "dom.js",
        "visible.js",
        "tokens.js",
        "view.js",
        "ranges.js",
        "findings.js",
        "tree.js",
    )
}
