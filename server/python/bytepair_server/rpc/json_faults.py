"""What is wrong with a JSON request that protobuf rejects: the field and what it must be.

protobuf's own messages name either the field or the value, and not always the field. These name the
field as the caller wrote it, and never quote a value.
"""

from __future__ import annotations

import json
from typing import Any, Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto
from google.protobuf.message import Message

from bytepair_server.errors import InvalidField

#: The maximum of integers, by type; the minimum is 0.
_MAX: Final = {
    FieldDescriptor.CPPTYPE_UINT32: 2**32 - 1,
    FieldDescriptor.CPPTYPE_UINT64: 2**64 - 1,
}
_MAX_SHOWN: Final = 64  # characters of a name that the API does not have


class Pairs(list[tuple[str, Any]]):
    """A JSON object, which may repeat a key."""


def find_fault(raw: bytes, request_class: type[Message]) -> InvalidField:
    """Find the first fault of a request that protobuf rejects."""
    request: Any = request_class.DESCRIPTOR
    problem = "not the JSON of this request"
    try:
        value = json.loads(raw.decode(), object_pairs_hook=Pairs)
        if isinstance(value, Pairs):
            return _of_object(value, request, "") or InvalidField("request", problem)
        problem = "the JSON is not an object"
    except UnicodeDecodeError:
        problem = "the JSON is not UTF-8"
    except json.JSONDecodeError as error:
        problem = f"not JSON at line {error.lineno} column {error.colno}"
        if raw.startswith(b"\xef\xbb\xbf"):
            problem = "the JSON starts with a byte order mark: leave it out"
    except RecursionError:
        problem = "the JSON is nested too deeply"
    except ValueError:  # of more digits than Python reads
        problem = "the JSON holds a number that is too long"
    return InvalidField("request", problem)


def repeated_fields(message: Descriptor) -> frozenset[str]:
    """The names of the fields that are lists or maps."""
    declared = DescriptorProto()
    message.CopyToProto(declared)  # versions of protobuf differ in how descriptors say it
    return frozenset(field.name for field in declared.field if field.label == field.LABEL_REPEATED)


def _of_object(pairs: Pairs, message: Descriptor, parent: str) -> InvalidField | None:
    lists = repeated_fields(message)
    seen: set[str] = set()
    chosen: dict[str, str] = {}  # for each oneof, the key that is given
    for key, value in pairs:
        field = message.fields_by_camelcase_name.get(key) or message.fields_by_name.get(key)
        if field is None:
            where = parent.removesuffix(".") or "request"
            return InvalidField(where, f"unknown field {key[:_MAX_SHOWN]!r}")
        path = parent + key
        if key in seen:
            return InvalidField(path, "is given twice")
        seen.add(key)
        if value is None:  # as if it were absent
            continue
        if (choice := field.containing_oneof) is not None:
            if choice.name in chosen:
                return InvalidField(path, f"excludes {chosen[choice.name]}")
            chosen[choice.name] = key
        problem = _of_field(field, value, path, is_list=field.name in lists)
        if problem is not None:
            return problem
    return None


def _of_field(
    field: FieldDescriptor, value: Any, path: str, *, is_list: bool
) -> InvalidField | None:
    if not is_list:
        return _of_value(field, value, path)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        of_values = field.message_type.fields_by_name["value"]
        if not isinstance(value, Pairs):
            return InvalidField(path, "must be an object")
        found = (_of_value(of_values, each, f"{path}[{key[:_MAX_SHOWN]!r}]") for key, each in value)
    elif type(value) is not list:
        return InvalidField(path, "must be a list")
    else:
        found = (_of_value(field, each, f"{path}[{i}]") for i, each in enumerate(value))
    return next(filter(None, found), None)


def _of_value(field: FieldDescriptor, value: Any, path: str) -> InvalidField | None:
    expected = None
    if field.message_type is not None:
        if isinstance(value, Pairs):
            return _of_object(value, field.message_type, f"{path}.")
        expected = "an object"
    elif field.enum_type is not None:
        values = field.enum_type.values
        known = {each.name for each in values} | {each.number for each in values}
        if isinstance(value, bool) or not isinstance(value, str | int) or value not in known:
            expected = f"one of {', '.join(each.name for each in values if each.number)}"
    elif field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        if not isinstance(value, str):
            expected = "a string"
        elif any("\ud800" <= character <= "\udfff" for character in value):
            return InvalidField(
                path, r"the text has half of a surrogate pair, such as \ud83d without \ude42"
            )
    elif field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        expected = None if isinstance(value, bool) else "true or false"
    elif field.cpp_type in _MAX and not _is_integer(value, _MAX[field.cpp_type]):
        expected = f"an integer from 0 to {_MAX[field.cpp_type]}"
    return None if expected is None else InvalidField(path, f"must be {expected}")


def _is_integer(value: Any, most: int) -> bool:
    """Whether protobuf reads the value as an integer of that range: 1.0 and "1" are integers."""
    if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
        return False
    try:
        return 0 <= int(value) <= most
    except (TypeError, ValueError):
        return False
