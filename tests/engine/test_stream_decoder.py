"""Streamed decoding: for every cut, the joined deltas are the one-shot decoding of all ids. With
the inputs that broke other implementations."""

from __future__ import annotations

import itertools
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from bytepair_engine import (
    Encoding,
    InvalidOption,
    InvalidUnicode,
    StreamDecoder,
    StreamFinished,
    UnknownTokenId,
    get_encoding,
)
from bytepair_engine.toy import toy
from hypothesis import given
from hypothesis import strategies as st
from support.hard_text import HARD_CHARACTERS, HARD_PIECES
from support.scalar import Scalar

BACKENDS = ("reference", "native")
LEADS = [0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xEC]
LEADS += [0xED, 0xEE, 0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF]

texts = st.lists(st.sampled_from(HARD_CHARACTERS + HARD_PIECES), max_size=12).map("".join)


def deltas(decoder: StreamDecoder[Any], ids: list[int], size: int = 1) -> list[Any]:
    """Return the output of `decoder` for `ids`, `size` at a time, and at the end."""
    parts = [decoder.feed(ids[i : i + size]) for i in range(0, len(ids), size)]
    return [*parts, decoder.finish()]


def ids_of_bytes(encoding: Encoding, data: bytes) -> list[int]:
    return [encoding.encode_single_token(data[i : i + 1]) for i in range(len(data))]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["r50k_base", "cl100k_base", "o200k_harmony"])
@given(data=st.data())
def test_deltas_join_to_the_one_shot_decoding(name: str, data: st.DataObject) -> None:
    for backend in BACKENDS:
        encoding = get_encoding(name, backend=backend)  # type: ignore[arg-type]
        special = sorted(set(encoding.special_tokens.values()))[:4]
        tokens = st.sampled_from([*range(256), 50000, *special])
        ids = data.draw(
            st.one_of(st.lists(tokens, max_size=12), texts.map(encoding.encode_ordinary))
        )
        prefill = data.draw(st.lists(tokens, max_size=4))
        size = data.draw(st.integers(1, 4))
        skip = data.draw(st.booleans())

        def kept(some: list[int]) -> list[int]:
            return encoding.without_special(some) if skip else some  # noqa: B023

        parts = deltas(StreamDecoder(encoding, skip_special_tokens=skip), ids, size)
        assert "".join(parts) == encoding.decode(kept(ids))
        raw = deltas(StreamDecoder(encoding, skip_special_tokens=skip, as_bytes=True), ids, size)
        assert b"".join(raw) == encoding.decode_bytes(kept(ids))

        context = StreamDecoder(encoding, skip_special_tokens=skip)
        before = context.feed(prefill)
        decoder = StreamDecoder(encoding, prefill_ids=prefill, skip_special_tokens=skip)
        after = "".join(deltas(decoder, ids, size))
        assert before + after == encoding.decode(kept(prefill) + kept(ids))
        assert decoder.tokens_consumed == len(ids)


@pytest.mark.slow
@pytest.mark.parametrize("length", [1, 2, 3, 4])
def test_every_short_byte_string_is_decoded_as_at_once_and_without_delay(length: int) -> None:
    """Bytes that cannot become a character are not held."""
    alphabet = range(0x7F, 0x100) if length <= 2 else LEADS if length == 3 else LEADS[1:-3:2]
    encoding = toy()
    for values in itertools.product(alphabet, repeat=length):
        decoder = StreamDecoder(encoding)
        text = "".join(decoder.feed([value]) for value in values)
        pending = decoder.pending_bytes
        assert pending <= 3
        assert not pending or can_be_completed(bytes(values[-pending:])), bytes(values).hex()
        assert text + decoder.finish() == bytes(values).decode(errors="replace")


def can_be_completed(start: bytes) -> bool:
    for rest in itertools.product([0x80, 0x90, 0xA0], repeat=3):
        for length in (1, 2, 3):
            try:
                (start + bytes(rest[:length])).decode()
            except UnicodeDecodeError:
                continue
            return True
    return False


def test_surrogate_halves_are_not_held() -> None:
    """The standard library's incremental decoder holds ED A0, which nothing completes."""
    assert deltas(StreamDecoder(toy()), [0xED, 0xA0, 0x80]) == ["", "\ufffd\ufffd", "\ufffd", ""]


def test_a_prefill_that_ends_inside_a_character_gives_no_text(load: Any) -> None:
    """vLLM #48853: the first delta contained the whole prompt."""
    encoding = load("cl100k_base")
    smile = ids_of_bytes(encoding, "🙂".encode())
    prompt = encoding.encode("a long prompt ") + smile[:2]
    decoder = StreamDecoder(encoding, prefill_ids=prompt)
    assert decoder.pending_bytes == 2
    assert deltas(decoder, smile[2:] + encoding.encode("!")) == ["", "🙂", "!", ""]


