"""The content of a request to encode or count: a text, its UTF-8 bytes, or segments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from bytepair.v1 import tokenizer_pb2
from bytepair_engine import Encoding, InvalidUnicode

from bytepair_server.auth.policy import SpecialRule
from bytepair_server.errors import InvalidText
from bytepair_server.rpc import limits, segments, wire_fields
from bytepair_server.rpc.segments import Part, Unit

#: Separates joined texts: a byte that never occurs in UTF-8.
_SEPARATOR: Final = b"\xff"

#: A text, its UTF-8, or the parts of a request with segments.
Content = str | bytes | list[Part]


def utf8_size(content: Content) -> int:
    """The UTF-8 size of a content's text, without special tokens of segments."""
    if isinstance(content, bytes):
        return len(content)
    if isinstance(content, str):
        return limits.utf8_size(content)
    return sum(limits.utf8_size(part.text) for part in content if not part.is_special_token)


def contains_special(
    encoding: Encoding, found: Sequence[Content | Exception], rule: SpecialRule
) -> bool:
    """Whether any text contains a special token that is not allowed in it."""
    texts = [content for content in found if type(content) is bytes]
    apart = []
    if len(texts) < len(found):
        texts += [content.encode() for content in found if type(content) is str]
        segmented = [part for content in found if type(content) is list for part in content]
        apart = [part.text.encode() for part in segmented if not part.is_special_token]
    return encoding.contains_special(_SEPARATOR.join(texts), allowed_special=rule.allowed) or (
        bool(apart) and encoding.contains_special(_SEPARATOR.join(apart))
    )


def encode(
    encoding: Encoding, content: Content, rule: SpecialRule, unit: Unit | None
) -> tuple[bytes, int]:
    """The serialised fields `ids` and `offsets` of an answer, and the number of ids.

    Raises:
        InvalidText: The bytes are not UTF-8; its field is "text".
        SpecialTokenFound: The text contains a special token that is an error by `rule`.
    """
    if isinstance(content, list):
        ids, offsets = segments.encode(encoding, content, rule, unit)
    elif unit is None:
        try:
            packed = segments.encode_text_packed(encoding, content, rule)
        except InvalidUnicode as error:
            raise InvalidText("text", error.byte_offset) from None
        return wire_fields.field(wire_fields.IDS, packed), wire_fields.number_of(packed)
    else:
        text = content if isinstance(content, str) else _decoded(content)
        ids, offsets = segments.encode_text_with_offsets(encoding, text, rule, unit)
    return tokenizer_pb2.EncodeResult(ids=ids, offsets=offsets).SerializeToString(), len(ids)


def count(
    encoding: Encoding, content: Content, rule: SpecialRule, limit: int | None
) -> tuple[int, bool]:
    """The count, at most `limit` + 1, and whether it exceeds `limit`. Raises like `encode`."""
    if isinstance(content, list):
        tokens = segments.count(encoding, content, rule, limit)
    else:
        try:
            tokens = segments.count_text(encoding, content, rule, limit)
        except InvalidUnicode as error:
            raise InvalidText("text", error.byte_offset) from None
    return tokens, limit is not None and tokens > limit


def count_texts(
    encoding: Encoding, texts: Sequence[bytes], rule: SpecialRule, limit: int | None
) -> list[int]:
    """The count of each text, at most `limit` + 1. Raises like `encode` for the first bad item."""
    try:
        return segments.count_texts(encoding, texts, rule, limit)
    except InvalidUnicode:
        for index, text in enumerate(texts):
            try:
                count(encoding, text, rule, limit)
            except InvalidText as error:
                raise error.in_item(index) from None
        raise


def _decoded(text: bytes) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        raise InvalidText("text", error.start) from None
