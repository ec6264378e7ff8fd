"""The licences that packages of the image may have, and the packages that have another.

For crates, cargo-deny checks the same list in engine/deny.toml in more detail, if it is installed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

#: SPDX ids of licences that permit use and distribution within a program of any licence.
ALLOWED: Final = frozenset(
    {
        *(
            "Apache-2.0",
            "Apache-2.0 WITH LLVM-exception",
            "BSD-2-Clause",
            "BSD-3-Clause",
            "CNRI-Python",
            "ISC",
            "MIT",
            "MIT-0",
        ),
        *("PSF-2.0", "Python-2.0", "Unicode-3.0", "Zlib"),
    }
)

#: SPDX ids by what packages write instead, in their metadata or as a classifier.
_WRITTEN: Final = {
    "License :: OSI Approved :: Apache Software License": "Apache-2.0",
    "License :: OSI Approved :: MIT License": "MIT",
    "Apache-2.0 / MIT": "Apache-2.0 OR MIT",  # as cargo allowed it before SPDX
}
#: A classifier that several licences share.
_VAGUE: Final = "License :: OSI Approved :: BSD License"
#: Licences of packages whose metadata name none, from their licence files.
_UNSAID: Final = {"protobuf": ["BSD-3-Clause"], "Jinja2": ["BSD-3-Clause"]}


def rejected(bom: dict[str, Any]) -> Iterator[str]:
    """The components of a CycloneDX bill of materials whose licence is not allowed.

    Args:
        bom: The document.
    Yields:
        One line each: name, version and what it says of its licence.
    """
    for component in bom["components"]:
        stated = [_stated(entry) for entry in component.get("licenses", [])]
        if stated in ([], [_VAGUE]):
            stated = _UNSAID.get(component["name"], stated)
        if not stated or not all(is_allowed(name) for name in stated):
            said = ", ".join(stated) or "nothing"
            yield f"{component['name']} {component.get('version', '')}: licence: {said}"


def _stated(entry: dict[str, Any]) -> str:
    licence = entry.get("license", {})
    return str(entry.get("expression") or licence.get("id") or licence.get("name") or "")


def is_allowed(stated: str) -> bool:
    """Whether a licence, as a package states it, is allowed.

    Args:
        stated: An SPDX expression, or what `_WRITTEN` knows; "" for nothing.
    """
    names = re.split(r" AND | OR ", _WRITTEN.get(stated, stated))
    allowed = [name.strip("() ") in ALLOWED for name in names]
    # One of "A OR B" is enough. If an expression has any AND, all must be allowed: this rejects
    # some valid expressions, and accepts no invalid one.
    return all(allowed) if " AND " in stated else any(allowed)
