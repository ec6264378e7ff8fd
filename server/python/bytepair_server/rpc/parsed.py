"""Parse requests without copying their large fields (text or ids) into protobuf messages.

The native transport's library extracts these fields. Without it, or if a request is not a simple
one, protobuf parses all of it. Each parser raises like `wire.parse`, except for texts that are not
UTF-8, and also returns the number of the request's parts: elements that cost time even if they are
short.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from bytepair.v1 import text_pb2, tokenizer_pb2
from bytepair_engine.backends.varint import unpack

from bytepair_server.rpc import wire

#: A name, and the UTF-8 of a text; None if there is no text.
Named = tuple[str, bytes | None]

try:
    from bytepair_server import _transport

    take_field: Callable[..., tuple[bytes, list[bytes]] | None] = _transport.take_field
    take_named_texts: Callable[..., tuple[bytes, list[Named]] | None] = _transport.take_named_texts
except ImportError:
    take_field = take_named_texts = lambda *_: None  # protobuf parses each message


HasText = TypeVar("HasText", tokenizer_pb2.EncodeRequest, tokenizer_pb2.CountRequest)
HasTexts = TypeVar("HasTexts", tokenizer_pb2.BatchEncodeRequest, tokenizer_pb2.BatchCountRequest)


# Each is a request, mostly without its large field, and that field.

#: A text; if bytes, not yet verified to be UTF-8.
ParsedText = tuple[HasText, str | bytes]
#: The items' texts, not yet verified to be UTF-8; None unless every item is a plain text: then the
#: request has its items.
ParsedTexts = tuple[HasTexts, list[bytes] | None]
ParsedIds = tuple[tokenizer_pb2.DecodeRequest, Sequence[int]]
ParsedItems = tuple[tokenizer_pb2.BatchDecodeRequest, Sequence[Sequence[int]]]


def take_text(request_class: type[HasText], raw: bytes) -> tuple[ParsedText[HasText], int]:
    """Parse a request with a text. Parts are segments and allowed special tokens."""
    taken = take_field(raw, request_class.TEXT_FIELD_NUMBER)
    text: str | bytes
    if taken is None or len(taken[1]) != 1:
        request = wire.parse(request_class, raw)
        text = request.text
    else:
        rest, (text,) = taken
        request = wire.parse(request_class, rest)
    return (request, text), len(request.segments) + len(request.allowed_special)


def take_texts(request_class: type[HasTexts], raw: bytes) -> tuple[ParsedTexts[HasTexts], int]:
    """Parse a batch of texts. Parts are items, segments and allowed special tokens."""
    text = text_pb2.TextItem.TEXT_FIELD_NUMBER
    taken = take_field(raw, request_class.ITEMS_FIELD_NUMBER, text)
    rest, texts = (raw, None) if taken is None else taken
    request = wire.parse(request_class, rest)
    parts = len(request.allowed_special) + (0 if texts is None else len(texts))
    return (request, texts), parts + sum(1 + len(item.segments) for item in request.items)


def take_ids(request_class: type[tokenizer_pb2.DecodeRequest], raw: bytes) -> tuple[ParsedIds, int]:
    """Parse a request with ids, which has no parts."""
    taken = take_field(raw, request_class.IDS_FIELD_NUMBER)
    if taken is not None and len(taken[1]) <= 1:
        ids = unpack(b"".join(taken[1]))
        if ids is not None:
            return (wire.parse(request_class, taken[0]), ids), 0
    request = wire.parse(request_class, raw)
    # Reading a list is far faster than reading protobuf's container.
    return (request, request.ids[:]), 0


def take_items(
    request_class: type[tokenizer_pb2.BatchDecodeRequest], raw: bytes
) -> tuple[ParsedItems, int]:
    """Parse a batch of ids. Parts are items."""
    inner = tokenizer_pb2.IdsItem.IDS_FIELD_NUMBER
    taken = take_field(raw, request_class.ITEMS_FIELD_NUMBER, inner)
    if taken is not None:
        items = [ids for item in taken[1] if (ids := unpack(item)) is not None]
        if len(items) == len(taken[1]):
            return (wire.parse(request_class, taken[0]), items), len(items)
    request = wire.parse(request_class, raw)
    return (request, [item.ids[:] for item in request.items]), len(request.items)
