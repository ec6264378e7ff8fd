"""proto3 JSON for callers of the Connect protocol, from and to protobuf bytes."""

from __future__ import annotations

from typing import Final

from google.protobuf import json_format
from google.protobuf.message import Message

from bytepair_server.errors import InvalidField
from bytepair_server.rpc import limits

#: JSON costs thirty times what the same message costs in binary form.
MAX_BYTES: Final = 1 << 20


def read(raw: bytes, request_class: type[Message]) -> bytes:
    """A request in binary form.

    Args:
        raw: JSON; empty for a request without fields.
        request_class: What it is to be.
    Raises:
        InputTooLarge: There is more than `MAX_BYTES` of it.
        InvalidField: It is no such request; a field that the request does not have is named.
    """
    limits.check("request", len(raw), MAX_BYTES, "bytes of JSON")
    try:
        message = json_format.Parse(raw or b"{}", request_class())
    except UnicodeDecodeError:
        raise InvalidField("request", "the JSON is not UTF-8") from None
    except json_format.ParseError as error:
        raise InvalidField("request", _problem(error)) from None
    return message.SerializeToString()


def write(raw: bytes, response_class: type[Message]) -> bytes:
    """A response as JSON, with fields that have their default value left out."""
    message = response_class.FromString(raw)
    return json_format.MessageToJson(message, indent=None).encode()


def _problem(error: json_format.ParseError) -> str:
    """What is wrong, without the text of the request."""
    said = str(error)
    if 'no field named "' in said:
        name = said.partition('no field named "')[2].partition('"')[0][:64]
        return f"there is no field named {name!r}"
    return "this is not JSON of such a request"
