"""Requests: the options that methods share, their fields, and texts too large for one request."""

from __future__ import annotations

import math
from collections.abc import AsyncIterable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import fields as fields_of
from functools import cache
from typing import Any, Final, Literal, TypedDict, TypeVar, cast

from bytepair.v1 import text_pb2
from google.protobuf.message import Message

from bytepair_client._arguments import (
    NOT_GIVEN,
    AllowedSpecial,
    Defaults,
    DisallowedSpecial,
    Fingerprint,
    Text,
    Timeout,
    checked_iterable,
    chosen_timeout,
    invalid,
    not_bytes,
    set_text,
    utf8,
)
from bytepair_client._call import Call, Method, Plain, Response, StreamCall
from bytepair_client._send_buffers import TextBuffer

DecodeErrors = Literal["replace", "strict"]
Level = Literal["code_point", "grapheme", "word", "sentence", "line", "paragraph"]
Pieces = Iterable[str | bytes] | AsyncIterable[str | bytes]

#: For one request of a stream: large enough that the overhead of a message is negligible.
MAX_PIECE_BYTES = 256 * 1024

_EVERY = "ALL"  # in the `allowed_special` of a request: all special tokens

Filled = TypeVar("Filled", bound=Message)
T = TypeVar("T")


class EncodingOptions(TypedDict, total=False):
    """Options of every method that uses an encoding; `encode` describes them."""

    encoding: str | None
    expected_fingerprint: Fingerprint
    timeout: Timeout


class TextOptions(EncodingOptions, total=False):
    """Options of every method for texts. `disallowed_special` is not here: its default differs."""

    allowed_special: AllowedSpecial
    add_special_tokens: bool


class AllTextOptions(TextOptions, total=False):
    """Options of every text of a batch."""

    disallowed_special: DisallowedSpecial


def named_encoding(defaults: Defaults, encoding: str | None) -> str:
    """The encoding of a call. Raises InvalidOption if there is none."""
    name = defaults.encoding if encoding is None else encoding
    if not name:
        raise invalid("encoding", "must be given: on the call, or once on the client")
    return utf8("encoding", name)


def prepared(
    method: Method[Any, Any],
    defaults: Defaults,
    *,
    encoding: str | None = None,
    expected_fingerprint: Fingerprint = NOT_GIVEN,
    timeout: Timeout = NOT_GIVEN,
    **fields: Any,
) -> tuple[Any, float | None]:
    """A request of `method` with these fields, or the configuration of its stream; and the timeout
    of the call in seconds. Raises InvalidOption."""
    request = method.request()
    message = request.config if method.streamed else request
    name = named_encoding(defaults, encoding)
    if expected_fingerprint is NOT_GIVEN:
        # The client's fingerprint is that of the client's encoding, and of no other.
        expected_fingerprint = defaults.expected_fingerprint if name == defaults.encoding else None
    named = {"encoding": name, "expected_fingerprint": expected_fingerprint}
    for field, value in (named | fields).items():
        set_field(message, field, value)
    return message, chosen_timeout(None if method.streamed else defaults.timeout, timeout)


