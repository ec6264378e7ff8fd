"""Streamed encoding: the ids equal one-shot encoding, for every cut, encoding, special token and
policy."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from bytepair_engine import (
    Encoding,
    EncodingSpec,
    InvalidOption,
    InvalidUnicode,
    SpecialTokenFound,
    StreamCounter,
    StreamDecoder,
    StreamEncoder,
    StreamFinished,
    can_stream,
    extend_encoding,
    get_encoding,
    list_encodings,
    load_encoding,
)
from bytepair_engine.backends.varint import pack
from bytepair_engine.context.splitting import SplitOptions
from bytepair_engine.context.stream import StreamChunker
from bytepair_engine.streaming import splitter as stream_splitter
from bytepair_engine.toy import toy
from hypothesis import given
from hypothesis import strategies as st
from support.hard_text import HARD_CHARACTERS, HARD_PIECES
from support.pieces import cut, stream

BACKENDS = ("reference", "native")

#: Special tokens that overlap, are prefixes of each other, and look like ordinary text.
AWKWARD = {
    name: 300000 + i
    for i, name in enumerate(["<|a|>", "<|a|>b", "aXa", "'s", "12", "ab", "ba", "b1", "<|im_end|>"])
}

TEXTS = [
    "Hello, world! It's 12:30.\n\n  def f(x):\n\treturn x**2\r\n",
    "DON'T we'Ve 'sit camelCaseID HTMLParser日本語のテキストです。삼겹살",
    "12345678901234567890 ½²Ⅷ٣१ 3.14e-10   \n \n  x   ",
    "-\u0301-\u0301x\u0301'sA日A日aあA'reX'rEX ./\n/\n.\n.\n\u3000\u2028\x1c\x00\x00a",
    "🙂🙂👨‍👩‍👧 naïve e\u0301 <|a|><|a|>b<|aXaXa ab ba 12 <|im_end|",
]

hard_texts = st.lists(
    st.sampled_from(HARD_CHARACTERS + HARD_PIECES + list(AWKWARD)), max_size=25
).map("".join)


@pytest.fixture(params=[1, 3, 4096])
def settle_after(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return the number of held characters from which the encoder searches for a split point."""
    monkeypatch.setattr(stream_splitter, "_SETTLE_AFTER", request.param)
    number: int = request.param
    return number


@cache
def extended(name: str, backend: Any) -> Encoding:
    spec = EncodingSpec(name=f"awkward-{name}", extends=name, special_tokens=AWKWARD)
    return load_encoding(spec, backend=backend)


def outcome(call: Any) -> Any:
    try:
        return call()
    except SpecialTokenFound as error:
        return error.token, error.byte_offset


@pytest.mark.slow
@pytest.mark.parametrize("text", TEXTS)
def test_ids_for_every_cut_in_two_and_every_piece_size(
    encoding: Encoding, text: str, settle_after: int
) -> None:
    if settle_after != 4096 and encoding.backend == "reference":
        text = text[-30:]
    ids = encoding.encode_ordinary(text)
    data = text.encode()
    options: Any = {"disallowed_special": ()}
    if settle_after == 4096:
        for point in range(len(data) + 1):
            assert stream(StreamEncoder(encoding, **options), cut(data, point)) == ids
    for size in (1, 2, 3, 5, 16):
        pieces = cut(text, *range(size, len(text), size))
        assert stream(StreamEncoder(encoding, **options), pieces) == ids


@pytest.mark.slow
@pytest.mark.parametrize("name", ["r50k_base", "cl100k_base", "o200k_base"])
@given(data=st.data())
def test_special_tokens_and_policy_for_every_cut(name: str, data: st.DataObject) -> None:
    text = data.draw(hard_texts)
    names = st.sets(st.sampled_from(list(AWKWARD)))
    options: Any = {
        "allowed_special": data.draw(st.one_of(st.just("all"), names)),
        "disallowed_special": data.draw(st.one_of(st.just("all"), st.just(()), names)),
    }
    given: Any = text.encode() if data.draw(st.booleans()) else text
    points = data.draw(st.lists(st.integers(0, len(given)), max_size=6))
    size = data.draw(st.integers(1, 4))
    expected = None
    for backend in BACKENDS:
        encoding = extended(name, backend)
        expected = outcome(lambda: encoding.encode(text, **options))  # noqa: B023
        for pieces in (cut(given, *points), cut(given, *range(size, len(given), size))):
            streamed = outcome(
                lambda: stream(StreamEncoder(encoding, **options), pieces)  # noqa: B023
            )
            assert streamed == expected


