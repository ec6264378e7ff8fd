"""A request that keeps a server busy for about a second, whatever the machine and backend."""

from __future__ import annotations

from functools import cache
from time import perf_counter

import bytepair_engine

#: Of Count, for servers that are to take `slow_text`.
MAX_INPUT_BYTES = 1 << 28
_SECONDS = 1.0


@cache
def slow_text() -> str:
    """A text whose Count by cl100k_base takes at least a second here."""
    encoding = bytepair_engine.get_encoding("cl100k_base")
    text = "naïve 日本語 x9 " * 4096
    while True:
        started = perf_counter()
        encoding.count(text)
        if perf_counter() - started >= _SECONDS:
            return text
        text *= 2
        assert len(text.encode()) <= MAX_INPUT_BYTES
