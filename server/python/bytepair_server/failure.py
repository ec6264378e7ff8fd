"""The failure of a call: as a status with details, and as the error of one item of a batch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from bytepair.v1 import text_pb2
from google.protobuf.duration_pb2 import Duration
from google.protobuf.json_format import MessageToJson
from google.rpc import error_details_pb2  # type: ignore[import-untyped]

from bytepair_server.transport.interface import Code, Status

DOMAIN: Final = "bytepair"

#: The maximum of google.protobuf.Duration, which a tiny rate of a quota exceeds.
_MAX_DURATION_SECONDS: Final = 315_576_000_000


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

    code: Code
    reason: str
    message: str
    metadata: dict[str, str] = field(default_factory=dict)
    field: str | None = None
    retry_seconds: float | None = None
    token: str = ""

    def for_transport(self, *, is_json: bool = False) -> Status:
        """The failure in the form that a transport sends, with the details of google.rpc.

        Args:
            is_json: Whether the caller reads JSON, and so the details as JSON too.
        """
        details = [
            error_details_pb2.ErrorInfo(reason=self.reason, domain=DOMAIN, metadata=self.metadata)
        ]
        if self.field is not None:
            fault = {"field": self.field, "description": self.message}
            details.append(error_details_pb2.BadRequest(field_violations=[fault]))
        if self.retry_seconds is not None:
            delay = Duration()
            delay.FromNanoseconds(int(min(self.retry_seconds, _MAX_DURATION_SECONDS) * 1e9))
            details.append(error_details_pb2.RetryInfo(retry_delay=delay))
        sent = [
            (
                each.DESCRIPTOR.full_name,
                each.SerializeToString(),
                MessageToJson(each, indent=None) if is_json else "",
            )
            for each in details
        ]
        return Status(self.code, self.message, sent)

    def item_error(self) -> text_pb2.Error:
        """The failure as the error of one item of a batch."""
        return text_pb2.Error(
            code=self.code,
            reason=self.reason,
            message=self.message,
            metadata=self.metadata,
        )
