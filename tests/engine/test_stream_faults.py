"""A stream that fails: the ids before the error, and the error, are the same for every cut."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from bytepair_engine import (
    BytepairError,
    Encoding,
    EncodingSpec,
    InvalidUnicode,
    PieceTooLong,
    SpecialTokenFound,
    StreamCounter,
    StreamEncoder,
    get_encoding,
    load_encoding,
)
from bytepair_engine.backends.varint import pack
from bytepair_engine.streaming import splitter as stream_splitter
from bytepair_engine.vocabulary.patterns import PATTERNS
from hypothesis import given
from hypothesis import strategies as st
from support.hard_text import HARD_CHARACTERS, HARD_PIECES
from support.splitting import counted_splitter
from support.tokenizer_json import made

#: Special tokens that overlap, are prefixes of each other, and look like ordinary text.
NAMES = ["<|a|>", "<|a|>b", "aXa", "'s", "12", "ab", "ba", "b1"]

Outcome = tuple[Any, str, tuple[Any, ...]]


@pytest.fixture(scope="module")
def with_pattern(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Encoding]:
    """Return the encoding with the tokens of r50k_base, a split pattern and the names above."""
    file = tmp_path_factory.mktemp("ranks") / "r50k_base.tiktoken"
    file.write_bytes((files("bytepair_engine") / "data" / file.name).read_bytes())
    specials = {special: 60_000 + i for i, special in enumerate(NAMES)}

    @cache
    def load(name: str) -> Encoding:
        spec = EncodingSpec(name=name, file=file, pattern=name, special_tokens=specials)
        return load_encoding(spec)

    return load


def encoded(encoding: Encoding, pieces: Sequence[Any], **options: Any) -> Outcome:
    """Return the ids, those before an error too, and the error."""
    encoder, ids = StreamEncoder(encoding, **options), []
    try:
        for piece in pieces:
            ids += encoder.feed(piece)
            assert encoder.pending_bytes <= options["max_pending_bytes"] + 3
        return ids + encoder.finish(), "", ()
    except BytepairError as error:
        assert encoder.pending_bytes == 0
        return (
            ids + encoder.before_fault,
            type(error).__name__,
            (*error.args, encoder.bytes_consumed),
        )


def counted(encoding: Encoding, pieces: Sequence[Any], **options: Any) -> Outcome:
    counter = StreamCounter(encoding, **options)
    try:
        for piece in pieces:
            counter.feed(piece)
        return counter.finish(), "", ()
    except BytepairError as error:
        return counter.count, type(error).__name__, error.args


def cut(data: Any, points: Sequence[int]) -> list[Any]:
    return [data[start:end] for start, end in pairwise([0, *sorted(points), len(data)])]


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(PATTERNS))
@given(data=st.data())
def test_the_outcome_does_not_depend_on_the_cut(
    with_pattern: Callable[[str], Encoding], name: str, data: st.DataObject
) -> None:
    pool = data.draw(st.lists(st.sampled_from(HARD_CHARACTERS + HARD_PIECES + NAMES), min_size=1))
    text = "".join(data.draw(st.lists(st.sampled_from(pool[:6]), max_size=40)))
    whole, at = text.encode(), data.draw(st.integers(0, 200))
    whole = whole[:at] + data.draw(st.sampled_from([b"", b"", b"\xff", b"\xe6\x97"])) + whole[at:]
    names = st.sets(st.sampled_from(NAMES))
    options: Any = {
        "allowed_special": data.draw(st.sampled_from(["all", ()]) | names),
        "disallowed_special": data.draw(st.sampled_from(["all", ()]) | names),
        "max_pending_bytes": data.draw(st.sampled_from([1, 2, 3, 5, 8, 16, 30])),
    }
    limited = {**options, "limit": data.draw(st.sampled_from([None, 0, 3, 10]))}
    encoding = with_pattern(name)
    ids, count = encoded(encoding, [whole], **options), counted(encoding, [whole], **limited)
    if not ids[1]:
        assert ids[0] == encoding.encode(whole.decode(), **_special(options))
    points = data.draw(st.lists(st.integers(0, len(whole)), max_size=8))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream_splitter, "_SETTLE_AFTER", data.draw(st.sampled_from([1, 3, 4096])))
        for pieces in (cut(whole, points), cut(whole, range(1, len(whole)))):
            assert encoded(encoding, pieces, **options) == ids
            assert counted(encoding, pieces, **limited) == count
        if whole == text.encode():
            assert encoded(encoding, list(text), **options) == ids


def _special(options: dict[str, Any]) -> Any:
    return {name: names for name, names in options.items() if name.endswith("_special")}


@pytest.mark.parametrize("kind", ["metaspace always, split", "spaces normalised"])
def test_the_outcome_of_a_pipeline(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "tokenizer.json"
    file.write_bytes(made(kind))
    encoding = load_encoding(EncodingSpec(name="made", file=file))
    special = min(encoding.special_tokens)
    for tail in (f"hello {special} x", "hello wor\ud800", "x" * 50):
        text = "hello world " * 4 + tail
        outcomes = [
            encoded(encoding, cut(text, range(size, len(text), size)), max_pending_bytes=30)
            for size in (1, 3, 1000)
        ]
        assert outcomes[0][1]
        assert outcomes == outcomes[:1] * 3


@pytest.mark.parametrize("end", ["", " and more"])
@pytest.mark.parametrize("pieces", [(0,), (7,), (7, 700), (3, 1000)])
def test_a_word_beyond_the_limit_is_an_error_after_the_ids_before_it(
    load: Any, pieces: tuple[int, ...], end: str
) -> None:
    encoding, text = load("cl100k_base"), "hello, " + "a" * 1500 + end
    encoder = StreamEncoder(encoding, max_pending_bytes=1000)
    packed: list[bytes] = []
    with pytest.raises(PieceTooLong) as caught:
        packed.extend(map(encoder.feed_packed, cut(text, pieces)))
    assert (caught.value.limit, caught.value.byte_offset) == (1000, 6)
    assert b"".join([*packed, encoder.before_fault]) == pack(encoding.encode("hello,"))
    assert (encoder.bytes_consumed, encoder.pending_bytes) == (6, 0)
    counter = StreamCounter(encoding, limit=1, max_pending_bytes=1000)
    for piece in cut(text, pieces):
        counter.feed(piece)
    assert counter.finish() == 2  # the rest is not read


@pytest.mark.parametrize(
    ("text", "error", "before"),
    [
        (b"hello world <|endoftext|> x", SpecialTokenFound, "hello world "),
        (b"hello world <|endoftext|>", SpecialTokenFound, "hello world "),
        (b"hello world \xff", InvalidUnicode, "hello world"),
        (b"hello wor\xe6\x97", InvalidUnicode, "hello"),
        ("hello wor\ud800", InvalidUnicode, "hello"),
        ("hello <|endoftext|> \ud800", SpecialTokenFound, "hello "),
    ],
)
def test_the_ids_before_an_error_are_kept(
    load: Any, text: Any, error: type[Exception], before: str
) -> None:
    encoding = load("cl100k_base")
    outcome = encoded(encoding, [text], max_pending_bytes=1000)
    assert (outcome[:2], outcome[2][-1]) == (
        (encoding.encode(before), error.__name__),
        len(before),
    )


@pytest.mark.parametrize("limit", [100, 2000])
def test_a_piece_beyond_the_limit_is_searched_as_a_whole_only_where_needed(limit: int) -> None:
    for unit, most in (("hello wörld ", 0), ("1", 3)):
        splitter, searched = counted_splitter(limit)
        text = unit * (60_000 // len(unit))
        assert splitter.feed(text) + splitter.finish() == text
        assert sum(searched) <= most * len(text)


def test_numbers_after_a_word_are_no_longer_than_the_limit() -> None:
    """Of two rules the first one ends in front of the numbers."""
    encoder = StreamEncoder(get_encoding("cl100k_base"), max_pending_bytes=100)
    encoder.feed("a" + "1" * 5000)
    assert encoder.pending_bytes <= 100
