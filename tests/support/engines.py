"""The two backends of the engine, for parametrised tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from bytepair_engine import Encoding
from bytepair_engine.backends.cores import BackendName

#: `get_encoding` with one backend.
Load = Callable[[str], Encoding]

BACKENDS: Final[tuple[BackendName, ...]] = ("reference", "native")
