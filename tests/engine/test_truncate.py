"""Truncation keeps its laws on every text, level and number of tokens; tiktoken counts.

    law                                     test
    T1 to T7  fits, whole, longest, again   test_the_longest_that_fits_is_kept, test_awkward_texts
    T8  reads no more than it needs         test_a_start_is_found_without_reading_the_rest
    T9  more tokens never keep less         test_more_tokens_never_keep_less_at_the_same_level

Other formats: test_context_formats.py. Through the server: tests/server/test_context.py.
"""

from __future__ import annotations

import random
from typing import Literal

import pytest
from bytepair_engine import get_encoding
from bytepair_engine.backends.cores import BackendName
from bytepair_engine.context.boundaries import LEVELS, Level
from bytepair_engine.context.measure import Measure
from bytepair_engine.context.truncating import Keep, truncated
from bytepair_engine.errors import (
    BudgetTooSmall,
    InvalidOption,
    InvalidUnicode,
    PieceTooLong,
    SpecialTokenFound,
)
from bytepair_engine.toy import toy
from hypothesis import given, settings
from hypothesis import strategies as st
from support.context_laws import (
    AWKWARD,
    budgets,
    encodings,
    inside_special,
    levels,
    longest,
    repeated,
    texts,
)
from support.engines import BACKENDS
from support.oracle import oracle

KEEPS: list[Keep] = ["start", "end", "both"]
MARKERS = ["", " …", "n", "[cut]"]
PARTS = [" the", " word", ". A", "! ", "\n", "\r\n", "\n \n", "  ", "don't", "1234", "Ā", "🧠"]
PARTS += ["🇩🇪", "👨\u200d👩", "क\u094dष", "日本語。", "แม่", "\u3042A", "functio", "\u0301", "|>"]


@given(
    encodings,
    texts | repeated,
    budgets,
    st.sampled_from(KEEPS),
    levels,
    st.sampled_from(MARKERS),
    st.booleans(),
    st.sampled_from([0, 30, 50, 100]),
)
def test_the_longest_that_fits_is_kept(
    name: str,
    text: str,
    most: int,
    keep: Keep,
    level: Level,
    marker: str,
    allow: bool,
    percent: int,
) -> None:
    check(name, text, most, keep, level, marker, allow, percent)