def test_a_prefill_that_can_be_read_only_once(load: Any) -> None:
    encoding = load("cl100k_base")
    ids: Any = iter([*ids_of_bytes(encoding, "🙂".encode())[:3], -5])
    with pytest.raises(UnknownTokenId) as caught:
        StreamDecoder(encoding, prefill_ids=ids)
    assert (caught.value.token_id, caught.value.index) == (-5, 3)
    wrong: Any
    for wrong in (None, 5, "12"):
        with pytest.raises(TypeError, match="prefill_ids: "):
            StreamDecoder(encoding, prefill_ids=wrong)


@pytest.mark.parametrize("token_id", [-1, 4294967295, 2**32, 2**70])
def test_ids_out_of_range_are_typed_errors_after_the_text(load: Any, token_id: int) -> None:
    """vLLM #17448, #24159, #21951; SGLang #29820; Dynamo #9012: exception, 500, panic text."""
    encoding = load("cl100k_base")
    decoder = StreamDecoder(encoding)
    assert decoder.feed(encoding.encode("one")) == "one"
    assert decoder.feed([*encoding.encode(" two"), token_id, 1]) == " two"
    assert decoder.finished
    assert decoder.tokens_consumed == 2
    for call in (decoder.finish, lambda: decoder.feed([1])):
        with pytest.raises(UnknownTokenId) as caught:
            call()
        assert (caught.value.token_id, caught.value.index) == (token_id, 2)


def test_the_index_of_an_unknown_id_counts_skipped_special_tokens(load: Any) -> None:
    encoding = load("cl100k_base")
    decoder = StreamDecoder(encoding, skip_special_tokens=True)
    assert decoder.feed([100257, 64, 100257, 100257, -1]) == encoding.decode([64])
    assert isinstance(decoder.fault, UnknownTokenId)
    assert decoder.fault.index == 4
    with pytest.raises(UnknownTokenId) as caught:
        StreamDecoder(encoding, prefill_ids=[100257, -1], skip_special_tokens=True)
    assert caught.value.index == 1


def test_repeated_ids_of_invalid_bytes_are_never_held(load: Any) -> None:
    """SGLang #34740: with gpt2's id 100 the window never advanced: O(n²), empty text."""
    encoding = load("gpt2")
    token = encoding.decode_single_token_bytes(100)
    decoder = StreamDecoder(encoding)
    text = ""
    for _ in range(1000):
        text += decoder.feed([100])
        assert decoder.pending_bytes <= 3
    text += decoder.finish()
    assert text == (token * 1000).decode(errors="replace")


@pytest.mark.parametrize("text", ["🙂🙂", "삼겹살"])
def test_characters_of_many_tokens_are_complete(load: Any, text: str) -> None:
    """Dynamo #12630, #12688: a fixed look-back emitted U+FFFD."""
    encoding = load("cl100k_base")
    parts = deltas(StreamDecoder(encoding), ids_of_bytes(encoding, text.encode()))
    assert [part for part in parts if part] == list(text)


def test_a_real_replacement_character_is_kept(load: Any) -> None:
    """deepseek-recipe #16, Luce #489: it was dropped, and usage was 1 instead of 2."""
    encoding = load("cl100k_base")
    ids = encoding.encode("a\ufffdb")
    decoder = StreamDecoder(encoding)
    assert "".join(deltas(decoder, ids)) == "a\ufffdb"
    assert decoder.tokens_consumed == len(ids)


def test_the_end_inside_an_emoji_loses_nothing(load: Any) -> None:
    """lattice #751, Camelid #288: the tail was lost at the end of stream or the token limit."""
    encoding = load("cl100k_base")
    decoder = StreamDecoder(encoding)
    ids = ids_of_bytes(encoding, "ok 🙂".encode()[:-1])
    assert "".join(deltas(decoder, ids)) == "ok \ufffd"
    raw = deltas(StreamDecoder(encoding, as_bytes=True), ids)
    assert b"".join(raw) == "ok 🙂".encode()[:-1]


def test_a_token_that_ends_one_character_and_starts_the_next(load: Any) -> None:
    """mlc-llm #2978: the token 20 F0 9F 91 gave U+FFFD."""
    encoding = load("cl100k_base")
    token = encoding.encode_single_token(b"\x20\xf0\x9f\x91")
    ids = [token, *ids_of_bytes(encoding, b"\x8d")]
    assert deltas(StreamDecoder(encoding), ids) == [" ", "👍", ""]


