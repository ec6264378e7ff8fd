"""One input that may be too large for one request: a stream then gives the same answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from google.protobuf.message import Message

from bytepair_client._call import Call, Fallback, Method
from bytepair_client._options import NOT_GIVEN, Defaults, Timeout, chosen_timeout
from bytepair_client._streams.text import TextStream
from bytepair_client._text import Text, set_text

Response = TypeVar("Response", bound=Message)
Plain = TypeVar("Plain")
Copied = TypeVar("Copied", bound=Message)


def text_call(
    method: Method[Response],
    request: Any,
    text: Text,
    plain: Callable[[Response], Plain],
    defaults: Defaults,
    timeout: Timeout,
    *,
    stream: TextStream[Any, Any],
    join: Callable[[Sequence[Any]], Response] | None = None,
) -> Call[Response, Plain]:
    """The call for one text: `request` and the text, or a stream if it is too large for one.

    Args:
        stream: Its configuration takes the fields of `request`.
        join: From the stream's answers to the one; None to copy their fields in order.
    """
    seconds = chosen_timeout(defaults, timeout)
    if not isinstance(text, str):
        set_text(request, text)
        return Call(method, request, seconds, plain)
    is_large = has_more_bytes(text, defaults.max_unary_bytes)
    if not is_large:
        set_text(request, text)

    def fallback(limit: int | None) -> Fallback[Response]:
        served = within(defaults, limit)
        seconds = timeout_for(served, timeout, len(text))
        config = copied(request, stream.request().config)
        streamed = stream.call(served, config, text, seconds)
        return Fallback(streamed.with_messages(), join or partial(joined, method))

    return Call(method, request, seconds, plain, fallback, is_large)


def has_more_bytes(text: str, limit: int) -> bool:
    """Whether the UTF-8 of `text` is longer than `limit`; lone surrogates count three bytes."""
    if len(text) > limit or text.isascii():
        return len(text) > limit
    return len(text) * 4 > limit and len(text.encode(errors="surrogatepass")) > limit


def within(defaults: Defaults, limit: int | None) -> Defaults:
    """The client's defaults, for a server with this limit in bytes; None if it is not known."""
    return defaults if limit is None else replace(defaults, max_unary_bytes=max(1, limit))


def timeout_for(defaults: Defaults, timeout: Timeout, size: int) -> float | None:
    """The seconds that an input of about `size` bytes gets: the call's own, or else the client's
    timeout for each `max_unary_bytes` of it."""
    if timeout is not NOT_GIVEN or defaults.timeout is None:
        return chosen_timeout(defaults, timeout)
    return defaults.timeout * max(1, math.ceil(size / defaults.max_unary_bytes))


def copied(source: Message, target: Copied) -> Copied:
    """Copy the fields that two messages share, by name; lists are appended. Returns `target`."""
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


def joined(method: Method[Response], answers: Sequence[Message]) -> Response:
    """The answers of a stream as one answer of another method: lists are joined, and of what is
    no list the last counts."""
    whole = method.parse(b"")
    for answer in answers:
        copied(answer, whole)
    return whole
