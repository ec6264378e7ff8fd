"""Laws of every encoding and text, and typed errors for arguments outside of their domain."""

from __future__ import annotations

import pickle
import random
import sys
from array import array
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier
from typing import Any

import numpy
import pytest
from bytepair_engine import (
    CancelScope,
    Encoding,
    InvalidOption,
    InvalidUnicode,
    SpecialTokenFound,
    StreamDecoder,
    StreamEncoder,
    UnknownEncoding,
    UnknownToken,
    UnknownTokenId,
    VocabularyError,
    aliases,
    can_stream,
    extend_encoding,
    get_encoding,
    list_encodings,
    load_encoding,
)
from bytepair_engine.backends.interface import OffsetUnit
from bytepair_engine.backends.varint import pack
from bytepair_engine.chat import get_chat_format
from bytepair_engine.context.stream import StreamChunker
from bytepair_engine.toy import toy
from bytepair_engine.training.settings import TrainingSettings
from hypothesis import given
from hypothesis import strategies as st
from support.engines import BACKENDS, Load
from support.hard_text import HARD_CHARACTERS, HARD_PIECES, random_texts
from support.scalar import Scalar

texts = st.one_of(
    st.text(max_size=40),
    st.lists(st.sampled_from(HARD_CHARACTERS + HARD_PIECES), max_size=12).map("".join),
)


def utf16_units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


@pytest.mark.slow
@pytest.mark.parametrize("name", ["r50k_base", "cl100k_base", "o200k_base"])
@given(text=texts)
def test_all_methods_of_encoding_agree(name: str, text: str) -> None:
    for backend in BACKENDS:
        encoding = get_encoding(name, backend=backend)
        free: dict[str, Any] = {"disallowed_special": ()}
        ids = encoding.encode(text, **free)
        assert encoding.decode(ids) == text
        assert encoding.decode_bytes(ids) == text.encode()
        assert encoding.count(text, **free) == len(ids)
        assert encoding.encode_array(text, **free) == array("I", ids)
        assert encoding.encode_packed(text, **free) == pack(ids)
        assert encoding.count(text.encode(), **free) == len(ids)
        assert encoding.encode_packed(text.encode(), **free) == pack(ids)
        assert encoding.encode_batch([text, "", text], **free) == [ids, [], ids]
        assert encoding.count_batch([text, "", text.encode()], **free) == [len(ids), 0, len(ids)]
        for limit in {0, max(len(ids) - 1, 0), len(ids), len(ids) + 1}:
            assert encoding.count(text, limit=limit, **free) == min(len(ids), limit + 1)
            assert encoding.count(text.encode(), limit=limit, **free) == min(len(ids), limit + 1)
        lengths: dict[OffsetUnit, Callable[[bytes], int]] = {
            "byte": len,
            "code_point": lambda before: len(before.decode(errors="ignore")),
            "utf16": lambda before: utf16_units(before.decode(errors="ignore")),
        }
        for unit, length in lengths.items():
            before, expected = b"", []
            for token in map(encoding.decode_single_token_bytes, ids):
                expected.append(length(before))
                before += token
            got = encoding.encode_with_offsets(text, unit=unit, **free)
            assert got == (ids, expected)


@pytest.mark.slow
def test_both_backends_agree() -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    for name in list_encodings():
        one, other = get_encoding(name, backend="native"), get_encoding(name, backend="reference")
        for text in random_texts(rng, one.token_byte_values(), 100):
            assert one.encode_ordinary(text) == other.encode_ordinary(text)


def test_empty_text(encoding: Encoding) -> None:
    assert encoding.encode("") == []
    assert encoding.encode_packed("") == b""
    assert encoding.encode_array("") == array("I")
    assert encoding.encode_with_offsets("") == ([], [])
    assert encoding.count("") == encoding.count("", limit=0) == 0
    assert encoding.encode_batch([]) == []
    assert encoding.count_batch([]) == []
    assert encoding.decode([]) == ""
    assert encoding.decode_bytes([]) == b""


