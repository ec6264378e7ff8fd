"""Parsed requests, whose large fields (text or ids) are not copied into protobuf messages.

protobuf parses the whole request if it is not a simple one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

from bytepair.v1 import text_pb2, tokenizer_pb2
from bytepair_engine.backends.varint import unpack

from bytepair_server.rpc import wire
from bytepair_server.rpc.fields import take_field

HasText = TypeVar("HasText", tokenizer_pb2.EncodeRequest, tokenizer_pb2.CountRequest)
HasTexts = TypeVar("HasTexts", tokenizer_pb2.BatchEncodeRequest, tokenizer_pb2.BatchCountRequest)


@dataclass(slots=True)
class ParsedText(Generic[HasText]):
    """A request with its text.

    Attributes:
        request: The request without its text.
        text: The text; if bytes, not yet verified to be UTF-8.
    """

    request: HasText
    text: str | bytes

    @property
    def parts(self) -> int:
        """Number of segments and allowed special tokens."""
        return len(self.request.segments) + len(self.request.allowed_special)


@dataclass(slots=True)
class ParsedTexts(Generic[HasTexts]):
    """A batch request with its texts.

    Attributes:
        request: The request; without its items if `texts` is set.
        texts: The items' texts, not yet verified to be UTF-8; None unless every item is a plain
            text.
    """

    request: HasTexts
    texts: list[bytes] | None

    @property
    def parts(self) -> int:
        """Number of items, segments and allowed special tokens."""
        own = len(self.request.allowed_special)
        if self.texts is not None:
            return own + len(self.texts)
        return own + sum(1 + len(item.segments) for item in self.request.items)


@dataclass(slots=True)
class ParsedIds:
    """A request with its ids."""

    request: tokenizer_pb2.DecodeRequest
    ids: Sequence[int]

    #: No elements that cost time by their number.
    parts: ClassVar[int] = 0


@dataclass(slots=True)
class ParsedItems:
    """A batch request with the ids of its items."""

    request: tokenizer_pb2.BatchDecodeRequest
    items: Sequence[Sequence[int]]

    @property
    def parts(self) -> int:
        """Number of items."""
        return len(self.items)


def take_text(request_class: type[HasText], raw: bytes) -> ParsedText[HasText]:
    """Parse a request. Raises like `wire.parse`, except for a text that is not UTF-8."""
    taken = take_field(raw, request_class.TEXT_FIELD_NUMBER)
    if taken is None or len(taken[1]) != 1:
        request = wire.parse(request_class, raw)
        return ParsedText(request, request.text)
    rest, (text,) = taken
    return ParsedText(wire.parse(request_class, rest), text)


def take_texts(request_class: type[HasTexts], raw: bytes) -> ParsedTexts[HasTexts]:
    """Parse a request. Raises like `wire.parse`, except for texts that are not UTF-8."""
    text = text_pb2.TextItem.TEXT_FIELD_NUMBER
    taken = take_field(raw, request_class.ITEMS_FIELD_NUMBER, text)
    if taken is None:
        return ParsedTexts(wire.parse(request_class, raw), None)
    rest, texts = taken
    return ParsedTexts(wire.parse(request_class, rest), texts)


def take_ids(request_class: type[tokenizer_pb2.DecodeRequest], raw: bytes) -> ParsedIds:
    """Parse a request. Raises like `wire.parse`."""
    taken = take_field(raw, request_class.IDS_FIELD_NUMBER)
    if taken is not None and len(taken[1]) <= 1:
        ids = unpack(b"".join(taken[1]))
        if ids is not None:
            return ParsedIds(wire.parse(request_class, taken[0]), ids)
    request = wire.parse(request_class, raw)
    return ParsedIds(
        request, request.ids[:]
    )  # reading a list is far faster than reading protobuf's container


def take_items(request_class: type[tokenizer_pb2.BatchDecodeRequest], raw: bytes) -> ParsedItems:
    """Parse a request. Raises like `wire.parse`."""
    inner = tokenizer_pb2.IdsItem.IDS_FIELD_NUMBER
    taken = take_field(raw, request_class.ITEMS_FIELD_NUMBER, inner)
    if taken is not None:
        items = [ids for item in taken[1] if (ids := unpack(item)) is not None]
        if len(items) == len(taken[1]):
            return ParsedItems(wire.parse(request_class, taken[0]), items)
    request = wire.parse(request_class, raw)
    return ParsedItems(request, [item.ids[:] for item in request.items])
