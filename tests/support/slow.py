"""A slow server, and a request that keeps it busy for about a second.

The server runs on the reference, some hundred times slower than the core: a text that took the core
a second would take longer to send than to count.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from time import thread_time
from typing import Final

import bytepair_engine

#: The setting of servers that have to accept `slow_text`.
MAX_INPUT_BYTES: Final = 1 << 26
#: Arguments of `serve` for a server without the core.
SLOW_FLAGS: Final = (
    *("--builtin-encodings", "cl100k_base"),
    *("--max-input-bytes", str(MAX_INPUT_BYTES)),
)
WITHOUT_CORE: Final = {"PYTHONPATH": str(Path(__file__).with_name("without_core"))}
_SECONDS: Final = 1.0
#: At least this many, so that two and a half such texts exceed the smallest `max_in_flight_bytes`,
#: however slow the machine is.
_MIN_REPEATS: Final = 24_576


@cache
def slow_text() -> str:
    """Return a text that the reference needs at least a second of CPU time to count here."""
    encoding = bytepair_engine.get_encoding("cl100k_base", backend="reference")
    text = "naïve 日本語 x9 " * _MIN_REPEATS
    while True:
        started = thread_time()
        encoding.count(text)
        if thread_time() - started >= _SECONDS:
            return text
        text *= 2
        assert len(text.encode()) <= MAX_INPUT_BYTES
