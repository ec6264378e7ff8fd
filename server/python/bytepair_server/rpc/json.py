"""proto3 JSON for callers of the Connect protocol, from and to protobuf bytes.

Most messages hold nothing but strings, integers and lists of them. Those are translated here, at a
third of what protobuf's own translation costs; it does the rest, and says what is wrong.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any, Final

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto
from google.protobuf.message import Message

from bytepair_server.errors import InvalidField
from bytepair_server.rpc import limits

#: JSON costs several times what the same message costs in binary form.
MAX_BYTES: Final = 1 << 20

#: What a value of a plain field is in JSON. A 64-bit integer may be a string there.
_READ: Final = {
    FieldDescriptor.CPPTYPE_STRING: str,
    FieldDescriptor.CPPTYPE_UINT32: int,
    FieldDescriptor.CPPTYPE_BOOL: bool,
}
_WRITTEN: Final = frozenset(
    (
        FieldDescriptor.CPPTYPE_STRING,
        FieldDescriptor.CPPTYPE_UINT32,
        FieldDescriptor.CPPTYPE_INT32,
        FieldDescriptor.CPPTYPE_BOOL,
    )
)
_WRITTEN_AS_STRING: Final = frozenset(
    (FieldDescriptor.CPPTYPE_UINT64, FieldDescriptor.CPPTYPE_INT64)
)


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
    message = _read_plain(raw, request_class)
    if message is None:
        try:
            message = json_format.Parse(raw or b"{}", request_class())
        except UnicodeDecodeError:
            raise InvalidField("request", "the JSON is not UTF-8") from None
        except RecursionError:
            raise InvalidField("request", "the JSON is nested too deeply") from None
        except json_format.ParseError as error:
            raise InvalidField("request", _problem(error)) from None
    return message.SerializeToString()


def write(raw: bytes, response_class: type[Message]) -> bytes:
    """A response as JSON, with fields that have their default value left out."""
    message = response_class.FromString(raw)
    plain = _write_plain(message)
    if plain is not None:
        return json.dumps(plain).encode()
    return json_format.MessageToJson(message, indent=None).encode()


def _read_plain(raw: bytes, request_class: type[Message]) -> Message | None:
    """None where a value is not plain, or anything is wrong."""
    try:
        pairs = json.loads(raw.decode(), object_pairs_hook=_Pairs)
        if type(pairs) is not _Pairs:
            return None
        plain = _plain_fields(request_class.DESCRIPTOR)
        found: dict[str, Any] = {}
        for key, value in pairs:
            name, kind, is_list = plain[key]
            right = set(map(type, value)) <= {kind} if is_list else type(value) is kind
            if name in found or not right or (is_list and type(value) is not list):
                return None
            found[name] = value
        return request_class(**found)
    except (KeyError, TypeError, ValueError, RecursionError):
        return None


class _Pairs(list[tuple[str, Any]]):
    """An object of JSON, in which a key may be there twice."""


@cache
def _plain_fields(descriptor: Descriptor) -> dict[str, tuple[str, type, bool]]:
    """By each name that JSON may have: the field's name, the type of its values, whether it is a
    list."""
    declared = DescriptorProto()
    descriptor.CopyToProto(declared)  # descriptors themselves say it by version in different ways
    lists = {field.name for field in declared.field if field.label == field.LABEL_REPEATED}
    plain = [
        field
        for field in descriptor.fields
        if field.cpp_type in _READ
        and field.type != FieldDescriptor.TYPE_BYTES
        and (field.containing_oneof is None or len(field.containing_oneof.fields) == 1)
    ]
    return {
        key: (field.name, _READ[field.cpp_type], field.name in lists)
        for field in plain
        for key in (field.name, field.json_name)
    }


def _write_plain(message: Message) -> dict[str, Any] | None:
    """None where a value is not plain."""
    found: dict[str, Any] = {}
    for field, value in message.ListFields():
        if field.type == FieldDescriptor.TYPE_BYTES:
            return None
        is_list = not isinstance(value, str | int)
        if field.cpp_type in _WRITTEN:
            found[field.json_name] = list(value) if is_list else value
        elif field.cpp_type in _WRITTEN_AS_STRING:
            found[field.json_name] = list(map(str, value)) if is_list else str(value)
        else:
            return None
    return found


def _problem(error: json_format.ParseError) -> str:
    """What is wrong, without the text of the request."""
    said = str(error)
    if 'no field named "' in said:
        name = said.partition('no field named "')[2].partition('"')[0][:64]
        return f"unknown field {name!r}"
    return "this is not JSON of such a request"
