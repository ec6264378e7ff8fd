"""Translate between proto3 JSON, for the Connect protocol, and protobuf bytes.

It accepts what protobuf's own reader accepts, except an enum's number of more than 32 bits, and ""
or [] for a message. That reader's errors do not always name the field, and may quote the value; the
errors here name the field as the caller wrote it, and quote no value.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache, partial
from typing import Any, Final, NamedTuple

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from bytepair_server.errors import InvalidField, InvalidText
from bytepair_server.rpc import limits
from bytepair_server.rpc.wire import repeated_fields

#: Maximum size of a request in JSON, which costs several times the binary form.
MAX_BYTES: Final = 1 << 20

_MAX_SHOWN: Final = 64  # characters of a name that the API does not have
_INTEGERS_AS_STRINGS: Final = frozenset(
    (FieldDescriptor.CPPTYPE_UINT64, FieldDescriptor.CPPTYPE_INT64)
)

#: Converts a JSON value for protobuf. The field of its errors is the path within the value.
_Read = Callable[[Any], Any]


class _Pairs(list[tuple[str, Any]]):
    """A JSON object, which may repeat a key."""


def read(raw: bytes, request_class: type[Message]) -> bytes:
    """Convert a request from JSON to protobuf bytes.

    Args:
        raw: The JSON; empty for a request without fields.
        request_class: The class of the request. Its fields must be strings, booleans, unsigned
            integers, enums, messages, or lists or maps of these.
    Raises:
        InputTooLarge: It has more than `MAX_BYTES`.
        InvalidText: It is not UTF-8.
        InvalidField: It is not such a request; the error names the field.
    """
    limits.check("request", len(raw), MAX_BYTES, "bytes of JSON")
    descriptor: Any = request_class.DESCRIPTOR  # of a type that mypy does not know
    try:
        value = json.loads(raw.decode() or "{}", object_pairs_hook=_Pairs)
        if type(value) is _Pairs:
            return request_class(**_object(descriptor, value)).SerializeToString()
        problem = "the JSON is not an object"
    except InvalidField as fault:
        path = fault.field.removeprefix(".") or "request"
        raise InvalidField(path, fault.problem) from None
    except UnicodeDecodeError as error:
        raise InvalidText("request", error.start) from None
    except json.JSONDecodeError as error:
        problem = f"not JSON at line {error.lineno} column {error.colno}"
        if raw.startswith(b"\xef\xbb\xbf"):
            problem = "the JSON starts with a byte order mark: leave it out"
    except RecursionError:
        problem = "the JSON is nested too deeply"
    except ValueError:  # of more digits than Python reads
        problem = "the JSON holds a number that is too long"
    raise InvalidField("request", problem)


def write(raw: bytes, response_class: type[Message]) -> bytes:
    """Convert a response to JSON. Only a field with presence may be absent, if it is not set."""
    return json.dumps(_written(response_class.FromString(raw))).encode()


class _Field(NamedTuple):
    name: str
    oneof: str  # "" for none
    read: _Read


@cache
def _fields(message: Descriptor) -> dict[str, _Field]:
    """The fields of a message by their names in JSON."""
    lists, found = repeated_fields(message), {}
    for field in message.fields:
        read = _reader(field)
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            read = partial(_map, _reader(field.message_type.fields_by_name["value"]))
        elif field.name in lists:
            has_text = field.message_type and "text" in field.message_type.fields_by_name
            read = partial(_list, read, ', such as [{"text": "hello"}]' if has_text else "")
        elif field.name == "text" and f"Batch{message.name}" in message.file.message_types_by_name:
            read = partial(_text, f"Batch{message.name.removesuffix('Request')}")
        oneof = "" if field.containing_oneof is None else field.containing_oneof.name
        found[field.name] = found[field.json_name] = _Field(field.name, oneof, read)
    return found


def _names(message: Descriptor) -> str:
    names = ", ".join(field.json_name for field in message.fields)
    return f"the fields are {names}" if names else "it has no fields"


def _reader(field: FieldDescriptor) -> _Read:
    """The reader of one value of a field."""
    if field.message_type is not None:
        return partial(_object, field.message_type)
    if field.enum_type is not None:
        return partial(_enum, {value.name: value.number for value in field.enum_type.values})
    return _SCALARS[field.type]


def _object(message: Descriptor, value: Any) -> dict[str, Any]:
    if type(value) is not _Pairs:
        raise InvalidField("", f"must be an object; {_names(message)}")
    fields = _fields(message)
    found: dict[str, Any] = {}
    seen: set[str] = set()
    chosen: dict[str, str] = {}  # for each oneof, the key that is given
    for key, inside in value:
        if key not in fields:
            # A path of printable characters only, which every caller can show.
            shown = repr(key[:_MAX_SHOWN])[1:-1]
            raise InvalidField(f".{shown}", f"unknown field; {_names(message)}")
        name, oneof, read = fields[key]
        if key in seen:
            raise InvalidField(f".{key}", "is given twice")
        seen.add(key)
        if inside is None:  # as if it were absent
            found.pop(name, None)
            continue
        if oneof and (other := chosen.setdefault(oneof, key)) != key:
            raise InvalidField(f".{key}", f"excludes {other}")
        try:
            found[name] = read(inside)
        except InvalidField as fault:
            raise InvalidField(f".{key}{fault.field}", fault.problem) from None
    return found


def _map(read: _Read, value: Any) -> dict[str, Any]:
    if type(value) is not _Pairs:
        raise InvalidField("", "must be an object")
    found: dict[str, Any] = {}
    for key, inside in value:
        try:
            if key in found:
                raise InvalidField("", "is given twice")
            found[_string(key)] = read(inside)
        except InvalidField as fault:
            raise InvalidField(f"[{key[:_MAX_SHOWN]!r}]{fault.field}", fault.problem) from None
    return found


def _list(read: _Read, example: str, value: Any) -> list[Any]:
    if type(value) is not list:
        raise InvalidField("", f"must be a list{example}")
    found: list[Any] = []
    try:
        found.extend(map(read, value))  # keeps what was read before an error
    except InvalidField as fault:
        raise InvalidField(f"[{len(found)}]{fault.field}", fault.problem) from None
    return found


def _enum(numbers: Mapping[str, int], value: Any) -> int:
    """The number of a value. The service rejects one that the API does not have."""
    if isinstance(value, str) and value in numbers:
        return numbers[value]
    with suppress(TypeError, ValueError, OverflowError):
        if -(2**31) <= (number := int(value)) < 2**31:
            return number
    names = ", ".join(name for name, number in numbers.items() if number)
    raise InvalidField("", f"must be one of {names}")


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidField("", "must be a string")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidField(
            "", r"the text has half of a surrogate pair, such as \ud83d without \ude42"
        ) from None
    return value


def _text(batch: str, value: Any) -> str:
    if type(value) is list:
        raise InvalidField("", f"must be a string; for several texts call {batch}")
    return _string(value)


def _bool(value: Any) -> bool:
    if not isinstance(value, bool):
        raise InvalidField("", "must be true or false")
    return value


def _integer(most: int, value: Any) -> int:
    """An integer from 0 to `most`; 1.0, "1" and "1e3" are integers too."""
    if type(value) is int and 0 <= value <= most:
        return value
    if type(value) is float and value.is_integer() and 0 <= value <= most:
        return int(value)
    if type(value) is str and " " not in value:
        for kind in (int, float):  # a float has too few digits for every integer
            with suppress(ValueError):
                return _integer(most, kind(value))
    raise InvalidField("", f"must be an integer from 0 to {most}")


_SCALARS: Final[dict[int, _Read]] = {
    FieldDescriptor.TYPE_STRING: _string,
    FieldDescriptor.TYPE_BOOL: _bool,
    FieldDescriptor.TYPE_UINT32: partial(_integer, 2**32 - 1),
    FieldDescriptor.TYPE_UINT64: partial(_integer, 2**64 - 1),
}


def _written(message: Message) -> dict[str, Any]:
    written = {}
    for field, name, has_presence in _written_fields(message.DESCRIPTOR):
        if not has_presence or message.HasField(field.name):
            written[name] = _value(field, getattr(message, field.name))
    return written


@cache
def _written_fields(message: Descriptor) -> list[tuple[FieldDescriptor, str, bool]]:
    return [(field, field.json_name, field.has_presence) for field in message.fields]


def _value(field: FieldDescriptor, value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return json.dumps(value)  # "Infinity": JSON has no such numbers
    if isinstance(value, str | bool | float):
        return value
    if isinstance(value, int):
        if field.enum_type is not None:
            return field.enum_type.values_by_number[value].name
        return str(value) if field.cpp_type in _INTEGERS_AS_STRINGS else value
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Message):
        return _written(value)
    if isinstance(value, Mapping):
        return dict(value)  # of strings
    if field.cpp_type == FieldDescriptor.CPPTYPE_UINT32:
        return list(value)
    return [_value(field, each) for each in value]
