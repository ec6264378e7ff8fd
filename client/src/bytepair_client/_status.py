"""Maps failed calls to exceptions, by reason or else by status."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

import grpc
from bytepair.v1 import text_pb2
from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2, status_pb2  # type: ignore[import-untyped]

from bytepair_client import _errors as errors
from bytepair_client._call import RPCS

REQUEST_ID_KEY: Final = "x-request-id"
# The trailing metadata that holds a serialised google.rpc.Status.
STATUS_DETAILS_KEY: Final = "grpc-status-details-bin"
ERROR_DOMAIN: Final = "bytepair"

# For errors without a reason of the service: those of gRPC or of a proxy.
BY_STATUS: Final[Mapping[grpc.StatusCode, type[errors.TokenizerError]]] = {
    **dict.fromkeys(grpc.StatusCode, errors.RequestRejected),
    grpc.StatusCode.CANCELLED: errors.Cancelled,
    grpc.StatusCode.UNKNOWN: errors.InternalError,
    grpc.StatusCode.DEADLINE_EXCEEDED: errors.DeadlineExceeded,
    grpc.StatusCode.RESOURCE_EXHAUSTED: errors.ResourceExhausted,
    grpc.StatusCode.UNIMPLEMENTED: errors.Unimplemented,
    grpc.StatusCode.INTERNAL: errors.InternalError,
    grpc.StatusCode.UNAVAILABLE: errors.Unavailable,
    grpc.StatusCode.DATA_LOSS: errors.InternalError,
    grpc.StatusCode.UNAUTHENTICATED: errors.Unauthenticated,
}

_STATUS_BY_NUMBER = {status.value[0]: status for status in grpc.StatusCode}


def _method_name(rpc: str) -> str:
    """The method that calls an RPC: "encode_batch()" for "BatchEncode"."""
    words = re.findall("[A-Z][a-z]+", rpc)
    words.sort(key="Batch".__eq__)  # to the end
    return "_".join(words).lower() + "()"


# The server's messages use names of the API; these are the names in Python.
_PYTHON_NAMES: Final = {
    "DISALLOWED_SPECIAL_AS_TEXT": "disallowed_special=()",
    "DISALLOWED_SPECIAL_REJECT": 'disallowed_special="all"',
    "DECODE_ERRORS_REPLACE": 'errors="replace"',
    "DECODE_ERRORS_STRICT": 'errors="strict"',
    "OFFSET_UNIT_NONE": "encode()",
    "or as_bytes": "or decode_bytes() (in a stream, as_bytes=True)",
} | {  # a name of one word may be a word of the message
    rpc.name: _method_name(rpc.name) for rpc in RPCS.values() if not rpc.name.istitle()
}
# Streams take their options in a message `config`, and chats in a message `options`.
_OUTER: Final = re.compile(r"\A(?:config|options)\.")
_API_NAME: Final = re.compile(rf"\b({'|'.join(_PYTHON_NAMES)})\b")

# gRPC's message for one that is too large; the prefix says that the client rejected it.
_MESSAGE_SIZE: Final = re.compile(
    r"(CLIENT: )?Received message larger than max \((\d+) vs\. (\d+)\)"
)


def from_call(
    failed: Any, target: str, timeout: float | None, *, is_stream: bool = False
) -> errors.TokenizerError:
    """The exception for an error of grpc or grpc.aio, whose interfaces are the same. An unknown
    reason gives TokenizerError itself."""
    trailing: dict[str, Any] = dict(iter(failed.trailing_metadata() or ()))
    info, retry_after = _details(trailing.get(STATUS_DETAILS_KEY))
    reason = None if info is None else info.reason
    if reason is None and failed.code() is grpc.StatusCode.RESOURCE_EXHAUSTED:
        size = _MESSAGE_SIZE.search(failed.details() or "")
        if size is not None:
            return _message_too_large(size[2], size[3], is_answer=size[1] is not None)
    error = _exception(
        failed.code(),
        reason,
        _message(failed, reason, target, timeout, is_stream=is_stream),
        {} if info is None else info.metadata,
        request_id=trailing.get(REQUEST_ID_KEY),
    )
    if "field" in error.metadata:
        error.metadata["field"] = _OUTER.sub("", error.metadata["field"])
    if isinstance(error, errors.ResourceExhausted):
        error.retry_after = retry_after
    return error


def from_item(error: text_pb2.Error, item: int | None = None) -> errors.TokenizerError:
    """The exception for a failed batch item: that of a call for the item alone, with its index."""
    status = _STATUS_BY_NUMBER.get(error.code, grpc.StatusCode.UNKNOWN)
    message = _in_python(error.message)
    return _exception(status, error.reason or None, message, error.metadata, item=item)


def to_item(error: errors.TokenizerError) -> text_pb2.Error:
    """The inverse of `from_item`."""
    status = grpc.StatusCode[error.code] if error.code else grpc.StatusCode.INVALID_ARGUMENT
    return text_pb2.Error(
        code=status.value[0],
        reason=error.reason,
        message=error.message,
        metadata=error.metadata,
    )


def _details(serialised: object) -> tuple[Any, float | None]:
    """The service's ErrorInfo if there is one, and the seconds of RetryInfo.

    Details of other types or domains, and invalid ones, are ignored.
    """
    own, info, retry = None, error_details_pb2.ErrorInfo(), error_details_pb2.RetryInfo()
    retry_after: float | None = None
    if isinstance(serialised, bytes):
        with suppress(DecodeError):
            for detail in status_pb2.Status.FromString(serialised).details:
                if own is None and detail.Unpack(info) and info.domain == ERROR_DOMAIN:
                    own = info
                elif detail.Unpack(retry):
                    retry_after = retry.retry_delay.ToTimedelta().total_seconds()
    return own, retry_after


def _exception(
    status: grpc.StatusCode,
    reason: str | None,
    message: str,
    metadata: Mapping[str, str],
    **others: Any,
) -> errors.TokenizerError:
    if reason is None:
        kind = BY_STATUS[status]
    else:
        kind = errors.BY_REASON.get(reason, errors.TokenizerError)
    return kind(message, code=status.name, reason=reason, metadata=metadata, **others)


def _message_too_large(size: str, limit: str, *, is_answer: bool) -> errors.TokenizerError:
    code = grpc.StatusCode.RESOURCE_EXHAUSTED.name
    metadata = {"size": size, "limit": limit}
    if is_answer:
        message = f"the response has {size} bytes; the client accepts {limit} (max_response_bytes)"
        return errors.ResourceExhausted(message, code=code, metadata=metadata)
    message = f"the request has {size} bytes; the limit of this server is {limit}"
    return errors.InputTooLarge(message, code=code, metadata={"field": "request", **metadata})


def _message(
    failed: Any, reason: str | None, target: str, timeout: float | None, *, is_stream: bool
) -> str:
    details = failed.details() or ""
    if reason is not None and details:
        return _in_python(details)
    status = failed.code()
    if status is grpc.StatusCode.UNAVAILABLE:
        return f"no answer from {target}: {details}"
    if status is grpc.StatusCode.DEADLINE_EXCEEDED and timeout is not None:
        if is_stream:
            return f"the stream at {target} did not end within {timeout:g} s"
        return f"no answer from {target} within {timeout:g} s"
    return f"{target}: {status.name}: {details}"


def _in_python(message: str) -> str:
    return _API_NAME.sub(lambda found: _PYTHON_NAMES[found[1]], _OUTER.sub("", message))
