"""The few messages of google.rpc and grpc.health.v1 that a client needs, without their packages.

They are built in a descriptor pool of their own, so that they never clash with the real
ones of googleapis-common-protos or grpcio-health-checking where a program has those too:
what counts on the wire is field numbers and types, not names.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

# The trailing metadata in which gRPC carries a serialised google.rpc.Status.
STATUS_DETAILS_KEY = "grpc-status-details-bin"
ERROR_DOMAIN = "bytepair"

_PACKAGE = "bytepair_client.wire"
_NANOS_PER_SECOND = 1_000_000_000

# Message -> its fields in the order of their numbers, which are 1, 2, 3, … in all of them:
# (name, type), where a type is a scalar, or another message of this table; "*" repeats it.
_MESSAGES: dict[str, list[tuple[str, str]]] = {
    "Status": [("code", "int32"), ("message", "string"), ("details", "*Any")],
    "Any": [("type_url", "string"), ("value", "bytes")],
    "ErrorInfo": [("reason", "string"), ("domain", "string"), ("metadata", "*Entry")],
    "Entry": [("key", "string"), ("value", "string")],
    "RetryInfo": [("retry_delay", "Duration")],
    "Duration": [("seconds", "int64"), ("nanos", "int32")],
    "BadRequest": [("field_violations", "*FieldViolation")],
    "FieldViolation": [("field", "string"), ("description", "string")],
    "HealthCheckRequest": [("service", "string")],
    "HealthCheckResponse": [("status", "int32")],
}
_SCALARS = {
    "int32": FieldDescriptorProto.TYPE_INT32,
    "int64": FieldDescriptorProto.TYPE_INT64,
    "string": FieldDescriptorProto.TYPE_STRING,
    "bytes": FieldDescriptorProto.TYPE_BYTES,
}


def _build() -> dict[str, Any]:
    file = FileDescriptorProto(name="bytepair_client/wire.proto", package=_PACKAGE, syntax="proto3")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for number, (field_name, kind) in enumerate(fields, start=1):
            element = message.field.add(name=field_name, number=number)
            element.label = (
                FieldDescriptorProto.LABEL_REPEATED
                if kind.startswith("*")
                else FieldDescriptorProto.LABEL_OPTIONAL
            )
            kind = kind.removeprefix("*")
            if kind in _SCALARS:
                element.type = _SCALARS[kind]
            else:
                element.type = FieldDescriptorProto.TYPE_MESSAGE
                element.type_name = f".{_PACKAGE}.{kind}"
    pool = DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return {
        name: GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))
        for name in _MESSAGES
    }


_CLASSES = _build()
HealthCheckRequest: Any = _CLASSES["HealthCheckRequest"]
HealthCheckResponse: Any = _CLASSES["HealthCheckResponse"]


@dataclass(frozen=True, slots=True)
class StatusDetails:
    """What the details of a failed call say.

    Attributes:
        reason: Of the ErrorInfo whose domain is bytepair's; None if there is none.
        metadata: Of the same ErrorInfo.
        fields: The fields at fault, by BadRequest.
        retry_after: Seconds, by RetryInfo; None if there is none.
    """

    reason: str | None = None
    metadata: dict[str, str] = field(default_factory=dict)
    fields: tuple[str, ...] = ()
    retry_after: float | None = None


def parse_details(serialised: bytes) -> StatusDetails:
    """Read the value of `grpc-status-details-bin`.

    Args:
        serialised: A google.rpc.Status. Details of types that are not known here, and of
            other domains, are passed over.
    Returns:
        What was found; an empty StatusDetails if the bytes are not such a message, because
        a failure with broken details is still the failure that its status names.
    """
    reason: str | None = None
    metadata: dict[str, str] = {}
    fields: tuple[str, ...] = ()
    retry_after: float | None = None
    try:
        for detail in _CLASSES["Status"].FromString(serialised).details:
            kind = detail.type_url.rpartition("/")[2]
            if kind == "google.rpc.ErrorInfo":
                info = _CLASSES["ErrorInfo"].FromString(detail.value)
                if info.domain == ERROR_DOMAIN:
                    reason = info.reason
                    metadata = {entry.key: entry.value for entry in info.metadata}
            elif kind == "google.rpc.BadRequest":
                violations = _CLASSES["BadRequest"].FromString(detail.value).field_violations
                fields = tuple(violation.field for violation in violations)
            elif kind == "google.rpc.RetryInfo":
                delay = _CLASSES["RetryInfo"].FromString(detail.value).retry_delay
                retry_after = delay.seconds + delay.nanos / _NANOS_PER_SECOND
    except DecodeError:
        return StatusDetails()
    return StatusDetails(reason, metadata, fields, retry_after)
