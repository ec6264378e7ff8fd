"""The table that maps every error to a status with its reason and details.

The engine and the server raise typed errors; only `failure_of` maps them. `docs/errors.md` and the
proto document the reasons.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final

import grpc
from bytepair.v1 import text_pb2
from bytepair_engine import chat
from bytepair_engine import errors as engine
from google.protobuf.duration_pb2 import Duration
from google.rpc import error_details_pb2, status_pb2  # type: ignore[import-untyped]

from bytepair_server.errors import (
    Draining,
    FingerprintMismatch,
    FormatMismatch,
    FormatNotPermitted,
    InConfig,
    InputTooLarge,
    InvalidField,
    InvalidText,
    Overloaded,
    QuotaExceeded,
    SpecialTokenInSegment,
    SpecialTokenNotPermitted,
    StreamIdle,
    Unauthenticated,
)
from bytepair_server.transport.interface import Status

DOMAIN: Final = "bytepair"

#: Maximum characters of a name in the request (encoding, token, fingerprint) that an error quotes:
#: it travels in HTTP/2 headers, which are bounded.
MAX_QUOTED_CHARACTERS: Final = 128


@dataclass(frozen=True, slots=True)
class Failure:
    """The status of a failed call.

    Attributes:
        code: The gRPC status.
        reason: The machine-readable reason; see `docs/errors.md`.
        message: The message for people, without input text.
        metadata: All values in the message.
        field: The invalid field of the request; None if there is none.
        retry_seconds: Suggested delay before a retry; None if a retry does not help.
        token: The special token that the policy rejected, for the log; "" for none.
    """

    code: grpc.StatusCode
    reason: str
    message: str
    metadata: dict[str, str] = field(default_factory=dict)
    field: str | None = None
    retry_seconds: float | None = None
    token: str = ""

    def status(self) -> status_pb2.Status:
        """The failure as google.rpc.Status, with its details."""
        status = status_pb2.Status(code=self.number, message=self.message)
        info = error_details_pb2.ErrorInfo(
            reason=self.reason, domain=DOMAIN, metadata=self.metadata
        )
        status.details.add().Pack(info)
        if self.field is not None:
            fault = error_details_pb2.BadRequest()
            fault.field_violations.add(field=self.field, description=self.message)
            status.details.add().Pack(fault)
        if self.retry_seconds is not None:
            delay = Duration()
            delay.FromNanoseconds(int(self.retry_seconds * 1e9))
            status.details.add().Pack(error_details_pb2.RetryInfo(retry_delay=delay))
        return status

    def for_transport(self) -> Status:
        """The failure in the form that a transport sends."""
        details = [(each.type_url.rpartition("/")[2], each.value) for each in self.status().details]
        return Status(self.number, self.message, details)

    def item_error(self) -> text_pb2.Error:
        """The failure as the error of one item of a batch."""
        return text_pb2.Error(
            code=self.number, reason=self.reason, message=self.message, metadata=self.metadata
        )

    @property
    def number(self) -> int:
        """The value of google.rpc.Code."""
        number: int = self.code.value[0]
        return number


#: Minimum similarity of a suggested name, by difflib's ratio.
NEAR: Final = 0.7


def _quote(value: str) -> str:
    if len(value) <= MAX_QUOTED_CHARACTERS:
        return value
    return value[:MAX_QUOTED_CHARACTERS] + "…"


def _unknown_encoding(error: engine.UnknownEncoding) -> Failure:
    name = _quote(error.name)
    nearest = ", ".join(difflib.get_close_matches(name, error.known, cutoff=NEAR))
    problem = f"unknown encoding {name!r}" if name else "no encoding given"
    if nearest:
        problem += f", the nearest known: {nearest}"
    return Failure(
        grpc.StatusCode.NOT_FOUND,
        "UNKNOWN_ENCODING",
        f"{problem}; ListEncodings shows what this server has, and its operator can add a name "
        "under [aliases] of its configuration",
        {"encoding": name, "nearest": nearest} if nearest else {"encoding": name},
        field="encoding",
    )


def _fingerprint_mismatch(error: FingerprintMismatch) -> Failure:
    expected = _quote(error.expected)
    return Failure(
        grpc.StatusCode.FAILED_PRECONDITION,
        "FINGERPRINT_MISMATCH",
        f"{error.encoding} has fingerprint {error.actual}, not {expected!r}",
        {"encoding": error.encoding, "expected": expected, "actual": error.actual},
        field="expected_fingerprint",
    )


def _format_mismatch(error: FormatMismatch) -> Failure:
    expected = _quote(error.expected)
    return Failure(
        grpc.StatusCode.FAILED_PRECONDITION,
        "FINGERPRINT_MISMATCH",
        f"the chat format {error.format} has fingerprint {error.actual}, not {expected!r}",
        {"format": error.format, "expected": expected, "actual": error.actual},
        field="expected_format_fingerprint",
    )


def _format_not_permitted(error: FormatNotPermitted) -> Failure:
    return Failure(
        grpc.StatusCode.PERMISSION_DENIED,
        "CHAT_FORMAT_NOT_PERMITTED",
        f"the chat format {error.format} is not within this caller's ceiling",
        {"format": error.format},
        field="format",
    )


def _unknown_chat_format(error: chat.UnknownChatFormat) -> Failure:
    name = _quote(error.name)
    problem = f"unknown chat format {name!r}" if name else "no chat format given"
    return Failure(
        grpc.StatusCode.NOT_FOUND,
        "UNKNOWN_CHAT_FORMAT",
        f"{problem}; ListChatFormats shows what this server has",
        {"format": name},
        field="format",
    )


def _chat_format_mismatch(error: chat.ChatFormatMismatch) -> Failure:
    metadata = {
        "format": error.format,
        "encoding": error.encoding,
        "missing": _quote(", ".join(error.missing)),
    }
    return Failure(
        grpc.StatusCode.FAILED_PRECONDITION,
        "CHAT_FORMAT_MISMATCH",
        f"the encoding {error.encoding} does not have what the chat format {error.format} needs: "
        f"{metadata['missing'] or 'it is defined for other encodings'}",
        metadata,
        field="format",
    )


def _invalid_chat(error: chat.InvalidChat) -> Failure:
    index = "" if error.index is None else str(error.index)
    kind = "tools" if error.field.startswith("tools") else "messages"
    return Failure(
        grpc.StatusCode.INVALID_ARGUMENT,
        "INVALID_CHAT",
        str(error),
        {"index": index, "field": error.field, "rule": error.rule},
        field=f"{kind}[{index}]" if index else error.field,
    )


def _template_limit(error: chat.TemplateLimit) -> Failure:
    return Failure(
        grpc.StatusCode.INVALID_ARGUMENT, "TEMPLATE_LIMIT", str(error), {"limit": error.limit}
    )


def _budget_too_small(error: engine.BudgetTooSmall) -> Failure:
    return Failure(
        grpc.StatusCode.INVALID_ARGUMENT,
        "BUDGET_TOO_SMALL",
        str(error),
        {"needed": str(error.needed), "budget": str(error.budget)}
        | ({} if error.byte_offset is None else {"byte_offset": str(error.byte_offset)}),
        field="max_tokens",
    )


def _special_token_in_text(error: engine.SpecialTokenFound | SpecialTokenInSegment) -> Failure:
    return Failure(
        grpc.StatusCode.INVALID_ARGUMENT,
        "SPECIAL_TOKEN_IN_TEXT",
        f"the text contains the special token {error.token!r} at byte {error.byte_offset}; "
        "DISALLOWED_SPECIAL_AS_TEXT reads it as ordinary text, unless the operator forbids that",
        {"token": error.token, "byte_offset": str(error.byte_offset)},
        token=error.token,
        field=f"segments[{error.index}].text"
        if isinstance(error, SpecialTokenInSegment)
        else "text",
    )


def _unknown_token_id(error: engine.UnknownTokenId) -> Failure:
    if error.index is None:  # from GetToken, which takes a single id
        return Failure(
            grpc.StatusCode.INVALID_ARGUMENT,
            "UNKNOWN_TOKEN_ID",
            f"no token has id {error.token_id}",
            {"id": str(error.token_id)},
            field="id",
        )
    return Failure(
        grpc.StatusCode.INVALID_ARGUMENT,
        "UNKNOWN_TOKEN_ID",
        f"no token has id {error.token_id}, which is at index {error.index}",
        {"id": str(error.token_id), "index": str(error.index)},
        field="ids",
    )


def _invalid_unicode(error: engine.InvalidUnicode) -> Failure:
    return Failure(
        grpc.StatusCode.INVALID_ARGUMENT,
        "INVALID_UTF8",
        f"the tokens' bytes are not UTF-8 at byte {error.byte_offset}; use "
        "DECODE_ERRORS_REPLACE or as_bytes",
        {"byte_offset": str(error.byte_offset)},
        field="ids",
    )


def _invalid_text(error: InvalidText) -> Failure:
    return Failure(
        grpc.StatusCode.INVALID_ARGUMENT,
        "INVALID_UTF8",
        f"{error.field} is not UTF-8 at byte {error.byte_offset}",
        {"byte_offset": str(error.byte_offset)},
        field=error.field,
    )


def _input_too_large(error: InputTooLarge) -> Failure:
    size = f"more than {error.limit}" if error.size is None else str(error.size)
    metadata = {"field": error.field, "limit": str(error.limit)}
    if error.size is not None:
        metadata["size"] = size
    return Failure(
        grpc.StatusCode.INVALID_ARGUMENT,
        "INPUT_TOO_LARGE",
        f"{error.field} has {size} {error.unit}; the limit of this server is {error.limit}",
        metadata,
        field=error.field,
    )


def _invalid_field(error: InvalidField) -> Failure:
    return Failure(
        grpc.StatusCode.INVALID_ARGUMENT,
        "INVALID_OPTION",
        f"{error.field}: {error.problem}",
        {"field": error.field},
        field=error.field,
    )


def _not_permitted(error: SpecialTokenNotPermitted) -> Failure:
    token = _quote(error.token)
    problem = (
        f"the special token {token!r} of {error.encoding} is not within this caller's ceiling"
        if error.is_token
        else f"{token!r} is not a special token of {error.encoding}"
    )
    return Failure(
        grpc.StatusCode.PERMISSION_DENIED,
        "SPECIAL_TOKEN_NOT_PERMITTED",
        problem,
        {"token": token, "encoding": error.encoding},
        field=error.field,
        token=error.token if error.is_token else "",
    )


def _unauthenticated(_: Unauthenticated) -> Failure:
    return Failure(
        grpc.StatusCode.UNAUTHENTICATED,
        "UNAUTHENTICATED",
        "send 'authorization: Bearer <API key>' with a key that this server knows, or a client "
        "certificate with a known name",
    )


def _overloaded(error: Overloaded) -> Failure:
    return Failure(
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        "OVERLOADED",
        f"the server has reached its limit of {error.what}; try again later",
        retry_seconds=error.retry_seconds,
    )


def _quota_exceeded(error: QuotaExceeded) -> Failure:
    limit = f"{error.limit:g}"
    return Failure(
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        "QUOTA_EXCEEDED",
        f"this caller has used up its quota of {limit} {error.quota}; try again later",
        {"quota": error.quota, "limit": limit},
        retry_seconds=error.retry_seconds,
    )


def _draining(_: Draining) -> Failure:
    return Failure(
        grpc.StatusCode.UNAVAILABLE,
        "DRAINING",
        "the server is stopping; try again on another connection",
    )


def _stream_idle(error: StreamIdle) -> Failure:
    seconds = f"{error.seconds:g}"
    return Failure(
        grpc.StatusCode.ABORTED,
        "STREAM_IDLE",
        f"nothing came through this stream for {seconds} s; open another one",
        {"seconds": seconds},
    )


def _in_config(error: InConfig) -> Failure:
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


#: A row for each type; subclasses need their own.
TABLE: Final[dict[type[Exception], Callable[[Any], Failure]]] = {
    engine.UnknownEncoding: _unknown_encoding,
    FingerprintMismatch: _fingerprint_mismatch,
    FormatMismatch: _format_mismatch,
    FormatNotPermitted: _format_not_permitted,
    chat.UnknownChatFormat: _unknown_chat_format,
    chat.ChatFormatMismatch: _chat_format_mismatch,
    chat.InvalidChat: _invalid_chat,
    chat.TemplateLimit: _template_limit,
    engine.BudgetTooSmall: _budget_too_small,
    engine.SpecialTokenFound: _special_token_in_text,
    SpecialTokenInSegment: _special_token_in_text,
    engine.UnknownTokenId: _unknown_token_id,
    engine.InvalidUnicode: _invalid_unicode,
    InvalidText: _invalid_text,
    InputTooLarge: _input_too_large,
    InvalidField: _invalid_field,
    SpecialTokenNotPermitted: _not_permitted,
    Unauthenticated: _unauthenticated,
    Overloaded: _overloaded,
    QuotaExceeded: _quota_exceeded,
    Draining: _draining,
    StreamIdle: _stream_idle,
    InConfig: _in_config,
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
        grpc.StatusCode.INTERNAL,
        "INTERNAL",
        f"internal error; quote request id {request_id} to the operator",
        {"request_id": request_id},
    )
