"""The hand-written parser of text requests gives the same text as protobuf."""

from __future__ import annotations

from typing import Any

import pytest
from bytepair.v1 import text_pb2, tokenizer_pb2
from bytepair_server.errors import InvalidField, InvalidText
from bytepair_server.rpc.wire import element, take_text, take_texts
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st
from support.failures import failure
from support.serving import RunningServer

Count = tokenizer_pb2.CountRequest
Encode = tokenizer_pb2.EncodeRequest
NUMBER = Count.TEXT_FIELD_NUMBER
assert Encode.TEXT_FIELD_NUMBER == NUMBER
TEXTS = st.text(max_size=300).map(str.encode) | st.binary(max_size=8)
PARTS = st.lists(
    TEXTS.map(lambda text: element(NUMBER, text))
    | st.binary(max_size=4)
    | st.sampled_from(
        [
            Count(encoding="gpt-4", limit=3).SerializeToString(),
            Count(limit=2**40, allowed_special=["x"]).SerializeToString(),
            Encode(segments=[text_pb2.Segment(text="text")]).SerializeToString(),
            Encode(text="x", offsets=text_pb2.OFFSET_UNIT_BYTE).SerializeToString(),
            b"\x10\x05",  # a number in place of the text
            b"\x12\x80\x00",  # a length of more bytes than necessary
            b"\x12\x7fx",  # a length beyond the end
        ]
    ),
    max_size=5,
).map(b"".join)


@given(st.sampled_from([Count, Encode]), PARTS | st.binary(max_size=40))
def test_text_in_arbitrary_bytes_is_parsed_as_by_protobuf(kind: Any, raw: bytes) -> None:
    try:
        expected = kind.FromString(raw)
    except DecodeError:
        try:
            (found, content), _ = take_text(kind, raw)
        except (InvalidField, InvalidText):
            return
        # Only the text is invalid, which the caller of the parser reports.
        assert isinstance(content, bytes)
        with pytest.raises(UnicodeDecodeError):
            content.decode()
        return
    (found, content), _ = take_text(kind, raw)
    text = content if isinstance(content, str) else content.decode()
    assert text == expected.text
    expected.ClearField("text")
    found.ClearField("text")  # protobuf parses it only if the parser left it there
    assert found == expected


Batch = tokenizer_pb2.BatchCountRequest
ITEMS = Batch.ITEMS_FIELD_NUMBER
ITEM = TEXTS.map(lambda text: element(1, text)) | st.sampled_from(
    [
        b"",  # an empty text
        text_pb2.TextItem(segments=[text_pb2.Segment(text="x")]).SerializeToString(),
        b"\x0a\x01a\x0a\x01b",  # two texts
        # Two texts; the first three bytes could be a field that spans the whole message.
        b"\x0a\x64" + b"\x02" * 100 + b"\x0a\x7f" + b"b" * 127,
        b"\x0a\x01a\x50\x01",  # beside an unknown field
        b"\x0a\x05a",  # truncated
    ]
)


@given(st.lists(ITEM.map(lambda item: element(ITEMS, item)) | PARTS, max_size=4).map(b"".join))
def test_items_with_arbitrary_bytes_are_parsed_as_by_protobuf(raw: bytes) -> None:
    try:
        expected = Batch.FromString(raw)
    except DecodeError:
        try:
            (found, content), _ = take_texts(Batch, raw)
        except (InvalidField, InvalidText):
            return
        assert content is not None
        with pytest.raises(UnicodeDecodeError):
            [text.decode() for text in content]
        return
    (found, content), _ = take_texts(Batch, raw)
    if content is None:
        assert found == expected
        return
    assert [text_pb2.TextItem(text=text.decode()) for text in content] == list(expected.items)
    expected.ClearField("items")
    assert found == expected


@pytest.mark.parametrize("rpc", ["BatchCount", "BatchEncode"])
@pytest.mark.parametrize("action", text_pb2.DisallowedSpecial.values())
def test_an_item_that_is_not_utf8_is_reported(server: RunningServer, rpc: str, action: Any) -> None:
    rest = Batch(encoding="gpt-4", disallowed_special=action).SerializeToString()
    items = [element(1, text) for text in (b"a", b"<|endoftext|>", b"ab\xe2\x82", b"\xff")]
    method: Any = server.channel.unary_unary(f"/bytepair.v1.TokenizerService/{rpc}")
    found = failure(method, rest + b"".join(element(ITEMS, item) for item in items))
    assert (found.reason, found.field) == ("INVALID_UTF8", "items[2].text")
    assert found.metadata == {"byte_offset": "2"}


@pytest.mark.parametrize("offsets", text_pb2.OffsetUnit.values())
def test_text_that_is_not_utf8_is_reported_whatever_is_requested(
    server: RunningServer, offsets: Any
) -> None:
    rest = Encode(encoding="gpt-4", offsets=offsets).SerializeToString()
    method: Any = server.channel.unary_unary("/bytepair.v1.TokenizerService/Encode")
    found = failure(method, rest + element(NUMBER, "é".encode() + b"\xff"))
    assert (found.reason, found.metadata) == ("INVALID_UTF8", {"byte_offset": "2"})