@pytest.mark.parametrize(
    ("text", "offset"), [("\ud800", 0), ("é\udfff", 2), ("a" * 5000 + "\udc80x", 5000)]
)
def test_lone_surrogates_are_rejected(encoding: Encoding, text: str, offset: int) -> None:
    """tiktoken's core.py silently replaces them by U+FFFD."""
    calls: list[Callable[[str], object]] = [
        encoding.encode,
        encoding.encode_ordinary,
        encoding.encode_array,
        encoding.encode_packed,
        encoding.encode_with_offsets,
        encoding.count,
        lambda text: encoding.count(text, limit=0),
        lambda text: encoding.encode_batch(["", text, "\ud800"]),
        lambda text: encoding.count_batch(["", text, "\ud800"]),
    ]
    for call in calls:
        with pytest.raises(InvalidUnicode) as caught:
            call(text)
        assert caught.value.byte_offset == offset
    with pytest.raises(UnknownToken):
        encoding.encode_single_token(text)


@pytest.mark.parametrize(
    ("data", "offset"),
    [
        (b"\xff", 0),
        (b"a\xc3", 1),
        (b"\xc0\x80", 0),
        (("é" * 9000).encode() + b"\xed\xa0\x80", 18000),
    ],
)
def test_bytes_that_are_not_utf8_are_rejected(encoding: Encoding, data: bytes, offset: int) -> None:
    """Truncated, overlong, or a surrogate; also if counting could stop before."""
    calls: list[Callable[[bytes], object]] = [
        encoding.encode_packed,
        encoding.count,
        lambda data: encoding.count(data, limit=0),
        lambda data: encoding.count_batch([b"a", "é", data]),
    ]
    for call in calls:
        with pytest.raises(InvalidUnicode) as caught:
            call(data)
        assert caught.value.byte_offset == offset


def test_an_error_in_a_batch_names_the_first_bad_text(encoding: Encoding) -> None:
    special = next(iter(encoding.special_tokens))
    calls: list[Any] = [
        encoding.encode_batch,
        partial(encoding.count_batch, disallowed_special="all"),
    ]
    for call in calls:
        with pytest.raises(InvalidUnicode, match=r"^text 1: lone surrogate at byte 1$") as found:
            call(["a", "b\ud800", special])
        assert found.value.index == 1
        with pytest.raises(SpecialTokenFound, match=r"^text 1: the text contains") as special_found:
            call(["a", special, "b\ud800", 5])
        error = special_found.value
        assert (error.index, error.byte_offset) == (1, 0)
        assert str(pickle.loads(pickle.dumps(error))) == str(error)
        with pytest.raises(TypeError, match=r"^texts: text 1 must be str, not int$"):
            call(["a", 5, special])


def test_values_other_than_text_are_rejected(encoding: Encoding) -> None:
    values: list[Any] = [None, 1, bytearray(b"a"), memoryview(b"a")]
    for bad in values:
        for call in (encoding.count, encoding.encode_packed):
            with pytest.raises(TypeError, match=f"^text must be str, not {type(bad).__name__}$"):
                call(bad)


