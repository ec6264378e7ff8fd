"""Token ids on the wire: packed ids in answers, and packed ids out of requests.

protobuf turns a list of 250,000 ids into a message in 18 ms, and needs the list first; the engine
writes the same bytes itself, and they are joined with what protobuf writes of the rest. Each
function here gives byte for byte what protobuf would.
"""

from __future__ import annotations

from array import array
from typing import Final

from bytepair.v1 import stream_pb2, tokenizer_pb2
from bytepair_engine.backends.varint import unpack

from bytepair_server.rpc.wire_fields import take

#: The numbers of the fields that are read and written here.
IDS: Final = tokenizer_pb2.EncodeResponse.IDS_FIELD_NUMBER
RESULTS: Final = tokenizer_pb2.BatchEncodeResponse.RESULTS_FIELD_NUMBER
_ITEM_IDS: Final = tokenizer_pb2.IdsItem.IDS_FIELD_NUMBER

#: Fields of other messages that are written as those of the same number.
assert stream_pb2.EncodeStreamResponse.IDS_FIELD_NUMBER == IDS
assert tokenizer_pb2.EncodeResult.IDS_FIELD_NUMBER == IDS

#: All bytes of a varint but its last one.
_CONTINUED: Final = bytes(range(0x80, 0x100))


def number_of(packed: bytes) -> int:
    """How many ids there are."""
    return len(packed.translate(None, _CONTINUED))


def take_ids(raw: bytes, number: int) -> tuple[bytes, array[int]] | None:
    """Take a packed field of ids out of a message.

    Args:
        raw: The message.
        number: The field's, up to 15.
    Returns:
        The message without the field, and its ids. None where that is not to be had simply, as
        for a message that is malformed or has its ids in another form: protobuf knows.
    """
    taken = take(raw, number)
    if taken is None:
        return None
    rest, found = taken
    if len(found) > 1:
        return None
    ids = unpack(found[0] if found else b"")
    return None if ids is None else (rest, ids)


def take_items(raw: bytes, number: int) -> tuple[bytes, list[array[int]]] | None:
    """Take the items of a batch out of its request, each of which is a packed field of ids.

    Args:
        raw: The request.
        number: The number of `items`, up to 15.
    Returns:
        The request without them, and the ids of each. None as of `take_ids`.
    """
    taken = take(raw, number)
    if taken is None:
        return None
    rest, found = taken
    items = []
    for item in found:
        inner = take_ids(item, _ITEM_IDS)
        if inner is None or inner[0]:
            return None  # there is nothing but ids in an item that is usual
        items.append(inner[1])
    return rest, items
