"""Detect special tokens in text that arrives in pieces."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from bytepair_engine import Encoding


class SpecialTokenDetector:
    """Detects special tokens in a text that arrives in pieces."""

    __slots__ = ("_allowed", "_encoding", "_kept", "_tail")

    def __init__(self, encoding: Encoding, allowed: frozenset[str]) -> None:
        """Detect the special tokens that are not in `allowed`."""
        self._encoding: Final = encoding
        self._allowed: Final = allowed
        self._kept: Final = _longest(encoding) - 1
        self._tail = b""

    def finds(self, piece: str | bytes) -> bool:
        """Whether the next piece, cut anywhere, completes a special token."""
        data = self._tail + (piece if isinstance(piece, bytes) else piece.encode())
        self._tail = data[-self._kept :] if self._kept else b""
        return self._encoding.contains_special(data, allowed_special=self._allowed)


@lru_cache(64)
def _longest(encoding: Encoding) -> int:
    """The size of the longest special token in bytes, at least 1."""
    return max((len(name.encode()) for name in encoding.special_tokens), default=1)
