"""maturin as the build backend, behind one question: is there a Rust toolchain?

Without one maturin tries to download its own, and fails in ways that do not say what is missing.
"""

from __future__ import annotations

import shutil
from typing import Any

_MISSING = """
bytepair-engine has a core in Rust, and there is no `cargo` on PATH to compile it.

Install Rust 1.91 or newer (rustup, or your distribution's packages where they are new enough) and
try again, or install a wheel that was built elsewhere, by the same version of Python on the same
kind of machine.
"""

_HOOKS = (
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
)


def __getattr__(name: str) -> Any:
    """A hook of PEP 517 or 660: maturin's own, once it is known that it can work."""
    if name not in _HOOKS:
        raise AttributeError(name)
    if shutil.which("cargo") is None:
        raise SystemExit(_MISSING)
    import maturin

    return getattr(maturin, name)