def set_field(message: Message, name: str, value: Any) -> None:
    """Set one field from an argument; None leaves it unset. Raises InvalidOption, TypeError."""
    if value is not None and name in _WIRE:
        value = _WIRE[name](value)
    if value is None and name == "max_tokens":  # it has no default
        raise TypeError("max_tokens must be an int, not NoneType")
    if value is None:
        return
    kind: Any = type(message)  # mypy takes no class of messages for hashable
    numbers = _numbers_of(kind, name)
    if numbers is not None:
        if not isinstance(value, str) or value not in numbers:
            raise invalid(name, f"must be one of {', '.join(numbers)}")
        value = numbers[value]
    try:
        if isinstance(value, list | tuple):
            getattr(message, name).extend(map(not_bytes, value))
        elif isinstance(value, Mapping):
            pairs = ((not_bytes(key), not_bytes(each)) for key, each in value.items())
            getattr(message, name).update(pairs)
        else:
            setattr(message, name, not_bytes(value))
    except UnicodeEncodeError:
        raise invalid(name, "not UTF-8") from None
    except (TypeError, AttributeError, OverflowError):  # the last for a bool
        now = getattr(message, name)
        if isinstance(now, bool | int | str):
            wanted = "an int" if type(now) is int else f"a {type(now).__name__}"
        elif isinstance(now, Mapping) and not isinstance(value, Mapping):
            wanted = "a mapping"
        else:
            raise TypeError(f"{name} holds a value of a wrong type") from None
        raise TypeError(f"{name} must be {wanted}, not {type(value).__name__}") from None
    except ValueError:
        least = min(value) if isinstance(value, list | tuple) else value
        problem = "must be 0 or more, not" if least < 0 else "is too large:"
        raise invalid(name, f"{problem} {value}") from None


@cache
def _numbers_of(kind: Any, field: str) -> dict[str, int] | None:
    """The numbers of an enum field by Python name, without the unspecified one; None for a field of
    another type. `kind` is the class of the message."""
    enum = kind.DESCRIPTOR.fields_by_name[field].enum_type
    if enum is None:
        return None
    return {enum_name(number, enum): number for number in enum.values_by_number if number}


def enum_name(number: int, enum: Any) -> str:
    """The Python name of an enum value; `enum` is a descriptor."""
    prefix = enum.values_by_number[0].name.removesuffix("UNSPECIFIED")
    name: str = enum.values_by_number[number].name
    return name.removeprefix(prefix).lower()


def wire_allowed(allowed: AllowedSpecial) -> list[str]:
    """The `allowed_special` of a request. Raises InvalidOption."""
    if isinstance(allowed, str):
        if allowed != "all":
            raise invalid("allowed_special", 'must be "all" or a collection of special tokens')
        return [_EVERY]
    if isinstance(allowed, bytes | bytearray) or not isinstance(allowed, Collection):
        raise TypeError(f"allowed_special must be a collection, not {type(allowed).__name__}")
    if "all" in allowed:
        raise invalid("allowed_special", 'give "all" by itself, not in a list of tokens')
    if _EVERY in allowed:
        raise invalid("allowed_special", f'give "all" by itself, not "{_EVERY}"')
    return sorted(utf8("allowed_special", name, ": each token") for name in allowed)


def wire_disallowed(disallowed: DisallowedSpecial) -> str:
    """The name of the `disallowed_special` of a request. Raises InvalidOption.

    tiktoken also accepts a set of tokens. The service treats all tokens alike.
    """
    if isinstance(disallowed, str) and disallowed == "all":  # an array compares its items
        return "reject"
    if isinstance(disallowed, str) or not isinstance(disallowed, Collection) or len(disallowed):
        raise invalid(
            "disallowed_special",
            'must be "all" (a special token in the text is an error unless it is allowed) or () '
            "(it is ordinary text); single tokens cannot be named",
        )
    return "as_text"


#: Converts an argument to the value of its field, or to the name of an enum's value; None leaves
#: the field unset. Raises InvalidOption.
_WIRE: Final[Mapping[str, Callable[[Any], Any]]] = {
    "allowed_special": wire_allowed,
    "disallowed_special": wire_disallowed,
    "past_reasoning": lambda rule: None if rule == "default" else rule,
}


def one_text(text: object) -> str:
    """Return `text`. Raises TypeError if it is not a str: segments are not accepted here."""
    if not isinstance(text, str):
        raise TypeError(f"text must be one str, not {type(text).__name__}")
    return text


