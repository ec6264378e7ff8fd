"""A part of a text is truncated as the whole is, or does not decide."""

from __future__ import annotations

import gc
import random
import weakref
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
from bytepair_engine import Encoding, get_encoding
from bytepair_engine.context.boundaries import LEVELS, Level
from bytepair_engine.context.truncating import truncated, truncated_part
from bytepair_engine.context.valid_ends import ValidEnds
from bytepair_engine.errors import BudgetTooSmall, InvalidOption
from hypothesis import given
from hypothesis import strategies as st
from support.context_formats import OTHERS, other
from support.context_laws import (
    JOINING_PARTS,
    MARKERS,
    PARTS,
    budgets,
    encodings,
    levels,
    repeated,
    texts,
)


@given(
    encodings,
    texts | repeated,
    st.floats(0, 1),
    budgets,
    st.sampled_from(["start", "end"]),
    levels,
    st.sampled_from(MARKERS),
)
def test_a_part_gives_what_the_whole_does(
    name: str,
    text: str,
    share: float,
    most: int,
    keep: Literal["start", "end"],
    level: Level,
    marker: str,
) -> None:
    """Law T8, unless the part does not decide."""
    check_part(get_encoding(name), text, int(share * len(text)), most, keep, level, marker)


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_a_part_gives_what_the_whole_does_in_other_formats(name: str, tmp_path: Path) -> None:
    encoding, _ = other(name, tmp_path, "native")
    rng, decided = random.Random(f"20261125 {name}"), 0
    for _ in range(150):
        few = rng.choices([*PARTS, *JOINING_PARTS], k=rng.randrange(1, 6))
        text = "".join(rng.choices(few, k=rng.randrange(40)))
        keep: Literal["start", "end"] = rng.choice(["start", "end"])
        place, level = rng.randrange(len(text) + 1), rng.choice(LEVELS)
        most, marker = rng.randrange(6), rng.choice(MARKERS)
        decided += check_part(encoding, text, place, most, keep, level, marker)
    assert decided > 10 or ValidEnds.of(encoding, frozenset()) is None


@pytest.mark.parametrize("keep", ["start", "end"])
def test_truncating_does_not_keep_an_encoding_alive(
    keep: Literal["start", "end"], tmp_path: Path
) -> None:
    encoding, _ = other("words, unknown", tmp_path, "native")
    truncated(encoding, "hello world " * 30, 9, keep=keep, marker="…")
    alive = weakref.ref(encoding)
    del encoding
    gc.collect()
    assert alive() is None


def check_part(
    encoding: Encoding,
    text: str,
    place: int,
    most: int,
    keep: Literal["start", "end"],
    level: Level,
    marker: str,
) -> bool:
    """Compare the part up to a place, or from it on, with the whole, if it decides."""
    part, before = (text[:place], 0) if keep == "start" else (text[place:], place)
    try:
        found = truncated_part(encoding, part, most, keep=keep, level=level, marker=marker)
    except BudgetTooSmall:
        with pytest.raises(BudgetTooSmall):
            truncated(encoding, text, most, keep=keep, level=level, marker=marker)
        return True
    if found is None:
        return False
    whole = truncated(encoding, text, most, keep=keep, level=level, marker=marker)
    kept = tuple((start + before, end + before) for start, end in found.kept)
    assert replace(found, kept=kept) == whole
    return True


@pytest.mark.parametrize(
    ("text", "keep", "level"),
    [
        ("One two. " + "1 2 3 4 5 6 7 8 9 " * 3 + "and more", "start", "sentence"),
        ("One two. " * 20 + "🇩🇪" * 30, "end", "grapheme"),
    ],
    ids=["a full stop", "flags"],
)
def test_a_part_does_not_decide_where_the_rest_moves_boundaries(
    text: str, keep: Literal["start", "end"], level: Level
) -> None:
    """Law T8."""
    encoding, most = get_encoding("cl100k_base"), 12
    decided = [
        check_part(encoding, text, place, most, keep, level, "n") for place in range(len(text) + 1)
    ]
    assert True in decided
    assert False in decided


@pytest.mark.parametrize("keep", ["start", "end"])
def test_a_part_of_an_endless_text_decides(keep: Literal["start", "end"]) -> None:
    encoding = get_encoding("cl100k_base")
    for unit in ("one two. ", "x", "\n", "e\u0301", "\U0001f468\u200d\U0001f469"):
        assert truncated_part(encoding, unit * 2000, 20, keep=keep) is not None, unit
        assert truncated_part(encoding, unit * 5, 20_000, keep=keep) is None
    with pytest.raises(InvalidOption, match="keep"):
        truncated_part(encoding, "a", 1, keep="both")  # type: ignore[arg-type]
