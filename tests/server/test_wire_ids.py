"""The hand-written coding of ids equals that of protobuf byte for byte."""

from __future__ import annotations

from typing import Any

import pytest
from bytepair.v1 import text_pb2, tokenizer_pb2
from bytepair_engine import get_encoding
from bytepair_engine.backends.varint import pack, unpack, unpack_slowly
from bytepair_server.errors import InvalidField, InvalidText
from bytepair_server.rpc.wire import element, field, number_of, take_ids, take_items
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st
from support.serving import RunningServer

SERVICE = "/bytepair.v1.TokenizerService/"
Decode = tokenizer_pb2.DecodeRequest
BatchDecode = tokenizer_pb2.BatchDecodeRequest
ITEMS = BatchDecode.ITEMS_FIELD_NUMBER
IDS = st.lists(st.integers(0, 2**32 - 1) | st.integers(0, 300))
ENCODING = get_encoding("cl100k_base")
TEXT = st.text(max_size=40) | st.just("x" * 5000) | st.just("<|endoftext|>")


def raw_answer(server: RunningServer, rpc: str, request: Any) -> bytes:
    answer: bytes = server.channel.unary_unary(SERVICE + rpc)(request.SerializeToString())
    return answer


def segments(texts: list[str]) -> list[text_pb2.Segment]:
    return [text_pb2.Segment(text=text) for text in texts]


@given(TEXT, st.sampled_from(list(text_pb2.OffsetUnit.values())), st.booleans())
def test_encode_answers_are_those_of_protobuf(
    server: RunningServer, text: str, unit: Any, in_segments: bool
) -> None:
    content: dict[str, Any] = {"segments": segments([text])} if in_segments else {"text": text}
    request = tokenizer_pb2.EncodeRequest(
        encoding="gpt-4",
        disallowed_special=text_pb2.DISALLOWED_SPECIAL_AS_TEXT,
        offsets=unit,
        **content,
    )
    raw = raw_answer(server, "Encode", request)
    answer = tokenizer_pb2.EncodeResponse.FromString(raw)
    assert answer.SerializeToString() == raw
    assert list(answer.ids) == ENCODING.encode_ordinary(text)
    has_offsets = unit not in (
        text_pb2.OFFSET_UNIT_UNSPECIFIED,
        text_pb2.OFFSET_UNIT_NONE,
    )
    assert len(answer.offsets) == (len(answer.ids) if has_offsets else 0)
    assert (answer.encoding, answer.fingerprint) == ("cl100k_base", ENCODING.fingerprint)


def check_bytes(
    answer: tokenizer_pb2.BatchEncodeResponse | tokenizer_pb2.BatchCountResponse, raw: bytes
) -> None:
    """Check that an answer has protobuf's bytes, except within errors: their details are a map,
    whose order is not defined."""
    batch: Any = type(answer)
    for result in answer.results:
        expected = batch(results=[result]).SerializeToString()
        found, raw = raw[: len(expected)], raw[len(expected) :]
        assert found == expected or result.HasField("error")
    names = batch(encoding=answer.encoding, fingerprint=answer.fingerprint)
    assert names.SerializeToString() == raw


@given(st.lists(TEXT, max_size=5), st.booleans())
def test_batch_answers_are_those_of_protobuf(
    server: RunningServer, texts: list[str], as_text: bool
) -> None:
    """With REJECT an item that contains a special token has its own error."""
    actions = text_pb2.DISALLOWED_SPECIAL_REJECT, text_pb2.DISALLOWED_SPECIAL_AS_TEXT
    shared: dict[str, Any] = {
        "encoding": "gpt-4",
        "items": [text_pb2.TextItem(text=text) for text in texts],
        "disallowed_special": actions[as_text],
    }
    bad = [not as_text and "<|endoftext|>" in text for text in texts]
    expected = [[] if b else ENCODING.encode_ordinary(t) for t, b in zip(texts, bad, strict=True)]
    raw = raw_answer(server, "BatchEncode", tokenizer_pb2.BatchEncodeRequest(**shared))
    encoded = tokenizer_pb2.BatchEncodeResponse.FromString(raw)
    check_bytes(encoded, raw)
    assert [list(result.ids) for result in encoded.results] == expected
    assert [result.HasField("error") for result in encoded.results] == bad
    raw = raw_answer(server, "BatchCount", tokenizer_pb2.BatchCountRequest(**shared))
    counted = tokenizer_pb2.BatchCountResponse.FromString(raw)
    check_bytes(counted, raw)
    assert [result.count for result in counted.results] == [len(ids) for ids in expected]
    assert [result.HasField("error") for result in counted.results] == bad
    for answer in (encoded, counted):
        assert (answer.encoding, answer.fingerprint) == ("cl100k_base", ENCODING.fingerprint)


@given(TEXT, st.none() | st.integers(0, 10))
def test_count_answers_are_those_of_protobuf(
    server: RunningServer, text: str, limit: int | None
) -> None:
    request = tokenizer_pb2.CountRequest(encoding="gpt-4", text=text, limit=limit)
    raw = raw_answer(server, "Count", request)
    answer = tokenizer_pb2.CountResponse.FromString(raw)
    assert answer.SerializeToString() == raw
    count = len(ENCODING.encode_ordinary(text))
    expected = count if limit is None else min(count, limit + 1)
    assert (answer.count, answer.limit_exceeded) == (
        expected,
        limit is not None and count > limit,
    )


