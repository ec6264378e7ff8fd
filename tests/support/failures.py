"""A failed call, unpacked from its status details."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import grpc
from google.rpc import error_details_pb2, status_pb2  # type: ignore[import-untyped]


@dataclass(frozen=True)
class Failed:
    """A failed call.

    Attributes:
        code: The gRPC status.
        message: The message of the status.
        reason: The reason in ErrorInfo; "" without details.
        metadata: The metadata in ErrorInfo.
        field: The field of the first violation in BadRequest; "" if there is none.
        retry_seconds: The delay in RetryInfo; None if there is none.
        request_id: The request id in the trailing metadata.
    """

    code: grpc.StatusCode
    message: str
    reason: str
    metadata: dict[str, str]
    field: str
    retry_seconds: float | None
    request_id: str


def failure(call: Callable[..., Any], *arguments: Any, **options: Any) -> Failed:
    """Make a call that must fail, and return its error.

    Raises:
        AssertionError: The call succeeded.
    """
    try:
        call(*arguments, **options)
    except grpc.RpcError as error:
        return read(error)
    raise AssertionError("the call did not fail")


def read(error: grpc.RpcError) -> Failed:
    """Unpack the error of a call."""
    pairs: Any = error.trailing_metadata() or ()
    trailing: dict[str, Any] = dict(pairs)
    status = status_pb2.Status.FromString(trailing.get("grpc-status-details-bin", b""))
    info = error_details_pb2.ErrorInfo()
    fault = error_details_pb2.BadRequest()
    retry = error_details_pb2.RetryInfo()
    has_retry = False
    for detail in status.details:
        detail.Unpack(info)
        detail.Unpack(fault)
        has_retry = detail.Unpack(retry) or has_retry
    if status.details:
        assert info.domain == "bytepair"
        assert status.code == error.code().value[0]
        assert status.message == error.details()
    return Failed(
        code=error.code(),
        message=error.details() or "",
        reason=info.reason,
        metadata=dict(info.metadata),
        field=fault.field_violations[0].field if fault.field_violations else "",
        retry_seconds=retry.retry_delay.ToTimedelta().total_seconds() if has_retry else None,
        request_id=trailing.get("x-request-id", ""),
    )
