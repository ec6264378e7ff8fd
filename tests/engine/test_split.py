"""Splitting keeps its laws, at once and for text in pieces; tiktoken counts."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bytepair_engine import extend_encoding, get_encoding, list_encodings
from bytepair_engine.context import stream
from bytepair_engine.context.boundaries import LEVELS, Level
from bytepair_engine.context.measure import Measure
from bytepair_engine.context.splitting import Chunk, Chunker, SplitOptions, split
from bytepair_engine.context.stream import StreamChunker
from bytepair_engine.errors import (
    BudgetTooSmall,
    InvalidOption,
    InvalidUnicode,
    PieceTooLong,
    SpecialTokenFound,
    StreamFinished,
)
from bytepair_engine.toy import toy
from hypothesis import example, given
from hypothesis import strategies as st
from support.context_api import Library, outcome
from support.context_checks import check_split
from support.context_formats import other
from support.context_laws import budgets, encodings, levels, repeated, texts
from support.oracle import oracle

options = st.builds(
    lambda most, overlap, level, fill, allow: SplitOptions(
        most, most * overlap // 100, level, fill, "all" if allow else frozenset()
    ),
    budgets.map(lambda most: most + 1),
    st.sampled_from([0, 0, 25, 50]),
    levels,
    st.sampled_from([0, 50, 100]),
    st.booleans(),
)


@pytest.mark.slow
@given(encodings, texts | repeated, options)
def test_chunks_fit_and_nothing_is_lost(name: str, text: str, options: SplitOptions) -> None:
    """Laws S1 to S6 and S8 to S11."""
    check(name, text, options)


@pytest.mark.slow
@given(encodings, texts | repeated, options)
def test_a_long_pre_token_is_looked_into(name: str, text: str, options: SplitOptions) -> None:
    """Law S5, by the core's rule for pre-tokens that are too long to try all of, on texts short
    enough to."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Measure, "near", 0)
        check(name, text, options)


def check(name: str, text: str, options: SplitOptions) -> None:
    encoding, tiktoken = get_encoding(name), oracle(name)
    if options.allowed_special:
        options = replace(options, allowed_special=frozenset(encoding.special_tokens))

    def count(part: str) -> int:
        names = set(options.allowed_special)
        return len(tiktoken.encode(part, allowed_special=names, disallowed_special=()))

    check_split(Library(encoding), text, options, count)


# After a mark, graphemes and words pair the flags differently: the text held starts with one.
@example("cl100k_base", "🇪\u0903" + "🇪" * 38 + "中", SplitOptions(8, 0, "code_point", 0), 1, False)
@given(encodings, texts | repeated, options, st.integers(1, 200), st.booleans())
def test_pieces_give_the_chunks_of_the_whole(
    name: str, text: str, options: SplitOptions, size: int, in_bytes: bool
) -> None:
    """Law S7."""
    encoding = get_encoding(name)
    expected = outcome(split(encoding, text, options))
    chunker = StreamChunker(encoding, options)
    pieces: list[str | bytes] = (
        [text.encode()[i : i + size] for i in range(0, len(text.encode()), size)]
        if in_bytes
        else [text[i : i + size] for i in range(0, len(text), size)]
    )

    def streamed() -> Iterator[Chunk]:
        try:
            for piece in pieces:
                yield from chunker.feed(piece)
            yield from chunker.finish()
        except BudgetTooSmall:
            yield from chunker.before_fault
            raise

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream, "_MORE", 1)  # so that short texts are looked at in parts too
        assert outcome(streamed()) == expected


