"""The parts of a request's `text` or `segments`, apart from protobuf.

Each part is encoded separately, so no token spans two parts. Offsets of tokens and errors refer to
the joined parts, with special tokens by their spelling.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypedDict

from bytepair_engine import Encoding, SpecialTokenFound
from bytepair_engine.backends.text_length import text_length

from bytepair_server.auth.policy import SpecialRule
from bytepair_server.errors import SpecialTokenInSegment
from bytepair_server.rpc.limits import utf8_size

Unit = Literal["byte", "code_point", "utf16"]


class _Keywords(TypedDict):
    allowed_special: frozenset[str]
    disallowed_special: Literal["all"] | frozenset[str]
    add_special_tokens: bool


@dataclass(frozen=True, slots=True)
class Part:
    """A text, or one special token by its spelling."""

    text: str
    is_special_token: bool = False


def encode(
    encoding: Encoding, parts: Sequence[Part], rule: SpecialRule, unit: Unit | None
) -> tuple[list[int], list[int]]:
    """Encode parts.

    Args:
        encoding: The encoding.
        parts: The parts in order. Their special tokens are already permitted.
        rule: Whether special tokens in text are an error. None is allowed in text parts.
        unit: The unit of offsets; None for no offsets.
    Returns:
        The ids and their offsets; no offsets if `unit` is None.
    Raises:
        SpecialTokenInSegment: Text contains a special token that is an error by `rule`.
    """
    before, after = _template(encoding, rule)
    rule = rule.for_segments()
    ids = list(before)
    offsets = [0] * len(before) if unit is not None else []
    start = 0
    for index, part in enumerate(parts):
        if part.is_special_token:
            ids.append(encoding.special_tokens[part.text])
            if unit is not None:
                offsets.append(start)
        else:
            try:
                if unit is None:
                    ids += encode_text(encoding, part.text, rule)
                else:
                    more, theirs = encode_text_with_offsets(encoding, part.text, rule, unit)
                    ids += more
                    offsets += [start + offset for offset in theirs]
            except SpecialTokenFound as error:
                raise _located(error, parts, index) from None
        if unit is not None:
            start += text_length(part.text, unit)
    ids += after
    if unit is not None:
        offsets += [start] * len(after)
    return ids, offsets


def count(encoding: Encoding, parts: Sequence[Part], rule: SpecialRule, limit: int | None) -> int:
    """Count the ids of `encode`.

    Args:
        encoding: The encoding.
        parts: See `encode`.
        rule: See `encode`.
        limit: Counting may stop above it; None for no limit.
    Returns:
        The count, at most `limit` + 1.
    Raises:
        SpecialTokenInSegment: See `encode`; raised even if it follows the limit.
    """
    total = sum(map(len, _template(encoding, rule)))
    rule = rule.for_segments()
    for index, part in enumerate(parts):
        if part.is_special_token:
            total += 1
            continue
        rest = None if limit is None else max(0, limit - total)
        try:
            total += count_text(encoding, part.text, rule, rest)
        except SpecialTokenFound as error:
            raise _located(error, parts, index) from None
    return total if limit is None else min(total, limit + 1)


def encode_text(encoding: Encoding, text: str, rule: SpecialRule) -> list[int]:
    """Encode one text by a rule."""
    return encoding.encode(text, **_keywords(rule))


def encode_text_packed(encoding: Encoding, text: str | bytes, rule: SpecialRule) -> bytes:
    """Encode one text, or its UTF-8, to the content of a packed protobuf field of ids."""
    return encoding.encode_packed(text, **_keywords(rule))


def encode_text_with_offsets(
    encoding: Encoding, text: str, rule: SpecialRule, unit: Unit
) -> tuple[list[int], list[int]]:
    """Encode one text by a rule, with the start of each token."""
    return encoding.encode_with_offsets(text, unit=unit, **_keywords(rule))


def count_text(encoding: Encoding, text: str | bytes, rule: SpecialRule, limit: int | None) -> int:
    """Count the tokens of one text, or of its UTF-8, by a rule."""
    return encoding.count(text, limit=limit, **_keywords(rule))


def count_texts(
    encoding: Encoding, texts: Sequence[str | bytes], rule: SpecialRule, limit: int | None
) -> list[int]:
    """Count the tokens of each text, or of its UTF-8, by a rule."""
    return encoding.count_batch(texts, limit=limit, **_keywords(rule))


def _keywords(rule: SpecialRule) -> _Keywords:
    return {
        "allowed_special": rule.allowed,
        "disallowed_special": rule.disallowed,
        "add_special_tokens": rule.add_special_tokens,
    }


def _template(encoding: Encoding, rule: SpecialRule) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The ids before the first part and after the last one."""
    if not rule.add_special_tokens:
        return (), ()
    return encoding.template.before, encoding.template.after


def _located(error: SpecialTokenFound, parts: Sequence[Part], index: int) -> SpecialTokenInSegment:
    before = sum(utf8_size(part.text) for part in parts[:index])
    return SpecialTokenInSegment(error.token, before + error.byte_offset, index)
