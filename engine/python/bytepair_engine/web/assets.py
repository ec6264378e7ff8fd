"""The files of this folder, for the playground and for pages that commands write.

They are here because server and tools depend on the engine and on nothing else in common. They
know no server: a page gives them tokens and elements.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from typing import Final

#: Name to content: a style sheet, and modules of JavaScript that import one another by these names.
#: Each comes after those that it imports.
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
