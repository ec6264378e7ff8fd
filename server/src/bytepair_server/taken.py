"""Requests apart from what is large in them: the text or the ids, as they came on the wire."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from bytepair.v1 import tokenizer_pb2

from bytepair_server import wire, wire_fields, wire_ids

HasText = TypeVar("HasText", tokenizer_pb2.EncodeRequest, tokenizer_pb2.CountRequest)


@dataclass(slots=True)
class TakenText(Generic[HasText]):
    """A request apart from its text.

    Attributes:
        request: The rest.
        text: The text; as bytes, which need not be UTF-8, where protobuf did not read it.
    """

    request: HasText
    text: str | bytes


@dataclass(slots=True)
class TakenIds:
    """A request apart from its ids."""

    request: tokenizer_pb2.DecodeRequest
    ids: Sequence[int]


@dataclass(slots=True)
class TakenItems:
    """A request of a batch apart from the ids of its items."""

    request: tokenizer_pb2.BatchDecodeRequest
    items: Sequence[Sequence[int]]


def take_text(request_class: type[HasText], raw: bytes) -> TakenText[HasText]:
    """Read a request. Raises what `wire.parse` does, but for a text that is not UTF-8."""
    taken = wire_fields.take(raw, request_class.TEXT_FIELD_NUMBER)
    if taken is None or len(taken[1]) != 1:
        request = wire.parse(request_class, raw)
        return TakenText(request, request.text)
    rest, (text,) = taken
    return TakenText(wire.parse(request_class, rest), text)


def take_ids(request_class: type[tokenizer_pb2.DecodeRequest], raw: bytes) -> TakenIds:
    """Read a request. Raises what `wire.parse` does."""
    taken = wire_ids.take_ids(raw, request_class.IDS_FIELD_NUMBER)
    if taken is None:
        request = wire.parse(request_class, raw)
        return TakenIds(request, request.ids[:])  # a list is read far faster than protobuf's own
    rest, ids = taken
    return TakenIds(wire.parse(request_class, rest), ids)


def take_items(request_class: type[tokenizer_pb2.BatchDecodeRequest], raw: bytes) -> TakenItems:
    """Read a request. Raises what `wire.parse` does."""
    taken = wire_ids.take_items(raw, request_class.ITEMS_FIELD_NUMBER)
    if taken is None:
        request = wire.parse(request_class, raw)
        return TakenItems(request, [item.ids[:] for item in request.items])
    rest, items = taken
    return TakenItems(wire.parse(request_class, rest), items)
