"""From how a call failed to the exception that says so: by reason first, by status otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

import grpc
from bytepair.v1 import text_pb2

from bytepair_client import errors
from bytepair_client.rpc_status import STATUS_DETAILS_KEY, StatusDetails, parse_details

REQUEST_ID_KEY = "x-request-id"

BY_REASON: Mapping[str, type[errors.TokenizerError]] = {
    kind.REASON: kind
    for kind in (
        errors.UnknownEncoding,
        errors.FingerprintMismatch,
        errors.SpecialTokenInText,
        errors.UnknownTokenId,
        errors.InvalidUtf8,
        errors.InputTooLarge,
        errors.InvalidOption,
        errors.SpecialTokenNotPermitted,
        errors.Unauthenticated,
        errors.Overloaded,
        errors.QuotaExceeded,
        errors.StreamIdle,
        errors.Draining,
    )
    if kind.REASON is not None
}

# For failures that carry no reason of ours: they come from gRPC itself or from a proxy.
BY_STATUS: Mapping[grpc.StatusCode, type[errors.TokenizerError]] = {
    grpc.StatusCode.CANCELLED: errors.Cancelled,
    grpc.StatusCode.UNKNOWN: errors.InternalError,
    grpc.StatusCode.INVALID_ARGUMENT: errors.RequestRefused,
    grpc.StatusCode.DEADLINE_EXCEEDED: errors.DeadlineExceeded,
    grpc.StatusCode.NOT_FOUND: errors.RequestRefused,
    grpc.StatusCode.ALREADY_EXISTS: errors.RequestRefused,
    grpc.StatusCode.PERMISSION_DENIED: errors.RequestRefused,
    grpc.StatusCode.RESOURCE_EXHAUSTED: errors.ResourceExhausted,
    grpc.StatusCode.FAILED_PRECONDITION: errors.RequestRefused,
    grpc.StatusCode.ABORTED: errors.RequestRefused,
    grpc.StatusCode.OUT_OF_RANGE: errors.RequestRefused,
    grpc.StatusCode.UNIMPLEMENTED: errors.Unimplemented,
    grpc.StatusCode.INTERNAL: errors.InternalError,
    grpc.StatusCode.UNAVAILABLE: errors.Unavailable,
    grpc.StatusCode.DATA_LOSS: errors.InternalError,
    grpc.StatusCode.UNAUTHENTICATED: errors.Unauthenticated,
}

_STATUS_BY_NUMBER = {status.value[0]: status for status in grpc.StatusCode}

# Metadata as gRPC hands it over: pairs, or None where the call never got an answer.
Metadata = Iterable[tuple[str, str | bytes]] | None


class FailedCall(Protocol):
    """What the exceptions of grpc and of grpc.aio have in common."""

    def code(self) -> grpc.StatusCode: ...
    def details(self) -> str | None: ...
    def initial_metadata(self) -> Metadata: ...
    def trailing_metadata(self) -> Metadata: ...


def from_call(failed: FailedCall, *, target: str, timeout: float | None) -> errors.TokenizerError:
    """The exception for a call that ended with a status other than OK.

    Args:
        failed: The exception that grpc raised.
        target: Whom the client calls, for messages.
        timeout: Seconds that the call was given; None if it had no deadline.
    Returns:
        One of the tree in `errors.py`, not yet raised. A status that carries a reason which
        is not known here gives TokenizerError itself.
    """
    trailing = list(failed.trailing_metadata() or ())
    details = _value(trailing, STATUS_DETAILS_KEY)
    found = parse_details(details) if isinstance(details, bytes) else StatusDetails()
    error = _exception(
        failed.code(),
        found.reason,
        _message(failed, found.reason, target, timeout),
        found.metadata,
        request_id=request_id_of(trailing, failed.initial_metadata()),
    )
    if isinstance(error, errors.InvalidOption) and found.fields:
        error.metadata.setdefault("field", found.fields[0])
    if isinstance(error, errors.ResourceExhausted):
        error.retry_after = found.retry_after
    return error


def late(target: str, timeout: float) -> errors.DeadlineExceeded:
    """The exception for a call that had no answer within its timeout."""
    message = _no_answer_within(target, timeout)
    return errors.DeadlineExceeded(message, code=grpc.StatusCode.DEADLINE_EXCEEDED.name)


def cut_off(target: str) -> errors.Cancelled:
    """The exception for a call whose client was closed."""
    message = f"{target}: the client was closed during the call"
    return errors.Cancelled(message, code=grpc.StatusCode.CANCELLED.name)


def request_id_of(*parts: Metadata) -> str | None:
    """The server's name for a call, by its metadata; None if that does not say."""
    found = _value([pair for part in parts for pair in part or ()], REQUEST_ID_KEY)
    return found if isinstance(found, str) else None


def from_item(error: text_pb2.Error, item: int | None = None) -> errors.TokenizerError:
    """The exception for one failed item of a batch.

    Args:
        error: The `error` of a result of BatchEncode, BatchDecode or BatchCount.
        item: The index of that result, from 0, if it is to be named.
    Returns:
        The exception that the call for this item alone would have raised, not yet raised.
    """
    status = _STATUS_BY_NUMBER.get(error.code, grpc.StatusCode.UNKNOWN)
    return _exception(status, error.reason or None, error.message, error.metadata, item=item)


def _exception(
    status: grpc.StatusCode,
    reason: str | None,
    message: str,
    metadata: Mapping[str, str],
    *,
    item: int | None = None,
    request_id: str | None = None,
) -> errors.TokenizerError:
    if reason is None:
        kind = BY_STATUS.get(status, errors.TokenizerError)
    else:
        kind = BY_REASON.get(reason, errors.TokenizerError)
    return kind(
        message,
        code=status.name,
        reason=reason,
        metadata=metadata,
        item=item,
        request_id=request_id,
    )


def _message(failed: FailedCall, reason: str | None, target: str, timeout: float | None) -> str:
    details = failed.details() or ""
    if reason is not None and details:
        return details
    status = failed.code()
    if status is grpc.StatusCode.UNAVAILABLE:
        return f"no answer from {target}: {details}"
    if status is grpc.StatusCode.DEADLINE_EXCEEDED and timeout is not None:
        return _no_answer_within(target, timeout)
    return f"{target}: {status.name}: {details}"


def _no_answer_within(target: str, timeout: float) -> str:
    return f"no answer from {target} within {timeout:g} s"


def _value(metadata: Iterable[tuple[str, str | bytes]], key: str) -> str | bytes | None:
    return next((value for name, value in metadata if name == key), None)