@pytest.mark.parametrize(
    ("option", "call"),
    [
        ("name", lambda _: get_encoding(5)),  # type: ignore[arg-type]
        ("threads", lambda _: get_encoding("gpt2", threads="1")),  # type: ignore[arg-type]
        ("spec", lambda _: load_encoding(5)),  # type: ignore[arg-type]
        ("text", lambda encoding: encoding.encode(b"x")),
        ("text", lambda encoding: encoding.encode_with_offsets(5)),
        ("text", lambda encoding: encoding.contains_special(5)),
        ("text", lambda encoding: encoding.truncate(5, 1)),
        ("text", lambda encoding: encoding.truncate(5, 1, disallowed_special="all")),
        ("text", lambda encoding: encoding.split(5, 1)),
        ("text", lambda encoding: encoding.inspect(5)),
        ("texts", lambda encoding: encoding.encode_batch(["a", 5])),
        ("texts", lambda encoding: encoding.encode_batch([b"a"])),
        ("limit", lambda encoding: encoding.count("x", limit=1.5)),
        ("limit", lambda encoding: encoding.count("x", limit=True)),
        ("max_tokens", lambda encoding: encoding.truncate("x", "1")),
        ("max_tokens", lambda encoding: encoding.split("x", True)),
        ("marker", lambda encoding: encoding.truncate("x", 1, marker=None)),
        ("overlap_tokens", lambda encoding: encoding.split("x", 1, overlap_tokens=None)),
        ("allowed_special", lambda encoding: encoding.encode("x", allowed_special=5)),
        ("disallowed_special", lambda encoding: encoding.encode("x", disallowed_special=5)),
        ("disallowed_special", lambda encoding: encoding.encode("x", disallowed_special={5})),
        ("disallowed_special", lambda encoding: encoding.split("x", 1, disallowed_special={5})),
        ("texts", lambda encoding: encoding.encode_batch("abc")),
        ("texts", lambda encoding: encoding.count_batch(b"abc")),
        ("texts", lambda encoding: encoding.count_batch(5)),
        ("ids", lambda encoding: encoding.decode(5)),
        ("ids", lambda encoding: encoding.decode([1, "a"])),
        ("ids", lambda encoding: encoding.decode_bytes([1.5])),
        ("allowed_special", lambda encoding: encoding.encode("a", allowed_special=None)),
        ("allowed_special", lambda encoding: encoding.count("a", allowed_special=None)),
        ("ids", lambda encoding: StreamDecoder(encoding).feed(5)),  # type: ignore[arg-type]
        ("encoding", lambda encoding: StreamDecoder(encoding.name)),
        ("encoding", lambda encoding: StreamEncoder(encoding.name)),
        ("token", lambda encoding: encoding.encode_single_token(5)),
        ("token_id", lambda encoding: encoding.decode_single_token_bytes("a")),
        ("stop", lambda encoding: StreamDecoder(encoding, stop=5)),  # type: ignore[call-overload]
        ("stop", lambda encoding: StreamDecoder(encoding, stop=["a", 5])),  # type: ignore[list-item]
        ("piece", lambda encoding: StreamEncoder(encoding).feed(5)),  # type: ignore[arg-type]
        ("special_tokens", lambda _: extend_encoding(toy(), [5], name="x")),  # type: ignore[list-item]
        ("special_tokens", lambda _: extend_encoding(toy(), [[]], name="x")),  # type: ignore[list-item]
        ("special_tokens", lambda _: extend_encoding(toy(), {"a"}, name="x")),  # type: ignore[arg-type]
        ("special_tokens", lambda _: extend_encoding(toy(), {"a": "b"}, name="x")),  # type: ignore[dict-item]
        ("name", lambda _: extend_encoding(toy(), [], name=5)),  # type: ignore[arg-type]
        ("encoding", lambda _: extend_encoding("toy", [], name="x")),  # type: ignore[arg-type]
        ("encoding", lambda encoding: can_stream(encoding.name)),
        ("allowed_special", lambda encoding: encoding.encode("x", allowed_special=b"x")),
        ("allowed_special", lambda encoding: encoding.encode("x", allowed_special=[[]])),
        ("disallowed_special", lambda encoding: encoding.count("x", disallowed_special=[[]])),
        ("token_id", lambda encoding: encoding.is_special_id("a")),
        ("ids", lambda encoding: encoding.without_special(5)),
        ("ids", lambda encoding: encoding.without_special(["a"])),
        ("prefill_ids", lambda encoding: StreamDecoder(encoding, prefill_ids=["a"])),  # type: ignore[list-item]
        ("seconds", lambda _: CancelScope("1")),  # type: ignore[arg-type]
        ("backend", lambda _: get_encoding("gpt2", backend=[])),  # type: ignore[arg-type]
        ("options", lambda encoding: StreamChunker(encoding, 5)),  # type: ignore[arg-type]
        ("name", lambda _: get_chat_format(5)),  # type: ignore[arg-type]
    ],
)
def test_the_error_for_a_wrong_type_names_the_argument(
    encoding: Encoding, option: str, call: Callable[[Any], object]
) -> None:
    with pytest.raises(TypeError, match=f"^{option}(:| must be) "):
        call(encoding)


@pytest.mark.parametrize("bad", [-1, 2**31, 2**32 - 1, 2**32, 2**64, -(2**63)])
def test_unknown_ids_are_rejected(encoding: Encoding, bad: int) -> None:
    """vLLM #24159, #21951: id -1 and id 4294967295 gave a 500."""
    for call in (encoding.decode, encoding.decode_bytes):
        with pytest.raises(UnknownTokenId) as caught:
            call([encoding.encode_ordinary("a")[0], bad])
        assert (caught.value.token_id, caught.value.index) == (bad, 1)
    with pytest.raises(UnknownTokenId):
        encoding.decode_single_token_bytes(bad)


