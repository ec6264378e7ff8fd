"""Truncation keeps its laws on every text, level and number of tokens; tiktoken counts.
test_context_laws.py says which law is held where."""

from __future__ import annotations

import itertools
import random
import re
from pathlib import Path
from typing import Literal

import pytest
from bytepair_engine import get_encoding, list_encodings
from bytepair_engine.context.boundaries import Level
from bytepair_engine.context.measure import Measure
from bytepair_engine.context.truncating import truncated
from bytepair_engine.context.truncation_search import Keep
from bytepair_engine.errors import (
    BudgetTooSmall,
    InvalidOption,
    InvalidUnicode,
    PieceTooLong,
    SpecialTokenFound,
)
from bytepair_engine.toy import toy
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.context_api import KEEPS, Cut, Library
from support.context_checks import check_truncation
from support.context_formats import other
from support.context_laws import (
    JOINING_PARTS,
    MARKERS,
    budgets,
    encodings,
    levels,
    repeated,
    texts,
)
from support.engines import BACKENDS
from support.oracle import oracle


@pytest.mark.slow
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
@example("cl100k_base", "<|endoftext|>" * 2, 1, "start", "code_point", " …", True, 0)
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
    """Laws T1 to T7."""
    check(name, text, most, keep, level, marker, allow, percent)


