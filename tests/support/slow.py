"""A server that is slow, and a request that keeps it busy for about a second.

The server runs on the reference, some hundred times slower than the core: a text that took the
core a second would take longer to send than to count.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from time import thread_time
from typing import Final

import bytepair_engine

#: Of Count, for servers that are to take `slow_text`.
MAX_INPUT_BYTES: Final = 1 << 26
#: For `serve`: a server whose installation has no core.
SLOW_FLAGS: Final = (
    *("--builtin-encodings", "cl100k_base"),
    *("--max-input-bytes", str(MAX_INPUT_BYTES)),
)
WITHOUT_CORE: Final = {"PYTHONPATH": str(Path(__file__).with_name("without_core"))}
_SECONDS: Final = 1.0
#: Two and a half of the shortest such text are more than the least `max_in_flight_bytes`, however
#: slow the machine is.
_LEAST_REPEATS: Final = 24_576


@cache
def slow_text() -> str:
    """A text whose Count by cl100k_base takes the reference at least a second of CPU time here."""
    encoding = bytepair_engine.get_encoding("cl100k_base", backend="reference")
    text = "naïve 日本語 x9 " * _LEAST_REPEATS
    while True:
        started = thread_time()
        encoding.count(text)
        if thread_time() - started >= _SECONDS:
            return text
        text *= 2
        assert len(text.encode()) <= MAX_INPUT_BYTES
