"""What operations share: the encoding, and inputs that are too large for one request."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, Literal, Protocol, TypeVar, get_args

from bytepair.v1 import text_pb2
from google.protobuf.message import Message

from bytepair_client._call import Fallback, StreamCall
from bytepair_client._options import (
    NOT_GIVEN,
    Defaults,
    Fingerprint,
    Timeout,
    checked_limit,
    chosen_timeout,
    invalid,
    utf8,
)
from bytepair_client._text import set_text

DecodeErrors = Literal["replace", "strict"]
Level = Literal["code_point", "grapheme", "word", "sentence", "line", "paragraph"]
CODE_POINT: Final = text_pb2.OFFSET_UNIT_CODE_POINT

Response = TypeVar("Response", bound=Message)
Copied = TypeVar("Copied", bound=Message)


class _Request(Protocol):
    """What every request on text or ids has."""

    encoding: str
    expected_fingerprint: str


def named_encoding(defaults: Defaults, encoding: str | None) -> str:
    """The encoding that a call is about.

    Raises:
        InvalidOption: Neither the call nor the client names one, or the name is not UTF-8.
    """
    name = defaults.encoding if encoding is None else encoding
    if not name:
        raise invalid("encoding", "must be given: on the call, or once on the client")
    return utf8("encoding", name)


def set_encoding(
    request: _Request, defaults: Defaults, encoding: str | None, expected: Fingerprint
) -> None:
    """Say in `request` which encoding is meant, and what it must be.

    Raises:
        InvalidOption: As named_encoding.
    """
    request.encoding = named_encoding(defaults, encoding)
    if expected is NOT_GIVEN:
        # The client's fingerprint is that of the client's encoding; of another it says nothing.
        same = request.encoding == defaults.encoding
        expected = defaults.expected_fingerprint if same else None
    request.expected_fingerprint = utf8("expected_fingerprint", expected or "")


def enum_value(option: str, name: str, names: Any, enum: Any) -> Any:
    """The value of an enum of the API.

    Args:
        option: The argument.
        name: The value's name in Python.
        names: The Literal of all names.
        enum: The enum.
    Raises:
        InvalidOption: It is none of them.
    """
    if name not in get_args(names):
        raise invalid(option, f"must be one of {', '.join(get_args(names))}")
    return enum.Value(_prefix(enum) + name.upper())


def enum_name(value: int, enum: Any) -> str:
    """The name of a value in Python."""
    name: str = enum.Name(value)
    return name.removeprefix(_prefix(enum)).lower()


def _prefix(enum: Any) -> str:
    unspecified: str = enum.Name(0)
    return unspecified.removesuffix("UNSPECIFIED")


def set_one_text(request: Any, text: object) -> None:
    """Put a text into a request that has no segments. Raises as `one_text` and `set_text`."""
    set_text(request, one_text(text))


def one_text(text: object) -> str:
    """A text that is no segments. Raises TypeError for what is no string."""
    if not isinstance(text, str):
        raise TypeError(f"text must be one str, not {type(text).__name__}")
    return text


def tokens(option: str, value: int) -> int:
    """A number of tokens for a request. Raises InvalidOption for a negative one."""
    if value < 0:
        raise invalid(option, f"must be 0 or more, not {value}")
    return checked_limit(value) or 0


def has_more_bytes(text: str, limit: int) -> bool:
    """Whether the UTF-8 of `text` is longer than `limit`; lone surrogates count three bytes."""
    if len(text) > limit or text.isascii():
        return len(text) > limit
    return len(text) * 4 > limit and len(text.encode(errors="surrogatepass")) > limit


def within(defaults: Defaults, limit: int | None) -> Defaults:
    """The client's defaults, for a server with this limit in bytes; None if it is not known."""
    return defaults if limit is None else replace(defaults, max_unary_bytes=max(1, limit))


def timeout_for(defaults: Defaults, timeout: Timeout, size: int) -> float | None:
    """The seconds that a large input gets: the call's own, or else the client's timeout for each
    `max_unary_bytes` of it.

    Args:
        size: About how many bytes there are, or fewer.
    """
    if timeout is not NOT_GIVEN or defaults.timeout is None:
        return chosen_timeout(defaults, timeout)
    return defaults.timeout * max(1, math.ceil(size / defaults.max_unary_bytes))


def copied(source: Message, target: Copied) -> Copied:
    """Copy the fields that a message shares with another one, by name.

    Returns:
        `target`.
    """
    for field, value in source.ListFields():
        if field.name not in target.DESCRIPTOR.fields_by_name:
            continue
        if isinstance(value, str | bytes | bool | int):
            setattr(target, field.name, value)
        elif isinstance(value, Message):
            getattr(target, field.name).CopyFrom(value)
        else:
            getattr(target, field.name).extend(value)
    return target


def joined(stream: StreamCall[Any, Any], answer: type[Response]) -> Fallback[Response]:
    """A stream as the answer of one call: what its answers have in common is joined.

    Args:
        stream: EncodeStream, DecodeStream or CountStream.
        answer: The answer of Encode, Decode or Count.
    """

    def join(answers: Sequence[Any]) -> Response:
        whole: Any = answer(encoding=answers[0].encoding, fingerprint=answers[0].fingerprint)
        if "ids" in answer.DESCRIPTOR.fields_by_name:
            for part in answers:
                whole.ids.MergeFrom(part.ids)
        elif "count" in answer.DESCRIPTOR.fields_by_name:
            whole.count = answers[-1].count
            whole.limit_exceeded = answers[-1].limit_exceeded
        elif answers[0].WhichOneof("content") == "data":
            whole.data = b"".join(part.data for part in answers)
        else:
            whole.text = "".join(part.text for part in answers)
        response: Response = whole
        return response

    return Fallback(stream.with_messages(), join)
