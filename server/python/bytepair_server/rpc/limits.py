"""Size limits, checked before any work. Every limit is inclusive."""

from __future__ import annotations

from bytepair_server.errors import InputTooLarge


def check(field: str, size: int, limit: int, unit: str) -> None:
    """Refuse what is over a limit.

    Args:
        field: The request's field.
        size: What it has, in `unit`.
        limit: The most that is accepted.
        unit: Plural, for people: "bytes", "ids".
    Raises:
        InputTooLarge: `size` is over `limit`.
    """
    if size > limit:
        raise InputTooLarge(field, size, limit, unit)


def utf8_size(text: str) -> int:
    """The bytes of `text` in UTF-8; a look at its length if it is ASCII, a pass otherwise."""
    return len(text) if text.isascii() else len(text.encode())