@pytest.mark.slow
def test_a_gap_in_the_ids(load: Load) -> None:
    """p50k_base has no ordinary token 50256, and cl100k_base no token between its special ones."""
    assert load("p50k_base").decode([50256]) == "<|endoftext|>"
    for name, hole in (("cl100k_base", 100256), ("cl100k_base", 100261), ("o200k_base", 200000)):
        with pytest.raises(UnknownTokenId):
            load(name).decode([hole])


def test_ids_of_other_types(encoding: Encoding) -> None:
    ids = encoding.encode_ordinary("one two three")
    assert encoding.decode(array("I", ids)) == encoding.decode(tuple(ids)) == "one two three"
    assert encoding.decode([1, True, False]) == encoding.decode([1, 1, 0])  # As in tiktoken.
    for bad in ("1", 1.0, 1.5, None):
        with pytest.raises(TypeError):
            encoding.decode([1, bad])  # type: ignore[list-item]


def test_ids_that_only_convert_to_integers(load: Load) -> None:
    """numpy's and PyTorch's scalars."""
    encoding = load("cl100k_base")
    hello: Any = Scalar(15339)
    end: Any = Scalar(100257)
    bad: Any = Scalar(-1)
    assert encoding.decode([hello, end]) == "hello<|endoftext|>"
    assert encoding.decode_single_token_bytes(hello) == b"hello"
    assert encoding.is_special_id(end)
    assert not encoding.is_special_id(hello)
    assert encoding.without_special([hello, end]) == [15339]
    for decode in (encoding.decode_single_token_bytes, lambda i: encoding.decode([i])):
        with pytest.raises(UnknownTokenId) as caught:
            decode(bad)
        assert type(caught.value.token_id) is int
        assert caught.value.token_id == -1
    limit: Any = Scalar(1)
    assert encoding.count("hello world again", limit=limit) == 2
    assert encoding.truncate("hello world again", limit) == "hello"


class Boundless(list[int]):
    """A sequence whose length says nothing of its items."""

    def __len__(self) -> int:
        return sys.maxsize


def test_sequences_of_ids_are_read_by_their_items(load: Load) -> None:
    encoding = load("cl100k_base")
    assert encoding.decode(Boundless([15339, 1917])) == "hello world"
    for dtype in ("u2", "u4", ">u4", "i4", "i8", "u8"):
        ids = numpy.array([15339, 1, 1917], dtype=dtype)
        assert encoding.decode(ids[::2]) == "hello world"
        assert encoding.decode_bytes(ids[::2]) == b"hello world"
        for shape in ((1, 3), (3, 1)):
            with pytest.raises(TypeError):
                encoding.decode(ids.reshape(shape))


def test_decoding_bytes_that_are_not_utf8(load: Load) -> None:
    encoding = load("cl100k_base")
    euro = [encoding.encode_single_token(bytes([b])) for b in "€".encode()]
    x = encoding.encode_single_token("x")
    assert encoding.decode(euro) == "€"
    assert encoding.decode([*euro[:2], x]) == "\ufffdx"
    assert encoding.decode([euro[1], x, euro[0]]) == "\ufffdx\ufffd"
    with pytest.raises(InvalidUnicode) as caught:
        encoding.decode([x, *euro[:2], x], errors="strict")
    assert caught.value.byte_offset == 1
    with pytest.raises(InvalidOption):
        encoding.decode([x], errors="ignore")  # type: ignore[arg-type]


@given(st.lists(st.integers(0, 255), max_size=12))
def test_decoding_ids_equals_decoding_their_bytes(values: list[int]) -> None:
    """One U+FFFD for each maximal subpart, the rule of Python and the WHATWG."""
    data = bytes(values)
    for backend in BACKENDS:
        encoding = get_encoding("r50k_base", backend=backend)
        ids = [encoding.encode_single_token(bytes([b])) for b in data]
        assert encoding.decode(ids) == data.decode(errors="replace")


