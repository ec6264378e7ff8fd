"""Parse request bytes to a protobuf message, with exact errors.

protobuf rejects a string field that is not UTF-8 without naming the field or the offset. After such
a failure the strings are found on the wire, as the unknown fields of a message without fields.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, TypeVar

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto
from google.protobuf.empty_pb2 import Empty
from google.protobuf.message import DecodeError, Message
from google.protobuf.unknown_fields import UnknownFieldSet

from bytepair_server.errors import InvalidField, InvalidText

M = TypeVar("M", bound=Message)


def parse(request_class: type[M], raw: bytes) -> M:
    """Parse a request.

    Raises:
        InvalidText: A string field is not UTF-8.
        InvalidField: The bytes are not a message of this type; its field is "request".
    """
    try:
        return request_class.FromString(raw)
    except DecodeError:
        raise _diagnosis(request_class, raw) from None


def repeated_fields(message: Descriptor) -> frozenset[str]:
    """The names of the fields that are lists or maps."""
    declared = DescriptorProto()
    message.CopyToProto(declared)  # versions of protobuf differ in how descriptors say it
    return frozenset(field.name for field in declared.field if field.label == field.LABEL_REPEATED)


def _diagnosis(request_class: type[Message], raw: bytes) -> InvalidText | InvalidField:
    message: Any = request_class.DESCRIPTOR
    malformed = InvalidField("request", f"these bytes are not a {message.full_name}")
    try:
        strings = [*_strings(message, raw, "")]
    except DecodeError:
        return malformed
    for path, value in strings:
        try:
            value.decode()
        except UnicodeDecodeError as error:
            return InvalidText(path, error.start)
    return malformed


def _strings(message: Descriptor, raw: bytes, prefix: str) -> Iterator[tuple[str, bytes]]:
    """The path and the bytes of each string. Raises DecodeError for malformed bytes."""
    lists, seen = repeated_fields(message), Counter[str]()
    unknown: Any = UnknownFieldSet(Empty.FromString(raw))
    for found in unknown:
        field = message.fields_by_number.get(found.field_number)
        if field is None or not isinstance(found.data, bytes):
            continue
        path = prefix + field.name
        if field.name in lists:
            path += f"[{seen[field.name]}]"
            seen[field.name] += 1
        if field.message_type is not None:
            yield from _strings(field.message_type, found.data, f"{path}.")
        elif field.type == FieldDescriptor.TYPE_STRING:
            yield path, found.data