@pytest.mark.slow
@given(
    encodings,
    repeated,
    budgets,
    st.sampled_from(["start", "end"]),
    levels,
    st.sampled_from(MARKERS),
)
def test_a_long_pre_token_is_looked_into(
    name: str, text: str, most: int, keep: Literal["start", "end"], level: Level, marker: str
) -> None:
    """Law T5, by the core's rule for pre-tokens that are too long to try all of, on texts short
    enough to."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Measure, "near", 0)
        # Short texts are easy without special tokens, and more places are tried beside a marker.
        check(name, text, most, keep, level, marker, True)


@pytest.mark.slow
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
    """Law T5."""
    few = rng.choices(JOINING_PARTS, k=rng.randrange(2, 8))
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
    """Laws T1 and T5."""
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
@pytest.mark.parametrize(
    ("unit", "characters"),
    [("One two. ", 86_000_000), ("日本語。", 86_000_000), ("x", 86_000_000), (" ", 4_000_000)],
)
def test_a_huge_text_is_cut(unit: str, characters: int) -> None:
    """Laws T1 and T5."""
    encoding, tiktoken = get_encoding("cl100k_base"), oracle("cl100k_base")
    text = unit * (characters // len(unit))
    for keep in KEEPS:
        found = truncated(encoding, text, 20, keep=keep)
        assert found.count == len(tiktoken.encode_ordinary(found.text)) <= 20
        assert len(found.text) == sum(end - start for start, end in found.kept)
        longer = text[: len(found.text) + 1] if keep == "start" else text[-len(found.text) - 1 :]
        assert keep == "both" or len(tiktoken.encode_ordinary(longer)) > 20


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
    encoding, tiktoken = get_encoding(name), oracle(name)
    names = frozenset(encoding.special_tokens if allow else ())

    def count(part: str) -> int:
        return len(tiktoken.encode(part, allowed_special=set(names), disallowed_special=()))

    cut = Cut(most, keep, level, marker, percent, names)
    check_truncation(Library(encoding), text, cut, count)


@pytest.mark.parametrize("name", list_encodings())
def test_a_start_is_found_without_reading_the_rest(name: str) -> None:
    """Law T8."""
    encoding = get_encoding(name)
    # The lone surrogate far behind would be an error if it were read.
    text = "one two three " * 1000 + "x" * 10_000_000 + "\ud800"
    assert encoding.count(encoding.truncate(text, 100)) == 100


@pytest.mark.slow
@pytest.mark.parametrize("name", list_encodings())
def test_a_marker_may_complete_a_token(name: str) -> None:
    """Law T5, of text that fits only beside the marker, as one token with it."""
    encoding, rng = get_encoding(name), random.Random(f"20261126 {name}")
    found = 0
    while found < 40:
        token = encoding.decode(
            [rng.randrange(1000, 100_000 if encoding.n_vocab > 1e5 else 40_000)]
        )
        at = rng.randrange(1, max(2, len(token)))
        head, tail = token[:at], token[at:]
        if not tail.isalpha() or encoding.count(token) > 1 or encoding.count(tail) < 2:
            continue
        found += 1
        filler = rng.choice(["1", "!1 ", "zz1", "é the1", "\n"])
        check(name, filler + tail, 1, "end", "code_point", head, False)
        check(name, head + rng.choice(["1", " z", "!"]), 1, "start", "code_point", tail, False)
        check(name, f"{head}{filler}x{filler}{tail}", 2, "both", "code_point", "", False)


def test_bad_arguments_are_rejected() -> None:
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


def test_a_lone_surrogate_beside_a_possible_split_point_is_rejected(tmp_path: Path) -> None:
    """Split points of a pipeline are searched in text that was not counted yet."""
    encoding, _ = other("llama", tmp_path)
    for place in range(100):
        text = ("ab " * place)[:place] + "\ud800" + " ab" * 50
        for method in (encoding.truncate, encoding.split):
            with pytest.raises(InvalidUnicode) as found:
                method(text, 3)
            assert found.value.byte_offset == place


def test_without_split_points_short_texts_are_cut_and_long_ones_are_errors() -> None:
    """Of a pattern of their own: for a text to which nothing adds up, everything is tried."""
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


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cl100k_base", "o200k_base"])
@pytest.mark.parametrize("unit", ["a", " ", "日本", "\u0301", "word ", "<|endof"])
def test_allowed_special_tokens_leave_other_text_as_it_is(name: str, unit: str) -> None:
    """Law T5, also of text without split points; and of such text around special tokens."""
    encoding = get_encoding(name)
    text = unit * (20_000 // len(unit))
    allowed = {"<|endoftext|>", "<|endofprompt|>"}
    for keep in ("start", "end"):
        for most in (4, 300):
            kept = encoding.truncate(text, most, keep=keep)
            assert encoding.truncate(text, most, keep=keep, allowed_special=allowed) == kept
            before, after = text + "<|endoftext|>", "<|endoftext|>" + text
            glued = before + text[:50] + after
            found = encoding.truncate(glued, most + 300, keep=keep, allowed_special=allowed)
            assert encoding.count(found, allowed_special=allowed) <= most + 300
            alone = encoding.truncate(text, most + 300, keep=keep)
            assert found == alone or len(text) < len(found)
    chunks = encoding.split(text, 100, overlap_tokens=7)
    assert encoding.split(text, 100, overlap_tokens=7, allowed_special=allowed) == chunks


def test_no_word_ends_where_the_core_stops_to_split() -> None:
    """Law T5, of more long words than it splits at once; beside a special token it searches
    otherwise."""
    encoding = get_encoding("cl100k_base")
    text = "".join(" wörterbuchverzeichnis" + "x" * (n % 37) for n in range(4000))
    for most in (3000, 6000, 9000):
        kept = encoding.truncate(text, most)
        assert kept == encoding.truncate(text, most, allowed_special={"<|endoftext|>"})


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cl100k_base", "o200k_base"])
@pytest.mark.parametrize(
    "unit", ["a", " ", "日本", "\u0301", "<|endof", "a" * 400 + "<|endoftext|>"]
)
@pytest.mark.parametrize(
    "marker",
    ["", "a", " [… 12 characters …] ", "é" * 100],
    ids=["none", "letter", "sentence", "long"],
)
def test_beside_other_text_the_longest_is_kept(name: str, unit: str, marker: str) -> None:
    """Law T5 beside a marker, and for the end behind the start, in text without split points."""
    encoding, allowed = get_encoding(name), {"<|endoftext|>"}
    text = unit * (20_000 // len(unit))

    def fits(start: int, end: int) -> bool:
        joined = text[:start] + marker + text[end:]
        return encoding.count(joined, allowed_special=allowed) <= budget

    least = encoding.count(marker)
    names = [match.span() for match in re.finditer(r"<\|endoftext\|>", text)]
    for keep, more in itertools.product(KEEPS, (3, 150, 600)):
        budget = least + more
        found = truncated(
            encoding,
            text,
            budget,
            keep=keep,
            level="code_point",
            marker=marker,
            allowed_special=allowed,
        )
        if not found.truncated:
            continue
        start = max((end for start, end in found.kept if start == 0), default=0)
        end = min((start for start, end in found.kept if end == len(text)), default=len(text))
        assert fits(start, end)
        for step in range(1, min(200, end - start)):
            longer = (start + step, end) if keep == "start" else (start, end - step)
            if not any(low < place < high for place in longer for low, high in names):
                assert not fits(*longer)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["native", "reference"])
def test_joined_parts_make_no_special_token(backend: Literal["native", "reference"]) -> None:
    """Law T7, where a split point of the start that is kept lies inside a name."""
    encoding = get_encoding("o200k_harmony", backend=backend)
    name, allowed = "<|reserved_200111|>", "<|reserved_200156|>"
    text = f"{name} \r\n語{allowed}|>{name}{name} the thefunctio<|endof<|endof the"
    cut = truncated(encoding, text, 37, keep="both", level="word", allowed_special={allowed})
    (_, end), _ = cut.kept
    starts = (at for at in range(len(cut.text)) if cut.text.startswith(name, at))
    assert not any(at < end < at + len(name) for at in starts)


@pytest.mark.parametrize("option", ["allowed_special", "disallowed_special"])
def test_one_name_in_place_of_a_collection_is_rejected(option: str) -> None:
    for method in ("truncate", "split"):
        for value, error in (("<|endoftext|>", InvalidOption), (5, TypeError)):
            with pytest.raises(error, match=option):
                getattr(get_encoding("cl100k_base"), method)("a<|endoftext|>", 2, **{option: value})