@given(
    IDS,
    st.sampled_from(list(text_pb2.DecodeErrors.values())),
    st.booleans(),
    st.booleans(),
    st.text(max_size=200),
)
def test_ids_are_parsed_from_a_request(
    ids: list[int], errors: Any, skip: bool, as_bytes: bool, fingerprint: str
) -> None:
    request = Decode(
        encoding="gpt-4",
        ids=ids,
        errors=errors,
        skip_special_tokens=skip,
        as_bytes=as_bytes,
        expected_fingerprint=fingerprint,
    )
    (found, content), _ = take_ids(Decode, request.SerializeToString())
    assert list(content) == ids
    request.ClearField("ids")
    assert found == request


@given(st.lists(IDS, max_size=4), st.booleans())
def test_items_are_parsed_from_a_request(batch: list[list[int]], as_bytes: bool) -> None:
    request = BatchDecode(
        encoding="gpt-4", items=[{"ids": ids} for ids in batch], as_bytes=as_bytes
    )
    (found, content), _ = take_items(BatchDecode, request.SerializeToString())
    assert [list(ids) for ids in content] == batch
    request.ClearField("items")
    assert found == request


FIELDS = st.sampled_from([Decode(ids=[n]).SerializeToString() for n in (1, 300, 70_000)])
PARTS = st.lists(
    FIELDS
    | st.binary(max_size=4)
    | st.sampled_from(
        [b"\x10\x05", b"\x12\x02\x80\x80", b"\x12\x80\x00", b"\x12\x06" + b"\xff" * 6]
    )
    | st.just(
        Decode(
            encoding="gpt-4", as_bytes=True, errors=text_pb2.DECODE_ERRORS_STRICT
        ).SerializeToString()
    )
).map(b"".join)


@given(PARTS | st.binary(max_size=40))
def test_ids_in_arbitrary_bytes_are_parsed_as_by_protobuf(raw: bytes) -> None:
    """Ids in several fields, unpacked ids, malformed ids, and unknown fields."""
    try:
        expected = Decode.FromString(raw)
    except DecodeError:
        with pytest.raises((InvalidField, InvalidText)):
            take_ids(Decode, raw)
        return
    (found, content), _ = take_ids(Decode, raw)
    assert list(content) == list(expected.ids)
    expected.ClearField("ids")
    found.ClearField("ids")  # protobuf parses them only if the parser left them there
    assert found == expected


ITEM = PARTS | st.just(b"") | st.binary(max_size=4) | IDS.map(pack).map(lambda ids: field(1, ids))


@given(st.lists(PARTS | ITEM.map(lambda item: element(ITEMS, item)), max_size=4).map(b"".join))
def test_items_in_arbitrary_bytes_are_parsed_as_by_protobuf(raw: bytes) -> None:
    try:
        expected = BatchDecode.FromString(raw)
    except DecodeError:
        with pytest.raises((InvalidField, InvalidText)):
            take_items(BatchDecode, raw)
        return
    (found, content), _ = take_items(BatchDecode, raw)
    assert [list(ids) for ids in content] == [list(item.ids) for item in expected.items]
    expected.ClearField("items")
    found.ClearField("items")
    assert found == expected


@given(st.lists(st.binary(max_size=8) | IDS.map(pack)).map(b"".join))
def test_varints_are_parsed_as_by_protobuf(data: bytes) -> None:
    values = unpack(data)
    assert values == unpack_slowly(data)
    try:
        expected = list(tokenizer_pb2.IdsItem.FromString(b"\x0a" + pack((len(data),)) + data).ids)
    except DecodeError:
        assert values is None
    else:
        # protobuf accepts varints of more than five bytes, though no writer makes them
        assert values is None or list(values) == expected


@given(IDS)
def test_packed_ids_are_counted(ids: list[int]) -> None:
    assert number_of(pack(ids)) == len(ids)


def test_every_encoding_of_the_ids_gives_the_same_ids(server: RunningServer) -> None:
    method: Any = server.channel.unary_unary(SERVICE + "Decode")
    texts = [
        tokenizer_pb2.DecodeResponse.FromString(method(raw)).text
        for raw in (
            Decode(encoding="gpt-4", ids=[15339, 1917]).SerializeToString(),
            # The same ids unpacked, and in two fields.
            Decode(encoding="gpt-4").SerializeToString() + b"\x10\xeb\x77\x10\xfd\x0e",
            Decode(encoding="gpt-4", ids=[15339]).SerializeToString()
            + Decode(ids=[1917]).SerializeToString(),
        )
    ]
    assert texts == ["hello world"] * 3


def test_every_encoding_of_the_items_gives_the_same_items(server: RunningServer) -> None:
    method: Any = server.channel.unary_unary(SERVICE + "BatchDecode")
    head = BatchDecode(encoding="gpt-4").SerializeToString()
    for item in (
        pack((15339, 1917)).join((b"\x0a\x04", b"")),
        b"\x08\xeb\x77\x08\xfd\x0e",  # unpacked
        b"\x0a\x02\xeb\x77\x0a\x02\xfd\x0e",  # in two fields
        b"\x0a\x04\xeb\x77\xfd\x0e\x12\x01x",  # beside an unknown field
    ):
        answer = method(head + element(ITEMS, item) + element(ITEMS, b""))
        results = tokenizer_pb2.BatchDecodeResponse.FromString(answer).results
        assert [result.text for result in results] == ["hello world", ""]
