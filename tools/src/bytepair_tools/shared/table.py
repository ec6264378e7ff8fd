"""Tables for a terminal: columns as wide as what stands in them."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterator, Sequence
from typing import Final

_BETWEEN: Final = "  "


def table(
    heads: Sequence[str], rows: Sequence[Sequence[str]], *, left: Collection[int]
) -> Iterator[str]:
    """The lines of a table.

    Args:
        heads: What stands over each column.
        rows: As many cells each, of characters that show themselves.
        left: The places of the columns that start at the left; the others end at the right, as
            numbers do.
    """
    cells = [heads, *rows]
    widths = [max(map(width, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        parts = [
            cell + " " * (wide - width(cell))
            if place in left
            else " " * (wide - width(cell)) + cell
            for place, (cell, wide) in enumerate(zip(row, widths, strict=True))
        ]
        yield _BETWEEN.join(parts).rstrip()


def width(text: str) -> int:
    """How many columns a text takes: two for what is wide (UAX #11), none for a mark."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )
