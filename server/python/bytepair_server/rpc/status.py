"""The table that maps every error to a status with its reason and details.

The engine and the server raise typed errors; only `failure_of` maps them. `docs/errors.md` and the
proto document the reasons.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from functools import partial
from typing import Any, Final

from bytepair_engine import chat
from bytepair_engine import errors as engine

from bytepair_server import errors
from bytepair_server.failure import Failure
from bytepair_server.rpc.limits import PARTS
from bytepair_server.transport.interface import Code

#: Maximum characters of a name (encoding, token, fingerprint) that an error quotes: it travels in
#: HTTP/2 headers, which are bounded.
MAX_QUOTED_CHARACTERS: Final = 128

#: The encoding of examples, where it is served: a name that people know.
EXAMPLE: Final = "gpt-4o"

_CHAT_OPTIONS: Final = frozenset(field.name for field in fields(chat.ChatOptions))

_ToFailure = Callable[[Any], Failure]


def _quoted(value: object) -> str:
    text = f"{value:.15g}" if isinstance(value, float) else str(value)
    if len(text) <= MAX_QUOTED_CHARACTERS:
        return text
    return text[:MAX_QUOTED_CHARACTERS] + "…"


def _row(
    code: Code, reason: str, message: str, *metadata: str, field: str | None = None
) -> _ToFailure:
    """A row of the table whose values are attributes of the error.

    Args:
        code: The gRPC status.
        reason: The machine-readable reason.
        message: A format of attributes, or of `error` itself.
        metadata: The attributes of the metadata; one that is None is left out.
        field: The invalid field of the request, also a format.
    """

    def failure(error: Exception) -> Failure:
        values = vars(error)
        quoted = {name: _quoted(values[name]) for name in metadata if values[name] is not None}
        shown = {**values, **quoted, "error": error}
        return Failure(
            code,
            reason,
            message.format_map(shown),
            quoted,
            None if field is None else field.format_map(shown),
            values.get("retry_seconds"),
            values.get("token", ""),
        )

    return failure


def _unknown_encoding(error: engine.UnknownEncoding) -> Failure:
    example = EXAMPLE if EXAMPLE in error.known else next(iter(error.known), "")
    advice = (
        "ListEncodings shows what this server has, and its operator can add a name under "
        "[aliases] of its configuration"
        if error.name
        else f'set "encoding", such as "{example}"'
    )
    return _unknown("UNKNOWN_ENCODING", "encoding", "encoding", error, advice)


def _encoding_not_loaded(error: errors.EncodingNotLoaded) -> Failure:
    name = _quoted(error.name)
    message = f"{name!r} is configured, but its encoding could not be loaded: the log says why"
    return Failure(
        Code.NOT_FOUND, "UNKNOWN_ENCODING", message, {"encoding": name}, field="encoding"
    )


def _unknown_chat_format(error: chat.UnknownChatFormat) -> Failure:
    advice = "ListChatFormats shows what this server has"
    return _unknown("UNKNOWN_CHAT_FORMAT", "format", "chat format", error, advice)


def _unknown(
    reason: str,
    field: str,
    what: str,
    error: engine.UnknownEncoding | chat.UnknownChatFormat,
    advice: str,
) -> Failure:
    name, nearest = _quoted(error.name), ", ".join(error.nearest)
    among = f", the nearest known: {nearest}" if nearest else ""
    problem = f"unknown {what} {name!r}{among}" if name else f"no {what} given"
    metadata = {field: name, "nearest": nearest} if nearest else {field: name}
    return Failure(Code.NOT_FOUND, reason, f"{problem}; {advice}", metadata, field=field)


def _chat_format_mismatch(error: chat.ChatFormatMismatch) -> Failure:
    missing = _quoted(", ".join(error.missing))
    return Failure(
        Code.FAILED_PRECONDITION,
        "CHAT_FORMAT_MISMATCH",
        (
            f"the encoding {error.encoding} lacks control tokens of the chat format "
            f"{error.format}: {missing}; use the model's own encoding, or name these tokens in its "
            "also_special"
            if missing
            else f"the chat format {error.format} does not support the encoding {error.encoding}; "
            "use the model's own encoding"
        ),
        {"format": error.format, "encoding": error.encoding, "missing": missing},
        field="format",
    )


def _invalid_chat(error: chat.InvalidChat) -> Failure:
    metadata = {} if error.index is None else {"index": str(error.index)}
    return Failure(
        Code.INVALID_ARGUMENT,
        "INVALID_CHAT",
        str(error),
        {**metadata, "field": error.field, "rule": error.rule},
        field=_path_in_chat(error),
    )


def _path_in_chat(error: chat.InvalidChat | engine.SpecialTokenFound) -> str:
    """The path in the request of a field of a chat."""
    index, field = error.index, error.field
    if index is None:
        return field
    if field.startswith("tools"):
        return f"tools[{index}]"
    if field == "message":
        return f"messages[{index}]"
    return f"messages[{index}].{field}" + ("_json" if field.endswith("].arguments") else "")


def _no_token_with_id(error: errors.NoTokenWithId) -> Failure:
    message = f"no token of {error.encoding} has id {error.token_id}"
    metadata = {"encoding": error.encoding, "id": str(error.token_id)}
    if error.index is None:  # from GetToken, which takes a single id
        return Failure(Code.INVALID_ARGUMENT, "UNKNOWN_TOKEN_ID", message, metadata, field="id")
    message += f", which is at index {error.index}"
    metadata["index"] = str(error.index)
    return Failure(Code.INVALID_ARGUMENT, "UNKNOWN_TOKEN_ID", message, metadata, field="ids")


#: What to do about a limit, by its field, or by this unit.
_ADVICE: Final = {
    PARTS: "; the operator's max_segments decides this limit",
    "allowed_special": "; the operator's max_allowed_special decides this limit",
    "chunks": "; use SplitStream",
    "ids": "; the operator's max_ids decides this limit",
    "items": "; the operator's max_batch_items decides this limit",
    "items.messages": "; the operator's max_input_bytes decides this limit: send fewer items",
    "items.ids": "; the operator's max_ids decides this limit: send fewer items",
    "items.segments": "; the operator's max_segments decides this limit: send fewer items",
    "messages": "; the operator's max_input_bytes decides this limit: send a shorter chat",
    "message": "; the limit follows from the server's max_input_bytes and max_ids",
    "prefill_ids": "; the operator's max_ids decides this limit",
    "request": "; send a larger one as protobuf, or its text by a stream",
    "text": (
        "; the operator's max_input_bytes decides this limit; Encode, Count and Split have "
        "streams for longer texts"
    ),
    "items.text": "; the operator's max_input_bytes decides this limit: send fewer items",
    "segments": "; the operator's max_segments decides this limit",
    "stop": "; the operator's max_stop_strings and max_stop_bytes decide this limit",
}


def _input_too_large(error: errors.InputTooLarge) -> Failure:
    metadata = {"field": error.field, "limit": str(error.limit)}
    # The name of a list such as "items" is also its unit.
    unit = "" if error.field.endswith(error.unit) else f" {error.unit}"
    if error.size is None:
        size = f"more than the {error.limit}{unit} that this server accepts"
    else:
        metadata["size"] = str(error.size)
        size = f"{error.size}{unit}, and this server accepts at most {error.limit}"
    advice = _ADVICE.get(PARTS if error.unit == PARTS else error.field, "")
    return Failure(
        Code.INVALID_ARGUMENT,
        "INPUT_TOO_LARGE",
        f"{error.field}: {size}{advice}",
        metadata,
        field=error.field,
    )


def _no_split_point(error: errors.NoSplitPoint) -> Failure:
    advice = "; keep only the start or the end, without a marker, or try another max_tokens"
    if error.setting:
        advice = f"; the operator's {error.setting} decides this limit"
    return Failure(
        Code.INVALID_ARGUMENT,
        "INPUT_TOO_LARGE",
        f"text has more than {error.limit} bytes without a split point, such as one "
        f"endless word{advice}",
        {"field": "text", "limit": str(error.limit)},
        field="text",
    )


def _not_permitted(error: errors.SpecialTokenNotPermitted) -> Failure:
    token = _quoted(error.token)
    problem = (
        f"this caller may not use the special token {token!r} of {error.encoding}: [ceiling] in "
        "the server's configuration does not permit it"
        if error.is_token
        else f"{token!r} is not a special token of {error.encoding}"
    )
    if token.upper() == "ALL":
        problem += '; the entry "ALL", without others, stands for all that the operator permits'
    return Failure(
        Code.PERMISSION_DENIED,
        "SPECIAL_TOKEN_NOT_PERMITTED",
        problem,
        {"token": token, "encoding": error.encoding},
        field=error.field,
        token=error.token if error.is_token else "",
    )


def _overloaded(error: errors.Overloaded) -> Failure:
    by = f" ({error.setting} of its configuration)" if error.setting else ""
    first = (
        "the call was queued for max_queue_seconds or half of the time to its deadline: "
        if error.was_queued
        else ""
    )
    return Failure(
        Code.RESOURCE_EXHAUSTED,
        "OVERLOADED",
        f"{first}the server has reached its limit of {error.what}{by}; try again later",
        {"setting": error.setting} if error.setting else {},
        retry_seconds=error.retry_seconds,
    )


def _in_config(error: errors.InConfig) -> Failure:
    failure = failure_of(error.cause)
    assert failure is not None  # only errors of the table are wrapped
    path = f"config.{error.field or failure.field}"
    if "field" not in failure.metadata:
        return replace(failure, field=path)
    # Messages that name the field start with it.
    message = path + failure.message.removeprefix(failure.metadata["field"])
    return replace(
        failure, field=path, message=message, metadata={**failure.metadata, "field": path}
    )


_invalid: Final = partial(_row, Code.INVALID_ARGUMENT)
_FOUND: Final = (
    "the text contains the special token {token!r} at byte {byte_offset}; "
    "DISALLOWED_SPECIAL_AS_TEXT reads it as ordinary text, unless the operator's "
    "disallowed_special_floor forbids that"
)
_special_token: Final = partial(_invalid, "SPECIAL_TOKEN_IN_TEXT")
_found_in_text: Final = _special_token(
    f"{_FOUND}; it becomes a control token only if allowed_special names it and the operator's "
    "[ceiling] permits it",
    *("token", "byte_offset"),
    field="text",
)
_found_in_chat: Final = _special_token(_FOUND, *("token", "byte_offset", "index", "field"))


def _special_token_found(error: engine.SpecialTokenFound) -> Failure:
    if not error.field:
        return _found_in_text(error)
    failure = _found_in_chat(error)
    message = f"{engine.in_chat(error.index, error.field)}: {failure.message}"
    return replace(failure, message=message, field=_path_in_chat(error))


_invalid_field: Final = _invalid("INVALID_OPTION", "{field}: {problem}", "field", field="{field}")


def _invalid_option(error: engine.InvalidOption) -> Failure:
    # The engine's options have the names of the request's fields; those of chats are in `options`.
    path = "options." if error.option.partition(".")[0] in _CHAT_OPTIONS else ""
    return _invalid_field(errors.InvalidField(path + error.option, error.problem))


#: A row for each type; subclasses need their own.
TABLE: Final[dict[type[Exception], _ToFailure]] = {
    engine.UnknownEncoding: _unknown_encoding,
    errors.EncodingNotLoaded: _encoding_not_loaded,
    errors.FingerprintMismatch: _row(
        Code.FAILED_PRECONDITION,
        "FINGERPRINT_MISMATCH",
        "{encoding} has fingerprint {actual}, not {expected!r}: the server has another vocabulary "
        "than the caller expects",
        *("encoding", "expected", "actual"),
        field="expected_fingerprint",
    ),
    errors.FormatMismatch: _row(
        Code.FAILED_PRECONDITION,
        "FINGERPRINT_MISMATCH",
        "the chat format {format} has fingerprint {actual}, not {expected!r}: the server has "
        "another definition than the caller expects",
        *("format", "expected", "actual"),
        field="expected_format_fingerprint",
    ),
    errors.FormatNotPermitted: _row(
        Code.PERMISSION_DENIED,
        "CHAT_FORMAT_NOT_PERMITTED",
        "this caller may not use the chat format {format}: formats in its table of [ceiling] in "
        "the server's configuration does not name it",
        "format",
        field="format",
    ),
    chat.UnknownChatFormat: _unknown_chat_format,
    chat.ChatFormatMismatch: _chat_format_mismatch,
    chat.InvalidChat: _invalid_chat,
    chat.TemplateLimit: _invalid("TEMPLATE_LIMIT", "{error}", "limit"),
    engine.BudgetTooSmall: _invalid(
        "BUDGET_TOO_SMALL", "{error}", *("needed", "budget", "byte_offset"), field="max_tokens"
    ),
    engine.SpecialTokenFound: _special_token_found,
    errors.SpecialTokenInSegment: _special_token(
        f"{_FOUND}; in segments only a special_token becomes a control token",
        *("token", "byte_offset"),
        field="segments[{index}].text",
    ),
    errors.NoTokenWithId: _no_token_with_id,
    engine.InvalidUnicode: _invalid(
        "INVALID_UTF8",
        "the tokens' bytes are not UTF-8 at byte {byte_offset}; use DECODE_ERRORS_REPLACE or "
        "as_bytes",
        "byte_offset",
        field="ids",
    ),
    errors.InvalidText: _invalid(
        "INVALID_UTF8", "{field} is not UTF-8 at byte {byte_offset}", "byte_offset", field="{field}"
    ),
    errors.InputTooLarge: _input_too_large,
    errors.PartTooShort: _invalid(
        "INPUT_TOO_LARGE",
        "the part of {limit} bytes is too short to decide where the text is cut: send a longer one "
        "(max_unary_bytes of the client), or lower max_tokens",
        *("field", "limit"),
        field="text",
    ),
    errors.NoSplitPoint: _no_split_point,
    errors.InvalidField: _invalid_field,
    engine.InvalidOption: _invalid_option,
    errors.SpecialTokenNotPermitted: _not_permitted,
    errors.Unauthenticated: _row(
        Code.UNAUTHENTICATED,
        "UNAUTHENTICATED",
        "{problem}; send {accepted}",
    ),
    errors.Overloaded: _overloaded,
    errors.QuotaExceeded: _row(
        Code.RESOURCE_EXHAUSTED,
        "QUOTA_EXCEEDED",
        "this caller has used up its quota of {limit} {quota}; try again in {retry_seconds:.3f} s",
        *("quota", "limit"),
    ),
    errors.Draining: _row(
        Code.UNAVAILABLE, "DRAINING", "the server is stopping; try again on another connection"
    ),
    errors.StreamIdle: _row(
        Code.ABORTED,
        "STREAM_IDLE",
        "this stream had no message for {seconds} s; open another one",
        "seconds",
    ),
    errors.InConfig: _in_config,
}


def failure_of(error: BaseException) -> Failure | None:
    """The status for an error.

    Args:
        error: Any exception.
    Returns:
        The failure; None for an unexpected error, which is reported by `internal`.
    """
    row = TABLE.get(type(error))  # type: ignore[arg-type]  # a BaseException is not in the table
    return None if row is None else row(error)


def internal(request_id: str) -> Failure:
    """The failure for an unexpected error. The log has its details under `request_id`."""
    return Failure(
        Code.INTERNAL,
        "INTERNAL",
        f"internal error; quote request id {request_id} to the operator",
        {"request_id": request_id},
    )
