"""The content of a request to encode or count: a text, its UTF-8 bytes, or segments.

Each segment is encoded separately, so no token spans two of them. Offsets of tokens and errors
refer to the joined segments, with special tokens by their spelling.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from bytepair.v1 import text_pb2, tokenizer_pb2
from bytepair_engine import Encoding, InvalidUnicode, SpecialTokenFound
from bytepair_engine.backends.text_length import text_length

from bytepair_server.auth.policy import SpecialRule
from bytepair_server.call import Call
from bytepair_server.errors import InvalidText, SpecialTokenInSegment
from bytepair_server.rpc import wire

Unit = Literal["byte", "code_point", "utf16"]
#: The units of offsets by their number in the proto.
UNITS: Final[dict[int, Unit]] = {
    text_pb2.OFFSET_UNIT_BYTE: "byte",
    text_pb2.OFFSET_UNIT_CODE_POINT: "code_point",
    text_pb2.OFFSET_UNIT_UTF16: "utf16",
}


@dataclass(frozen=True, slots=True)
class Part:
    """A segment: a text, or one special token by its spelling."""

    text: str
    is_special_token: bool = False


#: A text, its UTF-8, or the parts of a request with segments. Special tokens among these are
#: already permitted.
Content = str | bytes | list[Part]


def utf8_size(content: Content) -> int:
    """The UTF-8 size of a content's text, without special tokens of segments."""
    if isinstance(content, bytes):
        return len(content)
    if isinstance(content, str):
        return text_length(content, "byte")
    return sum(text_length(part.text, "byte") for part in content if not part.is_special_token)


def record_special(
    encoding: Encoding, found: Iterable[Content | Exception], rule: SpecialRule, call: Call
) -> None:
    """Record in the call's policy if text contains special tokens that stay text."""
    if rule["disallowed_special"]:
        return
    for each in found:  # `any` and a generator would cost small calls a third of a microsecond
        if _contains_special(encoding, each, rule):
            call.policy["as_text"] = None
            return


def _contains_special(encoding: Encoding, content: Content | Exception, rule: SpecialRule) -> bool:
    """Whether a content's text contains a special token that is not allowed in it."""
    if isinstance(content, bytes | str):
        return encoding.contains_special(content, allowed_special=rule["allowed_special"])
    if isinstance(content, Exception):
        return False
    return any(
        encoding.contains_special(part.text) for part in content if not part.is_special_token
    )


def encode(
    encoding: Encoding, content: Content, rule: SpecialRule, unit: Unit | None
) -> tuple[bytes, int]:
    """The serialised fields `ids` and `offsets` of an answer, and the number of ids.

    Raises:
        InvalidText: The bytes are not UTF-8; its field is "text".
        SpecialTokenFound, SpecialTokenInSegment: The text contains a special token that is an error
            by `rule`.
    """
    if isinstance(content, list):
        ids, offsets = _encode_parts(encoding, content, rule, unit)
    elif unit is None:
        try:
            packed = encoding.encode_packed(content, **rule)
        except InvalidUnicode as error:
            raise InvalidText("text", error.byte_offset) from None
        return wire.field(wire.IDS, packed), wire.number_of(packed)
    else:
        text = content if isinstance(content, str) else _decoded(content)
        ids, offsets = encoding.encode_with_offsets(text, unit=unit, **rule)
    return tokenizer_pb2.EncodeResult(ids=ids, offsets=offsets).SerializeToString(), len(ids)


def count(
    encoding: Encoding, content: Content, rule: SpecialRule, limit: int | None
) -> tuple[int, bool]:
    """The count, at most `limit` + 1, and whether it exceeds `limit`. Raises like `encode`."""
    if isinstance(content, list):
        tokens = _count_parts(encoding, content, rule, limit)
    else:
        try:
            tokens = encoding.count(content, limit=limit, **rule)
        except InvalidUnicode as error:
            raise InvalidText("text", error.byte_offset) from None
    return tokens, limit is not None and tokens > limit


def count_texts(
    encoding: Encoding, texts: Sequence[bytes], rule: SpecialRule, limit: int | None
) -> list[int]:
    """The count of each text, at most `limit` + 1. Raises like `encode` for the first bad item."""
    try:
        return encoding.count_batch(texts, limit=limit, **rule)
    except InvalidUnicode as error:
        raise InvalidText(f"items[{error.index}].text", error.byte_offset) from None


def _encode_parts(
    encoding: Encoding, parts: Sequence[Part], rule: SpecialRule, unit: Unit | None
) -> tuple[list[int], list[int]]:
    """The ids and their offsets; no offsets if `unit` is None. Text allows no special token."""
    before, after = _template(encoding, rule)
    ids, offsets, start = [*before], [0] * len(before), 0
    for index, part in enumerate(parts):
        more, theirs = [], []
        try:
            if part.is_special_token:
                more, theirs = [encoding.special_tokens[part.text]], [0]
            elif unit is None:
                more = encoding.encode(part.text, disallowed_special=rule["disallowed_special"])
            else:
                more, theirs = encoding.encode_with_offsets(
                    part.text, unit=unit, disallowed_special=rule["disallowed_special"]
                )
        except SpecialTokenFound as error:
            raise _located(error, parts, index) from None
        ids += more
        if unit is not None:
            offsets += [start + offset for offset in theirs]
            start += text_length(part.text, unit)
    return [*ids, *after], [] if unit is None else [*offsets, *([start] * len(after))]


def _count_parts(
    encoding: Encoding, parts: Sequence[Part], rule: SpecialRule, limit: int | None
) -> int:
    """The count, at most `limit` + 1. A special token is found even behind the limit."""
    total = sum(map(len, _template(encoding, rule)))
    for index, part in enumerate(parts):
        if part.is_special_token:
            total += 1
            continue
        rest = None if limit is None else max(0, limit - total)
        try:
            total += encoding.count(
                part.text, limit=rest, disallowed_special=rule["disallowed_special"]
            )
        except SpecialTokenFound as error:
            raise _located(error, parts, index) from None
    return total if limit is None else min(total, limit + 1)


def _template(encoding: Encoding, rule: SpecialRule) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The ids before the first part and after the last one."""
    if not rule["add_special_tokens"]:
        return (), ()
    return encoding.template.before, encoding.template.after


def _located(error: SpecialTokenFound, parts: Sequence[Part], index: int) -> SpecialTokenInSegment:
    before = sum(text_length(part.text, "byte") for part in parts[:index])
    return SpecialTokenInSegment(error.token, before + error.byte_offset, index)


def _decoded(text: bytes) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        raise InvalidText("text", error.start) from None
