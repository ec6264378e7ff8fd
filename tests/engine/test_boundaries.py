"""Graphemes, words and sentences end where Unicode's own tests say, wherever one begins to look."""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path

import pytest
from bytepair_engine.context.boundaries import (
    LEVELS,
    UNICODE_VERSION,
    Boundaries,
    Level,
    stable_from,
    stable_until,
)
from hypothesis import given
from hypothesis import strategies as st

#: One or more for each property that a rule names, and letters that are pictographs.
HARD = [
    *(
        "a",
        "B",
        "ǅ",
        "ʰ",
        "1",
        "٣",
        " ",
        "\u3000",
        "\t",
        "\r",
        "\n",
        "\x85",
        "\u2028",
        "\u200b",
        "-",
        "$",
    ),
    *(
        ".",
        "\u2024",
        "!",
        "。",
        ",",
        ":",
        "·",
        "'",
        '"',
        ")",
        "»",
        "_",
        "ア",
        "ﾞ",
        "각",
        "\u1100",
        "\u1161",
    ),
    *("\u0301", "\u200d", "\u200c", "\xad", "\u0600", "\u0903", "क", "\u094d", "ष", "ำ", "א", "״"),
    *("👩", "🏽", "🇩", "\ufe0f", "\U000e0061", "ℹ", "Ⓜ", "©", "\u0378"),
]
hard = (
    st.lists(st.sampled_from(HARD), min_size=1, max_size=4)
    .flatmap(lambda few: st.lists(st.sampled_from(few) | st.sampled_from(HARD)))
    .map("".join)
)

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


@given(hard, hard, st.sampled_from(["grapheme", "word", "sentence"]))
def test_no_following_text_changes_a_stable_boundary(text: str, more: str, level: Level) -> None:
    known = stable_until(text)
    found = Boundaries(text).between(level, 0, known)
    assert found == Boundaries(text + more).between(level, 0, known)


@given(hard, hard, st.sampled_from(LEVELS))
def test_no_preceding_text_changes_a_stable_boundary(more: str, text: str, level: Level) -> None:
    first, size = stable_from(text), len(more)
    found = Boundaries(more + text).between(level, size + first, size + len(text))
    assert [end - size for end in found] == list(Boundaries(text).between(level, first, len(text)))


@given(hard, st.sampled_from(["grapheme", "word", "sentence"]))
def test_no_text_changes_what_comes_after_a_restart(text: str, level: Level) -> None:
    whole = Boundaries(text)
    for place in range(len(text)):
        start = whole.restart(level, place)
        assert start <= place
        rest = [start + end for end in Boundaries(text[start:]).between(level, 0, len(text))]
        assert rest == [end for end in whole.between(level, 0, len(text)) if end > start]


@pytest.mark.parametrize("follows", ["א", "b"])
def test_what_follows_many_full_stops_and_closers_is_looked_for_once(follows: str) -> None:
    """Looked for at each of them it takes minutes, and the test its time limit."""
    text = "a." + 200_000 * ")]" + follows
    expected = [len(text) - 1, len(text)] if follows == "א" else [len(text)]
    assert list(Boundaries(text).between("sentence", 0, len(text))) == expected