@pytest.mark.parametrize("name", list_encodings())
def test_every_form_of_the_ids_and_the_count(name: str) -> None:
    text = "".join(TEXTS) * 2
    data = text.encode()
    for backend in BACKENDS:
        encoding = get_encoding(name, backend=backend)  # type: ignore[arg-type]
        ids = encoding.encode_ordinary(text)
        for size in (1, 7, 100, 10_000):
            pieces = cut(data, *range(size, len(data), size))
            packed = StreamEncoder(encoding, disallowed_special=())
            parts = [packed.feed_packed(piece) for piece in pieces]
            assert b"".join([*parts, packed.finish_packed()]) == pack(ids)
            counter = StreamCounter(encoding, disallowed_special=())
            assert [counter.feed(piece) for piece in pieces][-1] <= counter.finish() == len(ids)
            assert counter.finished
            assert (counter.bytes_consumed, counter.pending_bytes) == (len(data), 0)


@pytest.mark.parametrize("limit", [0, 1, 5, 49, 50, 51])
def test_a_count_stops_at_its_limit(load: Any, limit: int) -> None:
    encoding = load("cl100k_base")
    text = " a" * 50
    counter = StreamCounter(encoding, limit=limit)
    for i in range(0, len(text), 3):
        counter.feed(text[i : i + 3])
    assert counter.finish() == encoding.count(text, limit=limit) == min(50, limit + 1)
    assert counter.limit_exceeded == (limit < 50)


def test_text_beyond_an_exceeded_limit_is_not_read(load: Any) -> None:
    counter = StreamCounter(load("cl100k_base"), limit=1)
    assert counter.feed("one two three ") == 2
    assert counter.feed("<|endoftext|> \ud800") == 2
    assert counter.finish() == 2


def test_a_count_beyond_its_limit_ends_as_any_other(load: Any) -> None:
    counter, mistaken = (StreamCounter(load("cl100k_base"), limit=0) for _ in range(2))
    for each in (counter, mistaken):
        each.feed("one two three ")
        assert each.limit_exceeded
    assert counter.finish() == 1
    number: Any = 5
    with pytest.raises(TypeError, match="piece must be str or bytes"):
        mistaken.feed(number)
    for each in (counter, mistaken):
        for call in (each.finish, lambda: each.feed("x")):  # noqa: B023
            with pytest.raises(StreamFinished):
                call()


@pytest.mark.slow
def test_a_disallowed_special_token_is_found_across_pieces(encoding: Encoding) -> None:
    encoder = StreamEncoder(encoding)
    with pytest.raises(SpecialTokenFound) as caught:
        stream(encoder, ["añb ", "cd <|end", "of", "text|", "> x"])
    assert (caught.value.token, caught.value.byte_offset) == ("<|endoftext|>", 8)
    with pytest.raises(StreamFinished):
        encoder.feed("more")


def test_a_disallowed_string_that_starts_within_an_allowed_special_token() -> None:
    """In a text that is long enough to be searched as a whole for a split point."""
    encoding = extend_encoding(get_encoding("r50k_base"), ["ab"], name="x")
    encoder = StreamEncoder(encoding, allowed_special="all", disallowed_special=["bcd"])
    assert encoder.feed("x" * 5000 + "ab") == []
    with pytest.raises(SpecialTokenFound) as caught:
        stream(encoder, ["cd"])
    assert (caught.value.token, caught.value.byte_offset) == ("bcd", 5001)


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize(
    ("data", "offset"),
    [
        ("a é ".encode() + b"\xff x", 5),
        ("añ".encode() + b"\xe6\x97", 3),
        (b"ab \xed\xa0\x80", 3),
        ("añ\ud800b", 3),
    ],
)
def test_invalid_unicode_is_reported_by_its_offset_in_the_stream(
    encoding: Encoding, data: Any, offset: int, size: int
) -> None:
    with pytest.raises(InvalidUnicode) as caught:
        stream(StreamEncoder(encoding), cut(data, *range(size, len(data), size)))
    assert caught.value.byte_offset == offset


