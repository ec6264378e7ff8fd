"""Memory and threads that an encoding may use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from bytepair_engine.errors import InvalidOption

#: 64 MiB: the ids of some 500,000 different pre-tokens.
DEFAULT_CACHE_BYTES: Final = 1 << 26

#: More is refused as a mistake: no machine has so much memory or so many cores.
MAX_CACHE_BYTES: Final = 1 << 40
MAX_THREADS: Final = 1024


@dataclass(frozen=True)
class Resources:
    """What the native backend may take for one encoding. The ids are the same whatever it is;
    the reference takes neither.

    Attributes:
        cache_bytes: The most memory that the cache of what pre-tokens became takes, for all
            threads together, in [0, 2**40]; 0 for no cache.
        threads: The most threads that work on one large text, or one large batch, the caller's
            among them, in [0, 1024]; 0 for one for each core that the process may use.
    Raises:
        InvalidOption: One is out of range.
    """

    cache_bytes: int = DEFAULT_CACHE_BYTES
    threads: int = 0

    def __post_init__(self) -> None:
        for option, value, most in (
            ("cache_bytes", self.cache_bytes, MAX_CACHE_BYTES),
            ("threads", self.threads, MAX_THREADS),
        ):
            if not 0 <= value <= most:
                raise InvalidOption(option, f"must be 0 to {most}, and is {value}")
