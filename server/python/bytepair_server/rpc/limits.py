"""Size limits, checked before any work. Every limit is inclusive."""

from __future__ import annotations

from bytepair_server.errors import InputTooLarge


def check(field: str, size: int, limit: int, unit: str) -> None:
    """Check a size against its limit.

    Args:
        field: The request's field.
        size: Its size in `unit`.
        limit: Maximum size.
        unit: The unit, plural, for people: "bytes", "ids".
    Raises:
        InputTooLarge: `size` exceeds `limit`.
    """
    if size > limit:
        raise InputTooLarge(field, size, limit, unit)
