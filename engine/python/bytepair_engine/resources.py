"""Limits of the memory and the threads of an encoding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from bytepair_engine.errors import InvalidOption, check_least

#: 64 MiB: the ids of some 500,000 distinct pre-tokens.
DEFAULT_CACHE_BYTES: Final = 1 << 26

#: Larger values are rejected as mistakes: no machine has as much memory or as many cores.
MAX_CACHE_BYTES: Final = 1 << 40
MAX_THREADS: Final = 1024


@dataclass(frozen=True)
class Resources:
    """Limits of memory and threads for one encoding on the native backend.

    They do not change the ids. The reference has no cache and one thread.

    Attributes:
        cache_bytes: Maximum memory of the pre-token cache, shared by all threads, in [0, 2**40];
            0 for no cache.
        threads: Maximum number of threads for one large text or batch, including the caller's, in
            [0, 1024]; 0 for one per core that the process may use. Only batches use
            several if the `splitter` of the encoding is "regex", and nothing does for a pipeline.
    Raises:
        InvalidOption: A value is out of range.
    """

    cache_bytes: int = DEFAULT_CACHE_BYTES
    threads: int = 0

    def __post_init__(self) -> None:
        for option, value, maximum in (
            ("cache_bytes", self.cache_bytes, MAX_CACHE_BYTES),
            ("threads", self.threads, MAX_THREADS),
        ):
            check_least(option, value, 0)
            if value > maximum:
                raise InvalidOption(option, f"must be 0 to {maximum}, not {value}")
