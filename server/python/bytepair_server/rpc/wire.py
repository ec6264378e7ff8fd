"""The wire format: parse requests, with exact errors, and serialise fields of answers.

protobuf rejects a string field that is not UTF-8 without naming the field or the offset. After such
a failure the bytes are parsed again as a twin of the message in which every `string` is `bytes`,
and every map a list: both have the same wire format.

Large fields (text or ids) are not copied into protobuf messages: the native transport's library
extracts them. If that library is missing, or an item of the request has other fields, protobuf
parses the whole request. The `take_*` functions raise like `parse`, except for texts that are not
UTF-8, and also return the number of the request's parts: elements that cost time even if they are
short.

protobuf takes 18 ms to pack 250,000 ids; the engine packs them itself. The functions that serialise
return the same bytes as protobuf.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import islice
from typing import Any, Final, TypeVar

from bytepair.v1 import chat_pb2, context_pb2, stream_pb2, text_pb2, tokenizer_pb2
from bytepair_engine.backends.varint import pack, unpack
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor, FileDescriptor
from google.protobuf.message import DecodeError, Message

from bytepair_server.catalog import Entry
from bytepair_server.errors import InvalidField, InvalidText

#: A name, and the UTF-8 of a text; None if there is no text.
Named = tuple[str, bytes | None]

#: The number of ids in a packed field.
number_of: Callable[[bytes], int]
try:
    from bytepair_server import _transport

    number_of = _transport.count_varints
    take_field: Callable[..., tuple[bytes, list[bytes]] | None] = _transport.take_field
    take_named_texts: Callable[..., tuple[bytes, list[Named]] | None] = _transport.take_named_texts
except ImportError:
    number_of = lambda packed: len(packed.translate(None, bytes(range(0x80, 0x100))))  # noqa: E731
    take_field = take_named_texts = lambda *_: None  # protobuf parses each message

#: Maximum strings and messages in which text that is not UTF-8 is found. A request may hold
#: millions, and each takes microseconds of the event loop.
MAX_SEARCHED: Final = 1 << 10

M = TypeVar("M", bound=Message)
HasText = TypeVar("HasText", tokenizer_pb2.EncodeRequest, tokenizer_pb2.CountRequest)
HasTexts = TypeVar("HasTexts", tokenizer_pb2.BatchEncodeRequest, tokenizer_pb2.BatchCountRequest)

# Each is a request, mostly without its large field, and that field.

#: A text; if bytes, not yet verified to be UTF-8.
ParsedText = tuple[HasText, str | bytes]
#: The items' texts, not yet verified to be UTF-8; None unless every item is a plain text: then the
#: request has its items.
ParsedTexts = tuple[HasTexts, list[bytes] | None]
ParsedIds = tuple[tokenizer_pb2.DecodeRequest, Sequence[int]]
ParsedItems = tuple[tokenizer_pb2.BatchDecodeRequest, Sequence[Sequence[int]]]


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


def take_text(request_class: type[HasText], raw: bytes) -> tuple[ParsedText[HasText], int]:
    """Parse a request with a text. Parts are segments and allowed special tokens."""
    found = take_field(raw, request_class.TEXT_FIELD_NUMBER)
    text: str | bytes
    if found is None or len(found[1]) != 1:
        request = parse(request_class, raw)
        text = request.text
    else:
        rest, (text,) = found
        request = parse(request_class, rest)
    return (request, text), len(request.segments) + len(request.allowed_special)


def take_texts(request_class: type[HasTexts], raw: bytes) -> tuple[ParsedTexts[HasTexts], int]:
    """Parse a batch of texts. Parts are items, segments and allowed special tokens."""
    text = text_pb2.TextItem.TEXT_FIELD_NUMBER
    found = take_field(raw, request_class.ITEMS_FIELD_NUMBER, text)
    rest, texts = (raw, None) if found is None else found
    request = parse(request_class, rest)
    parts = len(request.allowed_special) + (0 if texts is None else len(texts))
    return (request, texts), parts + sum(1 + len(item.segments) for item in request.items)


def take_ids(request_class: type[tokenizer_pb2.DecodeRequest], raw: bytes) -> tuple[ParsedIds, int]:
    """Parse a request with ids, which has no parts."""
    found = take_field(raw, request_class.IDS_FIELD_NUMBER)
    if found is not None and len(found[1]) <= 1:
        ids = unpack(b"".join(found[1]))
        if ids is not None:
            return (parse(request_class, found[0]), ids), 0
    request = parse(request_class, raw)
    # Reading a list is far faster than reading protobuf's container.
    return (request, request.ids[:]), 0


def take_items(
    request_class: type[tokenizer_pb2.BatchDecodeRequest], raw: bytes
) -> tuple[ParsedItems, int]:
    """Parse a batch of ids. Parts are items."""
    inner = tokenizer_pb2.IdsItem.IDS_FIELD_NUMBER
    found = take_field(raw, request_class.ITEMS_FIELD_NUMBER, inner)
    if found is not None:
        items = [ids for item in found[1] if (ids := unpack(item)) is not None]
        if len(items) == len(found[1]):
            return (parse(request_class, found[0]), items), len(items)
    request = parse(request_class, raw)
    return (request, [item.ids[:] for item in request.items]), len(request.items)


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


_LENGTH_DELIMITED: Final = 2

#: The number of the field `ids` of all answers here.
IDS: Final = tokenizer_pb2.EncodeResponse.IDS_FIELD_NUMBER
assert stream_pb2.EncodeStreamResponse.IDS_FIELD_NUMBER == IDS
assert tokenizer_pb2.EncodeResult.IDS_FIELD_NUMBER == IDS

#: The number of the field `results` of these batch answers.
RESULTS: Final = tokenizer_pb2.BatchEncodeResponse.RESULTS_FIELD_NUMBER
assert tokenizer_pb2.BatchCountResponse.RESULTS_FIELD_NUMBER == RESULTS
assert context_pb2.BatchTruncateResponse.RESULTS_FIELD_NUMBER == RESULTS


def field(number: int, content: bytes) -> bytes:
    """Serialise a length-delimited field with a number of at most 15: packed, a string, bytes or a
    message. Without content the field is unset: b""."""
    return element(number, content) if content else b""


def element(number: int, content: bytes) -> bytes:
    """Serialise an element of a repeated field, which may be empty."""
    return b"%c%b%b" % (number << 3 | _LENGTH_DELIMITED, varint(len(content)), content)


@cache
def naming(answer: type[Any], entry: Entry) -> bytes:
    """The serialised end of an answer: the name and the fingerprint of the encoding."""
    named = answer(encoding=entry.name, fingerprint=entry.fingerprint)
    return bytes(named.SerializeToString())


@lru_cache(maxsize=4096)
def varint(value: int) -> bytes:
    """Serialise a non-negative number. Cached, because most are small."""
    return pack((value,))