def test_a_stream_can_mix_text_and_bytes(load: Any) -> None:
    encoding = load("cl100k_base")
    first, second = "ï".encode()[:1], "ï".encode()[1:]
    # An empty text may come within a character.
    pieces = ["na", first, "", second, "ve", b" x"]
    assert stream(StreamEncoder(encoding), pieces) == encoding.encode("naïve x")
    encoder = StreamEncoder(encoding)
    encoder.feed("añ🙂".encode()[:-1])
    with pytest.raises(InvalidUnicode) as caught:
        encoder.feed("x")
    assert caught.value.byte_offset == 3
    with pytest.raises(InvalidUnicode):
        StreamEncoder(encoding).feed(b"\xff")  # at once, not only at the end


def test_consumed_and_pending_bytes_add_up(load: Any) -> None:
    encoder = StreamEncoder(load("cl100k_base"))
    encoder.feed("añ b")
    assert (encoder.bytes_consumed, encoder.pending_bytes) == (3, 2)
    encoder.feed("🙂".encode()[:2])
    assert encoder.bytes_consumed + encoder.pending_bytes == 7
    assert not encoder.finished


def test_a_stream_continues_the_text_of_another_one(load: Any) -> None:
    """In numbers of three digits, the last character before a split point does not decide it."""
    encoding = load("cl100k_base")
    text = "123456789" * 1000
    encoder = StreamEncoder(encoding)
    ids = encoder.feed(text[:5000])
    at = encoder.bytes_consumed
    assert 0 < at < 5000
    further = StreamEncoder(encoding, preceding_text=text[:at])
    assert ids + stream(further, [text[at:]]) == encoding.encode(text)


def test_patterns_without_known_split_points_are_rejected() -> None:
    assert not can_stream(toy())
    assert all(can_stream(get_encoding(name)) for name in list_encodings())
    with pytest.raises(InvalidOption, match="no points are known") as caught:
        StreamEncoder(toy())
    assert caught.value.option == "encoding"


def test_options_outside_their_domain_are_rejected(load: Any) -> None:
    encoding = load("cl100k_base")
    for make in (
        lambda: StreamEncoder(encoding, allowed_special="<|endoftext|>"),
        lambda: StreamEncoder(encoding, disallowed_special=[""]),
        lambda: StreamEncoder(encoding, max_pending_bytes=0),
        lambda: StreamEncoder(encoding, preceding_text="a\ud800"),
        lambda: StreamCounter(encoding, limit=-1),
    ):
        with pytest.raises(InvalidOption):
            make()


def test_a_finished_stream_accepts_no_more(load: Any) -> None:
    encoder = StreamEncoder(load("cl100k_base"))
    assert encoder.finish() == []
    for call in (encoder.finish, lambda: encoder.feed("x")):
        with pytest.raises(StreamFinished):
            call()


@pytest.mark.parametrize("text", [None, 5, b"a", ["a"]])
def test_a_preceding_text_of_another_type_is_rejected(load: Any, text: Any) -> None:
    with pytest.raises(TypeError, match="preceding_text must be str"):
        StreamEncoder(load("cl100k_base"), preceding_text=text)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_stream_cannot_be_copied(load: Any, copied: Callable[[Any], Any]) -> None:
    encoding = load("cl100k_base")
    streams = (kind(encoding) for kind in (StreamEncoder, StreamCounter, StreamDecoder))
    for each in (*streams, StreamChunker(encoding, SplitOptions(10))):
        with pytest.raises(TypeError, match=f"a {type(each).__name__} cannot be copied"):
            copied(each)


@pytest.mark.parametrize("piece", [None, 5])
def test_a_piece_of_another_type_is_rejected(load: Any, piece: Any) -> None:
    encoding = load("cl100k_base")
    for feed in (
        StreamEncoder(encoding).feed,
        StreamEncoder(encoding).feed_packed,
        StreamCounter(encoding).feed,
    ):
        feed("hello")
        with pytest.raises(TypeError, match="piece must be str or bytes"):
            feed(piece)


def test_names_that_are_no_special_tokens_are_ignored(load: Any) -> None:
    """Whatever their type, as in `encode`; and an iterator of names is read once."""
    encoding = load("cl100k_base")
    names: Any
    for names in ([1, "<|endoftext|>"], [b"x", "<|endoftext|>"], iter(["<|endoftext|>"])):
        encoder = StreamEncoder(encoding, allowed_special=names, disallowed_special=())
        ids = [*encoder.feed("a<|endoft"), *encoder.feed("ext|>"), *encoder.finish()]
        assert ids == encoding.encode("a<|endoftext|>", allowed_special="all")
    names = [1]
    with pytest.raises(TypeError, match="disallowed_special: each name must be str"):
        StreamEncoder(encoding, disallowed_special=names)
