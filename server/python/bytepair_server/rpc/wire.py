"""Parse request bytes to a protobuf message, with exact errors.

protobuf rejects a string field that is not UTF-8 without naming the field or the offset. After such
a failure the bytes are parsed again as a twin of the message in which every `string` is `bytes`,
and every map a list: both have the same wire format.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice
from typing import Any, Final, TypeVar

from bytepair.v1 import chat_pb2, tokenizer_pb2
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor, FileDescriptor
from google.protobuf.message import DecodeError, Message

from bytepair_server.errors import InvalidField, InvalidText

#: Maximum strings and messages in which text that is not UTF-8 is found. A request may hold
#: millions, and each takes microseconds.
MAX_SEARCHED: Final = 1 << 16

M = TypeVar("M", bound=Message)


def parse(request_class: type[M], raw: bytes) -> M:
    """Parse a request.

    Raises:
        InvalidText: A string field is not UTF-8.
        InvalidField: The bytes are not a message of this type, or their text that is not UTF-8 is
            after `MAX_SEARCHED` others; its field is "request".
    """
    try:
        return request_class.FromString(raw)
    except DecodeError:
        raise _diagnosis(request_class, raw) from None


def repeated_fields(message: Descriptor) -> frozenset[str]:
    """The names of the fields that are lists or maps."""
    declared = descriptor_pb2.DescriptorProto()
    message.CopyToProto(declared)  # versions of protobuf differ in how descriptors say it
    return frozenset(field.name for field in declared.field if field.label == field.LABEL_REPEATED)


def _diagnosis(request_class: type[Message], raw: bytes) -> InvalidText | InvalidField:
    name = request_class.DESCRIPTOR.full_name
    twin = message_factory.GetMessageClass(_twins().FindMessageTypeByName(name))
    try:
        message = twin.FromString(raw)
    except DecodeError:
        return InvalidField("request", f"these bytes are not a {name}")
    for path, value in islice(_strings(message, ""), MAX_SEARCHED):
        try:
            value.decode("utf-8")
        except UnicodeDecodeError as error:
            return InvalidText(path, error.start)
    return InvalidField("request", f"these bytes are not a {name}")


def _strings(message: Message, prefix: str) -> Iterator[tuple[str, bytes]]:
    """The path and the bytes of each string, and b"" for each message, which takes as long."""
    for descriptor, value in message.ListFields():
        path = prefix + descriptor.name
        if descriptor.type not in (FieldDescriptor.TYPE_MESSAGE, FieldDescriptor.TYPE_BYTES):
            continue
        if isinstance(value, Message | bytes):
            values: Iterable[tuple[str, Any]] = [(path, value)]
        else:
            values = ((f"{path}[{index}]", each) for index, each in enumerate(value))
        for path_of_one, each in values:
            if isinstance(each, Message):
                yield path_of_one, b""
                yield from _strings(each, path_of_one + ".")
            else:
                yield path_of_one, each


@lru_cache(maxsize=1)
def _twins() -> descriptor_pool.DescriptorPool:
    pool = descriptor_pool.DescriptorPool()
    for source in (tokenizer_pb2.DESCRIPTOR, chat_pb2.DESCRIPTOR):
        _add_twins(pool, source)
    return pool


def _add_twins(pool: descriptor_pool.DescriptorPool, source: FileDescriptor) -> None:
    for imported in source.dependencies:
        _add_twins(pool, imported)  # again, for one that several files import
    file = descriptor_pb2.FileDescriptorProto()
    source.CopyToProto(file)
    for message in file.message_type:
        for each in (message, *message.nested_type):
            each.options.ClearField("map_entry")
            for declared in each.field:
                if declared.type == declared.TYPE_STRING:
                    declared.type = declared.TYPE_BYTES
    pool.AddSerializedFile(file.SerializeToString())
