"""Graphemes, words and sentences end where Unicode's own tests say, wherever one begins to look."""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path

import pytest
from bytepair_engine.context.boundaries import UNICODE_VERSION, Boundaries, Level

VECTORS = Path(__file__).parents[1] / "vectors" / "breaks.tsv"


def cases(level: str) -> list[list[str]]:
    lines = VECTORS.read_text(encoding="utf-8").splitlines()[2:]
    rows = (line.split("\t") for line in lines)
    return [
        ["".join(chr(int(point, 16)) for point in part.split()) for part in parts]
        for found, *parts in rows
        if found == level
    ]


@pytest.mark.parametrize(("level", "least"), [("grapheme", 700), ("word", 1900), ("sentence", 500)])
def test_boundaries_are_those_of_unicode(level: Level, least: int) -> None:
    assert UNICODE_VERSION == "17.0.0"
    found = cases(level)
    assert len(found) >= least
    for parts in found:
        text, ends = "".join(parts), list(accumulate(map(len, parts)))
        assert list(Boundaries(text).between(level, 0, len(text))) == ends, text
        # In the middle of a longer text, looked for from anywhere.
        around = f"One. Two\n{text}\nThree four. "
        start = len("One. Two\n")
        whole = list(Boundaries(around).between(level, 0, len(around)))
        for place in range(start, start + len(text) + 1):
            later = list(Boundaries(around).between(level, place, len(around)))
            assert later == [end for end in whole if end > place], text