def test_options_outside_their_domain_are_rejected(load: Load) -> None:
    encoding = load("r50k_base")
    with pytest.raises(InvalidOption):
        encoding.count("x", limit=-1)
    with pytest.raises(InvalidOption):
        encoding.encode_with_offsets("x", unit="grapheme")  # type: ignore[arg-type]


def test_special_tokens_can_be_any_sequence() -> None:
    """One without slices, too: looking for duplicates in them would take quadratic time."""
    names = deque(["<a>", "<b>"])
    extended = extend_encoding(toy(), names, name="x")
    assert extended.special_tokens["<b>"] == toy().n_vocab + 1
    settings = TrainingSettings.checked(vocab_size=300, pattern=None, special_tokens=names)
    assert settings.special_tokens == ("<a>", "<b>")
    with pytest.raises(InvalidOption, match="'<a>' is given twice"):
        extend_encoding(toy(), [*names, "<a>"], name="x")
    free = toy().n_vocab
    advice = f"'<b>': its id {free} is that of the special token '<a>'; .* a free id: {free + 1} or"
    with pytest.raises(VocabularyError, match=advice):
        extend_encoding(toy(), {"<a>": free, "<b>": free}, name="x")


def test_a_limit_larger_than_any_text(encoding: Encoding) -> None:
    for limit in (2**31, 2**63 - 1, 2**63, 2**64, 10**30):
        assert encoding.count("one two", limit=limit) == 2
        assert encoding.count_batch(["", "one two"], limit=limit) == [0, 2]
        for keep in ("start", "end", "both"):
            assert encoding.truncate("one two", limit, keep=keep, marker="…") == "one two"
        assert [chunk.count for chunk in encoding.split("one two", limit)] == [2]


def test_single_tokens(load: Load) -> None:
    encoding = load("cl100k_base")
    assert encoding.encode_single_token("hello") == encoding.encode("hello")[0]
    for end in ("<|endoftext|>", b"<|endoftext|>"):
        assert encoding.encode_single_token(end) == 100257
    assert encoding.decode_single_token_bytes(100257) == b"<|endoftext|>"
    for no_token in ("hello world", "", b"\xff\xfe\xfd"):
        with pytest.raises(UnknownToken):
            encoding.encode_single_token(no_token)


def test_encodings_by_name() -> None:
    assert get_encoding("gpt2") is get_encoding("r50k_base")
    for model, name in {
        "gpt-4o": "o200k_base",
        "gpt-4": "cl100k_base",
        "gpt-3.5-turbo": "cl100k_base",
        "text-embedding-3-small": "cl100k_base",
        "davinci": "r50k_base",
    }.items():
        assert get_encoding(model).name == aliases()[model] == name


def test_threads_that_load_an_encoding_at_once_get_the_same_object() -> None:
    barrier = Barrier(4)

    def load(_: int) -> Encoding:
        barrier.wait()
        return get_encoding("r50k_base", cache_bytes=1)  # which no other test loads

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(load, range(4)))) == 1


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("", "known: cl100k_base, o200k_base, o200k_harmony, p50k_base, p50k_edit, r50k_base"),
        ("claude-3", "known: cl100k_base, o200k_base"),
        ("../x", "known: cl100k_base"),
        ("gpt-4o_", "the nearest known: gpt-4o, "),
        ("GPT-4o", "the nearest known: gpt-4o, "),
        ("cl100k", "the nearest known: cl100k_base"),
        ("cl100k_base ", "the nearest known: cl100k_base"),
    ],
)
def test_an_unknown_name_is_never_guessed(name: str, hint: str) -> None:
    """sgl-model-gateway, LiteLLM #8140: a fallback to GPT's tokenizer made wrong bills."""
    with pytest.raises(UnknownEncoding) as caught:
        get_encoding(name)
    assert f"unknown encoding {name!r}; {hint}" in str(caught.value)


def test_encodings_are_immutable(load: Load) -> None:
    encoding = load("r50k_base")
    with pytest.raises(TypeError):
        encoding.special_tokens["x"] = 1  # type: ignore[index]
    for attribute in ("name", "fingerprint", "backend", "n_vocab", "anything"):
        # CPython 3.11 raises TypeError for unknown fields of a frozen dataclass with slots.
        with pytest.raises((AttributeError, TypeError)):
            setattr(encoding, attribute, "x")
