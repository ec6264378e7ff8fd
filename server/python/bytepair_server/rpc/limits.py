"""Size limits, checked before any work. Every limit is inclusive."""

from __future__ import annotations

from bytepair_server.errors import InputTooLarge


def check(field: str, size: int, limit: int, unit: str) -> None:
    """Raise InputTooLarge if the size of a request's field exceeds `limit`. Both are in `unit`,
    plural, for people: "bytes", "ids"."""
    if size > limit:
        raise InputTooLarge(field, size, limit, unit)