def text_stream(
    method: Method[Response, Iterable[Plain]],
    defaults: Defaults,
    config: Any,
    pieces: Pieces | str | bytes,
    timeout: float | None,
) -> StreamCall[Response, Plain]:
    """The stream for a text or its pieces, with this configuration; `timeout` is in seconds."""
    is_one = isinstance(pieces, str | bytes | bytearray | memoryview)
    source: Any = (pieces,) if is_one else checked_iterable("pieces", pieces)
    # An iterator returns itself, and cannot be read again.
    can_read_again = method.restarts and isinstance(source, Iterable) and iter(source) is not source
    size = min(MAX_PIECE_BYTES, defaults.max_unary_bytes)
    buffer = TextBuffer(config, method.request, size)
    return StreamCall(method, buffer, source, timeout, can_read_again)


def text_call(
    method: Method[Response, Plain],
    defaults: Defaults,
    text: Text,
    *,
    timeout: Timeout = NOT_GIVEN,
    **fields: Any,
) -> Call[Response, Plain]:
    """The call for one text, which is streamed if it is too large for one request. `fields` are
    those of the request, without the text; they also configure the stream."""
    request, seconds = prepared(method, defaults, timeout=timeout, **fields)
    if not isinstance(text, str):
        set_text(request, text)
        return Call(method, request, seconds)
    is_large = has_more_bytes(text, defaults.max_unary_bytes)
    if not is_large:
        set_text(request, text)

    async def fallback(client: Any, served: Defaults) -> Response:
        seconds = timeout_for(served, timeout, len(text))
        config: Any = copied(request, method.stream.request().config)
        limit: int | None = None
        if fields.get("limit") is not None:
            # A stream does not read what follows its limit; one request fails for a lone surrogate.
            set_text(method.request(), text)
        if config.disallowed_special == text_pb2.DISALLOWED_SPECIAL_REJECT and "limit" in fields:
            # A stream does not search what follows its limit for special tokens; one request does.
            limit = fields["limit"]
            config.ClearField("limit")
        call = text_stream(method.stream, served, config, text, seconds)
        whole: Any = joined(method, await client._responses(call))
        if limit is not None and whole.count > limit:
            whole.count, whole.limit_exceeded = limit + 1, True
        return cast(Response, whole)

    return Call(method, request, seconds, fallback, is_large)


def has_more_bytes(text: str, limit: int) -> bool:
    """Whether `text` has more than `limit` bytes of UTF-8; a lone surrogate counts as three."""
    if len(text) > limit or text.isascii():
        return len(text) > limit
    return len(text) * 4 > limit and len(text.encode(errors="surrogatepass")) > limit


def timeout_for(defaults: Defaults, timeout: Timeout, size: int) -> float | None:
    """The timeout in seconds of an input of about `size` bytes: the call's own, else the client's
    timeout for each `max_unary_bytes`."""
    if timeout is not NOT_GIVEN or defaults.timeout is None:
        return chosen_timeout(defaults.timeout, timeout)
    return defaults.timeout * max(1, math.ceil(size / defaults.max_unary_bytes))


def copied(source: Message, target: Filled) -> Filled:
    """Copy the fields that both messages have; repeated fields are appended. Returns `target`."""
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


def joined(method: Method[Response, Any], responses: Sequence[Message]) -> Response:
    """Combine the responses of a stream into one of `method`: repeated fields are joined, and the
    last value of other fields is kept."""
    whole: Response = method.parse(b"")
    for response in responses:
        copied(response, whole)
    return whole


def described(kind: type[T], message: Any, /, **others: Any) -> T:
    """Make a dataclass from `others` and the fields of `message` with the same names. Repeated
    fields become tuples, unset ones None, values of an enum their names."""
    for field in fields_of(kind):  # type: ignore[arg-type]  # T is a dataclass
        if field.name in others:
            continue
        value = getattr(message, field.name)
        definition = message.DESCRIPTOR.fields_by_name[field.name]
        if definition.enum_type is not None:
            value = enum_name(value, definition.enum_type)
        elif definition.has_presence:
            value = value if message.HasField(field.name) else None
        elif not isinstance(value, str | bytes | bool | int):
            value = tuple(value)
        others[field.name] = value
    return kind(**others)