def test_leading_spaces_are_kept(load: Any) -> None:
    """tokenizers #2212, mlx-lm #1754: they were lost."""
    encoding = load("cl100k_base")
    assert "".join(deltas(StreamDecoder(encoding), encoding.encode("  a  b"))) == "  a  b"


def test_pending_bytes_do_not_grow_with_the_stream(load: Any) -> None:
    """sgl-model-gateway #696: 32k-token outputs, O(n²). The state is all that a call sees."""
    encoding = load("cl100k_base")
    decoder = StreamDecoder(encoding, stop=["never said"])
    ids = encoding.encode("never, never sad 🙂 it n") * 400
    for token_id in ids:
        decoder.feed([token_id])
        assert decoder.pending_bytes <= len("never said") - 1 + 3
    assert decoder.tokens_consumed == len(ids)


@pytest.mark.slow
def test_a_decoder_shared_by_two_threads_stays_consistent(load: Any) -> None:
    """vLLM #41181: "Already borrowed"."""
    encoding = load("cl100k_base")
    decoder = StreamDecoder(encoding, stop=["zz"])
    smile = [*ids_of_bytes(encoding, "🙂".encode()), *encoding.encode("z!")]
    with ThreadPoolExecutor(4) as pool:
        parts = list(pool.map(lambda _: decoder.feed(smile), range(2000)))
    assert sorted("".join([*parts, decoder.finish()])) == sorted("🙂z!" * 2000)
    assert decoder.tokens_consumed == 2000 * len(smile)


def test_messages_are_not_decoded_separately(load: Any) -> None:
    """text-embeddings-inference DecodeStream: decoding each message separately broke characters."""
    encoding = load("o200k_base")
    text = "नमस्ते 日本語 👨‍👩‍👧"
    ids = ids_of_bytes(encoding, text.encode())
    for size in range(1, 8):
        assert "".join(deltas(StreamDecoder(encoding), ids, size)) == text


def test_skipped_special_tokens_leave_no_trace(load: Any) -> None:
    encoding = load("cl100k_base")
    smile = ids_of_bytes(encoding, "🙂".encode())
    ids = [smile[0], 100257, smile[1], 100257, *smile[2:], 100257]
    decoder = StreamDecoder(encoding, skip_special_tokens=True)
    assert "".join(deltas(decoder, ids)) == "🙂" == encoding.decode(encoding.without_special(ids))
    assert decoder.tokens_consumed == 7
    kept = "".join(deltas(StreamDecoder(encoding), ids))
    assert kept == encoding.decode(ids)
    assert kept.count("<|endoftext|>") == 3


@pytest.mark.parametrize(
    ("data", "offset", "consumed", "text"),
    [
        (b"ab\xffcd", 2, 2, "ab"),
        (b"ab\xe6\x97x", 2, 4, "ab"),
        (b"\xed\xa0", 0, 1, ""),
        ("日".encode() + b"\x80", 3, 3, "日"),
    ],
)
@pytest.mark.parametrize("size", [1, 2, 9])
def test_strict_decoding_returns_the_text_before_an_invalid_byte(
    data: bytes, offset: int, consumed: int, text: str, size: int
) -> None:
    decoder = StreamDecoder(toy(), errors="strict")
    got = ""
    for i in range(0, len(data), size):
        got += decoder.feed(data[i : i + size])
        if decoder.finished:
            break
    assert got == text
    with pytest.raises(InvalidUnicode) as caught:
        decoder.finish()
    assert caught.value.byte_offset == offset
    assert decoder.tokens_consumed == consumed


def test_strict_decoding_rejects_an_end_inside_a_character() -> None:
    decoder = StreamDecoder(toy(), errors="strict", stop=["a🙂"])
    assert decoder.feed(b"xa\xf0\x9f") == "x"
    with pytest.raises(InvalidUnicode):
        decoder.finish()
    assert decoder.undelivered == "a"


def test_strict_offsets_count_the_prefill_whose_invalid_bytes_are_no_error() -> None:
    decoder = StreamDecoder(toy(), errors="strict", prefill_ids=b"\x80ab\xf0")
    assert decoder.feed(b"\x9f\x99\x82c\xff") == "🙂c"
    assert isinstance(decoder.fault, InvalidUnicode)
    assert decoder.fault.byte_offset == 8
    assert decoder.tokens_consumed == 4


def test_strict_offsets_count_the_bytes_of_cached_tokens(load: Any) -> None:
    encoding = load("cl100k_base")
    decoder = StreamDecoder(encoding, errors="strict")
    (token_id,) = encoding.encode("é")
    assert [decoder.feed([token_id]) for _ in range(3)] == ["é"] * 3
    decoder.feed(ids_of_bytes(encoding, b"\xff"))
    assert isinstance(decoder.fault, InvalidUnicode)
    assert decoder.fault.byte_offset == 6


