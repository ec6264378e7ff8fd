"""Translate between proto3 JSON, for the Connect protocol, and protobuf bytes.

Most messages hold only strings, integers and lists of them. They are translated here, in a third of
the time of protobuf's own translation, which does the rest and reports errors.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from functools import cache
from typing import Any, Final

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto
from google.protobuf.message import Message

from bytepair_server.errors import InvalidField
from bytepair_server.rpc import limits

#: Maximum size of a request in JSON, which costs several times the binary form.
MAX_BYTES: Final = 1 << 20

#: What protobuf's errors say without quoting a value: which field, enum and position.
_INVALID_FIELD: Final = re.compile(r"(?:Failed to parse \w+ field: )+")
_NAME: Final = re.compile(r"parse (\w+) field")
_ENUM: Final = re.compile(r"(?s)Invalid enum value .* for enum type ([\w.]*\w)")
_POSITION: Final = re.compile(r"line \d+ column \d+")

#: The JSON types of plain fields. A 64-bit integer may be a string in JSON.
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
    """Convert a request from JSON to protobuf bytes.

    Args:
        raw: The JSON; empty for a request without fields.
        request_class: The class of the request.
    Raises:
        InputTooLarge: It has more than `MAX_BYTES`.
        InvalidField: It is not such a request; the error names an unknown field.
    """
    limits.check("request", len(raw), MAX_BYTES, "bytes of JSON")
    message = _read_plain(raw, request_class)
    if message is None:
        if raw and not raw.lstrip().startswith(b"{"):  # protobuf reads [] as an empty message
            raise InvalidField("request", "the JSON is not an object")
        try:
            message = json_format.Parse(raw or b"{}", request_class())
        except UnicodeDecodeError:
            raise InvalidField("request", "the JSON is not UTF-8") from None
        except RecursionError:
            raise InvalidField("request", "the JSON is nested too deeply") from None
        except json_format.ParseError as error:
            raise InvalidField("request", _problem(error, request_class)) from None
    return message.SerializeToString()


def write(raw: bytes, response_class: type[Message]) -> bytes:
    """Convert a response to JSON, without fields that have their default value."""
    message = response_class.FromString(raw)
    plain = _write_plain(message)
    if plain is not None:
        return json.dumps(plain).encode()
    return json_format.MessageToJson(message, indent=None).encode()


def _read_plain(raw: bytes, request_class: type[Message]) -> Message | None:
    """The request; None if a value is not plain or invalid."""
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
    """A JSON object, which may repeat a key."""


@cache
def _plain_fields(descriptor: Descriptor) -> dict[str, tuple[str, type, bool]]:
    """For each JSON name: the field's name, the type of its values, and whether it is repeated."""
    declared = DescriptorProto()
    descriptor.CopyToProto(declared)  # versions of protobuf differ in how descriptors say it
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
    """The JSON object; None if a value is not plain."""
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


def _problem(error: json_format.ParseError, request_class: type[Message]) -> str:
    """A description of the error that does not quote the request."""
    message = str(error)
    if 'no field named "' in message:
        name = message.partition('no field named "')[2].partition('"')[0][:64]
        return f"unknown field {name!r}"
    if found := _INVALID_FIELD.match(message):
        path = ".".join(_NAME.findall(found[0]))
        return f"{path}: {_value_problem(message[found.end() :], request_class)}"
    if "duplicate key" in message:
        return "a key is given twice"
    found = _POSITION.search(message)
    return f"not JSON at {found[0]}" if found else "not the JSON of this request"


def _value_problem(message: str, request_class: type[Message]) -> str:
    if message.startswith("repeated field"):
        return "must be a list"
    if message.startswith("Unpaired surrogate"):
        return r"the text has half of a surrogate pair, such as \ud83d without \ude42"
    if enum := _ENUM.match(message):
        with suppress(KeyError):  # a value may contain the words of the error
            values = request_class.DESCRIPTOR.file.pool.FindEnumTypeByName(enum[1]).values
            return f"must be one of {', '.join(value.name for value in values if value.number)}"
    return "the value has the wrong type, or is out of range"