@pytest.mark.slow
def test_the_core_finds_the_chunks_of_the_definition() -> None:
    """At every level, with all line ends and near split points, where only the core is fast."""
    encoding, rng = get_encoding("cl100k_base"), random.Random(20261126)
    parts = [
        *"\n\r\v\f\x85\u2028\u2029\t \u00e9\u2014🧠",
        "\r\n",
        "\n\n",
        " word",
        "a",
        "日本",
        "e\u0301",
    ]
    parts += ["x" * 70, "語" * 30, "1234"]
    for _ in range(100):
        text = "".join(rng.choices(rng.choices(parts, k=rng.randrange(1, 8)), k=rng.randrange(160)))
        tokens = rng.choice([8, 20, 64])
        for level in LEVELS:
            options = SplitOptions(tokens, rng.choice([0, tokens // 2]), level)
            chunker, chunks = Chunker(encoding, text, options), []
            while chunker.last_end < len(text):
                chunk = chunker.next(chunker.start, chunker.last_end)
                assert chunk is not None
                chunker.start, chunker.last_end = chunker.next_start(chunk), chunk.end
                chunks.append(chunk)
            assert list(split(encoding, text, options)) == chunks, (text, options)


def test_a_stream_gives_chunks_before_its_end_and_holds_little() -> None:
    chunker = StreamChunker(get_encoding("cl100k_base"), SplitOptions(50))
    text = "One sentence. Another one!\n\nA new paragraph here. " * 4000
    chunks, most = [], 0
    for i in range(0, len(text), 1000):
        chunks += chunker.feed(text[i : i + 1000])
        most = max(most, chunker.pending_bytes)
    assert len(chunks) > 900
    assert most < 5000
    chunks += chunker.finish()
    assert "".join(chunk.text for chunk in chunks) == text


def test_a_fault_in_a_stream_comes_after_the_chunks_before_it() -> None:
    """Law S9."""
    # An emoji has three tokens.
    chunker = StreamChunker(get_encoding("cl100k_base"), SplitOptions(1, level="code_point"))
    with pytest.raises(BudgetTooSmall) as error:
        chunker.feed("a b c d e f g h 🧠 " + "x y " * 200)
    assert [chunk.text for chunk in chunker.before_fault][:3] == ["a", " b", " c"]
    assert error.value.byte_offset == 16
    with pytest.raises(StreamFinished):
        chunker.finish()
    done = StreamChunker(get_encoding("cl100k_base"), SplitOptions(1))
    assert done.finish() == []
    with pytest.raises(StreamFinished):
        done.feed("a")


@pytest.mark.parametrize("size", [1, 40, 10_000])
@pytest.mark.parametrize("rest", [b"\xff", b"\xe6\x97", b"<|endoftext|>", b"<|endoftext|>\xff a"])
def test_faulty_text_comes_after_the_chunks_before_it(rest: bytes, size: int) -> None:
    encoding, text = get_encoding("cl100k_base"), "One two. " * 100
    data = text.encode() + rest
    chunker = StreamChunker(encoding, SplitOptions(16), disallowed_special="all")
    chunks: list[Chunk] = []

    def streamed() -> Iterator[Chunk]:
        for start in range(0, len(data), size):
            yield from chunker.feed(data[start : start + size])
        yield from chunker.finish()

    with pytest.raises((SpecialTokenFound, InvalidUnicode)) as error:
        chunks.extend(streamed())
    assert isinstance(error.value, SpecialTokenFound if b"end" in rest else InvalidUnicode)
    assert error.value.byte_offset == len(text)
    chunks += chunker.before_fault
    assert chunks == encoding.split(text, 16)[: len(chunks)]
    assert chunks[-1].end > len(text) - 50
    assert chunker.pending_bytes == 0


@pytest.mark.parametrize("rest", [b" b", b"long b", b"lon", b"", b"\xff", b"long\xff"])
def test_the_error_of_a_split_does_not_depend_on_where_a_special_token_is_cut(rest: bytes) -> None:
    """One special token is the start of another."""
    encoding = extend_encoding(get_encoding("cl100k_base"), ["<s>", "<s>long"], name="starts")
    data = b"One two. " * 100 + b"<s>" + rest
    found: set[object] = set()
    for at in range(890, len(data) + 1):
        chunker = StreamChunker(encoding, SplitOptions(16), disallowed_special="all")
        with pytest.raises((SpecialTokenFound, InvalidUnicode)) as error:
            (chunker.feed(data[:at]), chunker.feed(data[at:]), chunker.finish())
        found.add((type(error.value), error.value.args))
    assert len(found) == 1


def test_a_stream_counts_the_bytes_that_it_received_and_holds() -> None:
    chunker = StreamChunker(get_encoding("cl100k_base"), SplitOptions(4))
    chunker.feed(b"a\xc3")
    assert (chunker.bytes_consumed, chunker.pending_bytes) == (2, 2)
    chunker.feed(b"\xa9")
    assert [chunk.text for chunk in chunker.finish()] == ["aé"]
    assert (chunker.bytes_consumed, chunker.pending_bytes) == (3, 0)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cl100k_base", "o200k_base"])
@pytest.mark.parametrize(
    "unit",
    [
        "日本語の文章です。次の文。",
        "हिन्दी में ",
        "แม่น้ำ",
        "👨‍👩‍👧",
        "🇩🇪",
        "e\u0301",
        "각",
        "1. ",
        "a",
        "!",
        "\r\n",
        " ",
        "\u0301",
        "\u200d",
    ],
)
def test_a_stream_of_any_script_holds_little(name: str, unit: str) -> None:
    """Whether there are words, sentences and lines, and places from which they are known."""
    text = unit * (60_000 // len(unit.encode()))
    chunker, most = StreamChunker(get_encoding(name), SplitOptions(128)), 0
    chunks: list[Chunk] = []
    for start in range(0, len(text), 500):
        chunks += chunker.feed(text[start : start + 500])
        most = max(most, chunker.pending_bytes)
    assert most < 24 * 1024
    chunks += chunker.finish()
    assert chunks == get_encoding(name).split(text, 128)


@pytest.mark.parametrize("name", list_encodings())
@pytest.mark.parametrize(
    "text",
    [
        *(300 * unit for unit in ["e\u0301", "แม่", "aAb", "a.\u0301", "क्ष", "١ا", "漢a"]),
        "あ" + "ǅ" * 3000,
    ],
)
def test_the_text_that_may_fit_is_short(name: str, text: str) -> None:
    """All of it is tried, so a text takes linear time only if this does not grow with it."""
    fits = get_encoding(name).fits
    assert fits is not None
    found = fits.fit_start(text, 40, True, Measure.near, None)
    assert found is not None
    _, beyond, _ = found
    assert beyond is not None
    assert beyond < 300


#: Text that never decides where the chunk before it ends, and a grapheme without an end.
UNDECIDED = ["a. " + "1 " * 2000, "a." + ")]" * 2000, "e" + "\u0301\u0302" * 2000]


@pytest.mark.parametrize("unit", UNDECIDED)
def test_what_never_decides_is_an_error_after_the_chunks_before_it(unit: str) -> None:
    text, options = "One two. " * 200 + unit, SplitOptions(16)
    expected = get_encoding("cl100k_base").split(text, 16)
    for size in (100, len(text)):
        chunker = StreamChunker(get_encoding("cl100k_base"), options, max_pending_bytes=2000)
        chunks: list[Chunk] = []
        error: PieceTooLong | None = None
        try:
            for start in range(0, len(text), size):
                chunks += chunker.feed(text[start : start + size])
        except PieceTooLong as found:
            error = found
        chunks += chunker.before_fault
        assert chunks == expected[: len(chunks)]
        assert chunks[-1].end > 1700
        assert error is not None
        assert error.limit == 2000


def test_text_that_comes_to_be_decided_at_the_limit_is_no_error() -> None:
    text = "a. " + "1 " * 448 + "b\n" * 60
    chunker = StreamChunker(get_encoding("cl100k_base"), SplitOptions(16), max_pending_bytes=900)
    chunks = [*chunker.feed(text[:899]), *chunker.feed(text[899:]), *chunker.finish()]
    assert chunks == get_encoding("cl100k_base").split(text, 16)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("unit", "characters"),
    [("One two. ", 86_000_000), ("日本語。", 86_000_000), ("x", 4_000_000), (" ", 4_000_000)],
)
def test_a_huge_text_is_split_in_linear_time(unit: str, characters: int) -> None:
    """Law S8: in quadratic time it takes hours, and the test its time limit."""
    text, tiktoken = unit * (characters // len(unit)), oracle("cl100k_base")
    place = 0
    for number, chunk in enumerate(split(get_encoding("cl100k_base"), text, SplitOptions(2000))):
        assert (chunk.start, len(chunk.text)) == (place, chunk.end - place)
        if number % 10_000 == 0:
            assert chunk.text == text[place : chunk.end]
            assert chunk.count == len(tiktoken.encode_ordinary(chunk.text)) <= 2000
        place = chunk.end
    assert place == len(text)


STREAM = """
import resource, sys
from bytepair_engine import get_encoding
from bytepair_engine.context.splitting import SplitOptions
from bytepair_engine.context.stream import StreamChunker
from bytepair_engine.errors import PieceTooLong

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

unit, megabytes = sys.argv[1], int(sys.argv[2])
chunker = StreamChunker(get_encoding("cl100k_base"), SplitOptions(512, 64))
piece = unit * (50_000 // len(unit.encode()))
chunker.feed("before " * 10_000)
before = peak()
try:
    for _ in range(megabytes * 20):
        chunker.feed(piece)
except PieceTooLong as error:
    print(error.limit)
print(peak() - before)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("unit", "megabytes", "limit", "most"),
    [
        ("One sentence. Another one!\n\nA new paragraph here. ", 40, [], 1000),
        ("x", 2, [], 1000),
        ("1 ", 2, [], 1000),
        ("\u0301", 2, [], 1000),
        ("\u0301\u0302", 3, [1 << 20], 40_000),
    ],
)
def test_the_memory_of_a_stream_does_not_grow_with_the_text(
    unit: str, megabytes: int, limit: list[int], most: int
) -> None:
    """In a process of its own. It grows by at most `most` KiB: less than the text, or some times
    the `limit` where no text can be cut."""
    command = [sys.executable, "-c", STREAM, unit, str(megabytes)]
    answer = subprocess.run(command, capture_output=True, text=True, check=True, timeout=250)
    *found, grown = map(int, answer.stdout.split())
    assert found == limit
    assert grown < most


def test_bad_arguments_are_rejected() -> None:
    cases: list[dict[str, Any]] = [
        {"max_tokens": 0},
        {"max_tokens": 4, "overlap_tokens": 3},
        {"max_tokens": 4, "overlap_tokens": -1},
        {"max_tokens": 4, "level": "letter"},
        {"max_tokens": 4, "min_fill_percent": 101},
    ]
    for arguments in cases:
        with pytest.raises(InvalidOption):
            SplitOptions(**arguments)


def test_without_split_points_texts_cannot_come_in_pieces() -> None:
    with pytest.raises(InvalidOption, match="encoding"):
        StreamChunker(toy(), SplitOptions(4))


@pytest.mark.slow
def test_text_without_split_points_is_rejected_with_its_place(tmp_path: Path) -> None:
    """Also after text that a stream no longer holds."""
    encoding, _ = other("a prefix", tmp_path)
    before = "one two é " * 400
    text, options = before + "x" * 3000 + " y" * 200, SplitOptions(600)
    with pytest.raises(PieceTooLong) as streamed:
        list(Library(encoding).stream(text, options, 500))
    with pytest.raises(PieceTooLong) as whole:
        list(split(encoding, text, options))
    assert streamed.value.byte_offset == whole.value.byte_offset == len(before.encode()) - 1


def test_faulty_text_is_rejected_with_its_place() -> None:
    encoding = get_encoding("cl100k_base")
    with pytest.raises(SpecialTokenFound) as found:
        encoding.split("é<|endoftext|>", 10, disallowed_special="all")
    assert found.value.byte_offset == 2
    with pytest.raises(InvalidUnicode) as surrogate:
        encoding.split("hello\n\n" * 20 + "\ud800", 10)
    assert surrogate.value.byte_offset == 140
    chunker = StreamChunker(encoding, SplitOptions(4), disallowed_special="all")
    chunker.feed("hello <|endof")
    chunker.feed("text|>")
    with pytest.raises(SpecialTokenFound) as found:
        chunker.finish()
    assert found.value.byte_offset == 6
    held = StreamChunker(encoding, SplitOptions(10_000), max_pending_bytes=1000)
    with pytest.raises(PieceTooLong):
        held.feed("word " * 300)


@pytest.mark.parametrize("level", LEVELS)
def test_every_level_is_known_at_the_end_of_a_chunk(level: Level) -> None:
    text = "One. Two three\nfour\n\nfive e\u0301!"
    chunks = get_encoding("cl100k_base").split(text, 5, level=level)
    assert "".join(chunk.text for chunk in chunks) == text


def test_the_example_of_the_page_prints_what_it_shows(capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[2] / "docs/context.md").read_text(encoding="utf-8")
    code, shown = re.findall(r"```(?:python|text)\n(.*?)```", page, re.DOTALL)
    exec(code, {})
    assert capsys.readouterr().out == shown