def test_options_outside_their_domain_are_rejected() -> None:
    for options in (
        {"stop": "one string"},
        {"stop": ["a", ""]},
        {"stop": ["\ud800"]},
        {"errors": "ignore"},
        {"errors": "strict", "as_bytes": True},
    ):
        with pytest.raises(InvalidOption):
            StreamDecoder(toy(), **options)


def test_a_finished_stream_accepts_no_more() -> None:
    decoder = StreamDecoder(toy())
    assert decoder.feed([97]) == "a"  # which is cached
    assert not decoder.finished
    assert decoder.finish() == ""
    assert decoder.finished
    for call in (decoder.finish, lambda: decoder.feed([97])):
        with pytest.raises(StreamFinished):
            call()
    failed = StreamDecoder(toy())
    assert failed.feed([97, 9999]) == "a"
    with pytest.raises(UnknownTokenId):
        failed.feed([97])


def test_an_aborted_stream_releases_text_held_for_a_stop_string(load: Any) -> None:
    """It does not release the bytes of an incomplete character, which are not text."""
    encoding = load("cl100k_base")
    smile = ids_of_bytes(encoding, "🙂".encode())
    decoder = StreamDecoder(encoding, stop=["world!"])
    assert decoder.feed(encoding.encode("hello wor") + smile[:2]) == "hello "
    assert decoder.pending_bytes == len("wor") + 2
    assert decoder.abandon() == "wor"
    assert decoder.finished
    assert decoder.abandon() == ""
    with pytest.raises(StreamFinished):
        decoder.feed(smile)
    for stopped in (StreamDecoder(encoding), StreamDecoder(encoding, stop=["hello"])):
        stopped.feed(encoding.encode("hello world"))
        assert stopped.abandon() == ""


def test_streams_that_share_cached_token_texts_keep_their_own_options(load: Any) -> None:
    """Texts of tokens are kept by encoding; whether an id is skipped, or its bytes complete a
    character, is each stream's own."""
    encoding = load("cl100k_base")
    (end,) = encoding.encode("<|endoftext|>", allowed_special="all")
    smile = ids_of_bytes(encoding, "🙂".encode())
    hello = encoding.encode("hello")
    for _ in range(3):
        assert deltas(StreamDecoder(encoding), [end, *hello]) == ["<|endoftext|>", "hello", ""]
        skipping = StreamDecoder(encoding, skip_special_tokens=True)
        assert deltas(skipping, [end, *hello]) == ["", "hello", ""]
        assert skipping.tokens_consumed == 2
        broken = StreamDecoder(encoding)
        assert deltas(broken, [smile[0], *hello, *smile]) == [
            "",
            "\ufffdhello",
            "",
            "",
            "",
            "🙂",
            "",
        ]
        strict = StreamDecoder(encoding, errors="strict")
        assert deltas(strict, [*hello, *smile]) == ["hello", "", "", "", "🙂", ""]
        stopping = StreamDecoder(encoding, stop=["low"])
        assert deltas(stopping, [*hello, *encoding.encode("wx")]) == ["hel", "", ""]
        assert stopping.stop_matched == "low"
        raw = StreamDecoder(encoding, as_bytes=True)
        assert deltas(raw, hello + smile[:1]) == [b"hello", b"\xf0", b""]


def test_ids_that_only_convert_to_integers(load: Any) -> None:
    encoding = load("cl100k_base")
    hello, end = encoding.encode("hello<|endoftext|>", allowed_special="all")
    for _ in range(2):  # the second time from the cache
        decoder = StreamDecoder(encoding, skip_special_tokens=True)
        ids: list[Any] = [Scalar(hello), Scalar(end), hello]
        assert deltas(decoder, ids) == ["hello", "", "hello", ""]
    decoder = StreamDecoder(encoding)
    bad: Any
    for bad in (float(hello), str(hello), None):
        with pytest.raises(TypeError, match="ids: "):
            decoder.feed([bad])
    assert decoder.feed([hello]) == "hello"
    scalar: Any = Scalar(hello)
    seen = weakref.ref(scalar)
    decoder.feed([scalar])
    del scalar
    assert seen() is None  # not kept by the cache


@pytest.mark.parametrize("after", [[], [98]])
def test_ids_of_other_types_may_use_the_same_decoder(after: list[int]) -> None:
    decoder = StreamDecoder(toy())

    class Feeding:
        def __index__(self) -> int:
            return 97 + len(decoder.feed([99]))

    thread = threading.Thread(target=lambda: decoder.feed([Feeding(), *after]), daemon=True)  # type: ignore[list-item]
    thread.start()
    thread.join(10)
    assert decoder.tokens_consumed == 2 + len(after)