@given(
    encodings,
    repeated,
    budgets,
    st.sampled_from(["start", "end"]),
    levels,
    st.sampled_from(MARKERS[1:]),  # without one, short texts are easy
)
def test_a_long_pre_token_is_looked_into(
    name: str, text: str, most: int, keep: Literal["start", "end"], level: Level, marker: str
) -> None:
    """The core's rule for pre-tokens that are too long to try all of, on texts short enough to."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Measure, "near", 0)
        check(name, text, most, keep, level, marker, False)


@settings(max_examples=40)
@given(
    st.randoms(use_true_random=False),
    st.integers(0, 8),
    st.sampled_from(["start", "end"]),
    levels,
)
def test_what_the_core_finds_in_a_long_text_is_what_the_definition_finds(
    rng: random.Random, most: int, keep: Literal["start", "end"], level: Level
) -> None:
    few = rng.choices(PARTS, k=rng.randrange(2, 8))
    text = "".join(rng.choices(few, k=200))
    found = [
        truncated(get_encoding("cl100k_base", backend=backend), text, most, keep=keep, level=level)
        for backend in BACKENDS
    ]
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "text", [" " * 5000, "x" * 5000, "\u0301" * 3000, "\u3042A" * 2000, "1" * 5000, "\n!" * 3000]
)
def test_endless_texts_are_cut_where_the_definition_says(text: str) -> None:
    encoding = get_encoding("o200k_base")
    start = encoding.truncate(text, 20)
    longer = range(len(start) + 1, len(start) + 200)
    assert encoding.count(start) <= 20
    assert all(encoding.count(text[:end]) > 20 for end in longer)
    end = encoding.truncate(text, 20, keep="end")
    longer = range(len(end) + 1, len(end) + 200)
    assert encoding.count(end) <= 20
    assert all(encoding.count(text[-length:]) > 20 for length in longer)


@pytest.mark.slow
@pytest.mark.parametrize("text", AWKWARD)
@pytest.mark.parametrize("keep", KEEPS)
def test_awkward_texts(text: str, keep: Keep) -> None:
    for name in ("cl100k_base", "o200k_base"):
        for most in (0, 1, 2, 3, 20):
            for level in LEVELS:
                check(name, text, most, keep, level, "", False)


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS)
@given(
    st.sampled_from(["r50k_base", "cl100k_base", "o200k_base"]),
    texts | repeated,
    st.sampled_from(["start", "end"]),
    levels,
)
@settings(max_examples=30)
def test_more_tokens_never_keep_less_at_the_same_level(
    backend: BackendName, name: str, text: str, keep: Literal["start", "end"], level: Level
) -> None:
    """Law T9, by its own words. Budgets 0 to 3 fall back to finer levels most often."""
    encoding = get_encoding(name, backend=backend)
    most: dict[Level | None, int] = {}
    for budget in (0, 1, 2, 3, 5, 9, 14, 40):
        found = truncated(encoding, text, budget, keep=keep, level=level)
        kept = sum(end - start for start, end in found.kept)
        assert found.level is not None or kept == len(text)
        assert kept >= most.get(found.level, 0)
        most[found.level] = kept


def check(
    name: str,
    text: str,
    most: int,
    keep: Keep,
    level: Level,
    marker: str,
    allow: bool,
    percent: int = 50,
) -> None:
    """Laws T1 to T7."""
    encoding, tiktoken = get_encoding(name), oracle(name)
    names = sorted(encoding.special_tokens) if allow else []
    allowed = "all" if allow else frozenset[str]()

    def count(part: str) -> int:
        return len(tiktoken.encode(part, allowed_special=set(names), disallowed_special=()))

    try:
        result = truncated(
            encoding,
            text,
            most,
            keep=keep,
            level=level,
            marker=marker,
            start_percent=percent,
            allowed_special=allowed,
        )
    except BudgetTooSmall as error:
        needed = error.needed
    else:
        needed = 0
    if needed:
        assert count(text) > most
        assert needed == count(marker) > most
        return
    assert result.count == count(result.text) <= most
    assert result.truncated == (count(text) > most)
    kept = [text[start:end] for start, end in result.kept]
    if not result.truncated:
        assert result.text == text
        return
    again = encoding.truncate(
        result.text, most, keep=keep, level=level, marker=marker, allowed_special=allowed
    )
    assert again == result.text
    joins = sorted(encoding.special_tokens)

    def whole(text: str, joins_at: int) -> bool:
        return joins_at not in inside_special(text, joins)

    forbidden = inside_special(text, names)
    share = (most - count(marker)) * percent // 100 if keep == "both" else None
    first: int | None = 0
    if keep != "end":
        first = longest(
            text,
            level,
            lambda p: (
                (share is None or count(text[:p]) <= share)
                and count(text[:p] + marker) <= most
                and whole(text[:p] + marker, p)
            ),
            forbidden,
            last=True,
        )
    head = text[: first or 0] + marker
    last: int | None = None
    if keep != "start":
        last = longest(
            text,
            level,
            lambda p: (
                p > (first or 0)
                and count(head + text[p:]) <= most
                and whole(head + text[p:], len(head))
            ),
            forbidden,
            last=False,
        )
    assert result.text == head + (text[last:] if last is not None else "")
    assert kept == [part for part in (text[: first or 0], text[last:] if last else "") if part]


def test_a_start_is_found_without_reading_the_rest() -> None:
    encoding = get_encoding("cl100k_base")
    # The lone surrogate far behind would be an error if it were read.
    text = "one two three " * 1000 + "x" * 10_000_000 + "\ud800"
    assert encoding.count(encoding.truncate(text, 100)) == 100


def test_a_template_counts() -> None:
    encoding = get_encoding("cl100k_base")
    assert truncated(encoding, "one two three", 2, add_special_tokens=True).count == 2


def test_bad_arguments_are_refused() -> None:
    encoding = get_encoding("cl100k_base")
    for arguments in (
        {"max_tokens": -1},
        {"keep": "middle"},
        {"level": "letter"},
        {"start_percent": 101},
        {"marker": "<|endoftext|>"},
    ):
        with pytest.raises(InvalidOption):
            truncated(encoding, "a", **{"max_tokens": 1, **arguments})  # type: ignore[arg-type]
    with pytest.raises(SpecialTokenFound) as found:
        truncated(encoding, "é<|endoftext|>", 1, disallowed_special="all")
    assert found.value.byte_offset == 2
    with pytest.raises(InvalidUnicode) as surrogate:
        truncated(encoding, "hello world " + "\ud800", 100)
    assert surrogate.value.byte_offset == 12
    with pytest.raises(BudgetTooSmall):
        truncated(encoding, "one two three", 1, marker="a b c d")


def test_without_split_points_short_texts_are_cut_and_long_ones_are_errors() -> None:
    """Of other patterns and formats: for a text to which nothing adds up, everything is tried."""
    encoding = toy()
    text = "aab " * 20
    kept = encoding.truncate(text, 9)
    assert encoding.count(kept) <= 9
    longer = range(len(kept) + 1, len(text))
    assert all(encoding.count(text[:end]) > 9 for end in longer)
    long = "ab " * 800
    for keep in KEEPS:
        assert encoding.truncate(long, 2400, keep=keep) == long
        assert encoding.count(encoding.truncate(long, 9, keep=keep)) == 9
        with pytest.raises(PieceTooLong):
            encoding.truncate(long, 1000, keep=keep)
