"""Size limits, checked before any work. Every limit is inclusive."""

from __future__ import annotations

from typing import Final

from bytepair_server.errors import InputTooLarge, InvalidField, RequestRejected
from bytepair_server.transport.interface import Code, UnreadableMessage

#: What `max_segments` counts in a chat, as errors name it.
PARTS: Final = "messages, parts, calls and tools"


def check(field: str, size: int, limit: int, unit: str) -> None:
    """Raise InputTooLarge if the size of a request's field exceeds `limit`. Both are in `unit`,
    plural, for people: "bytes", "ids"."""
    if size > limit:
        raise InputTooLarge(field, size, limit, unit)


def unreadable(error: UnreadableMessage, field: str, limit: int, unit: str) -> RequestRejected:
    """The error of a call whose message cannot be read, maybe because it exceeds `limit`."""
    if error.code == Code.RESOURCE_EXHAUSTED:
        return InputTooLarge(field, None, limit, unit)
    return InvalidField("request", str(error))
