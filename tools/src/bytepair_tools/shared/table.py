"""Tables for a terminal, with columns as wide as their widest cell."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterator, Sequence
from typing import Final

_SEPARATOR: Final = "  "


def table(
    heads: Sequence[str], rows: Sequence[Sequence[str]], *, left: Collection[int]
) -> Iterator[str]:
    """Yield the lines of a table.

    Args:
        heads: The headings of the columns.
        rows: The cells of each row, as printable text.
        left: The indices of left-aligned columns; the others are right-aligned.
    """
    cells = [heads, *rows]
    widths = [max(map(width, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        parts = [
            cell + " " * (wide - width(cell))
            if column in left
            else " " * (wide - width(cell)) + cell
            for column, (cell, wide) in enumerate(zip(row, widths, strict=True))
        ]
        yield _SEPARATOR.join(parts).rstrip()


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, whose plural ends in "s"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def width(text: str) -> int:
    """Return the number of terminal columns of a text: two for a wide character (UAX #11), none
    for a combining mark."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )
