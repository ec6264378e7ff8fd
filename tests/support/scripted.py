"""A gRPC server that answers by a script, for failures that no real server produces on demand."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Generic, Self, TypeVar

import grpc
from bytepair.v1 import tokenizer_pb2
from google.protobuf import any_pb2, duration_pb2
from google.rpc import error_details_pb2, status_pb2  # type: ignore[import-untyped]

#: The answer to one call: it returns the bytes of the message, or aborts the call.
Answer = Callable[[grpc.ServicerContext], bytes]
A = TypeVar("A")


def ok(context: grpc.ServicerContext) -> bytes:
    """A Count of 7."""
    return tokenizer_pb2.CountResponse(count=7).SerializeToString()


def details(
    reason: str,
    status: grpc.StatusCode,
    metadata: dict[str, str],
    domain: str = "bytepair",
    delay_ms: int = 1500,
) -> bytes:
    """Return status details as the service sends them, with one of an unknown type."""
    message = status_pb2.Status(code=status.value[0], message="why")
    message.details.append(any_pb2.Any(type_url="type.example/unknown.Thing", value=b"\xff"))
    for detail in (
        error_details_pb2.ErrorInfo(reason=reason, domain=domain, metadata=metadata),
        error_details_pb2.BadRequest(
            field_violations=[error_details_pb2.BadRequest.FieldViolation(field="a_field")]
        ),
        error_details_pb2.RetryInfo(
            retry_delay=duration_pb2.Duration(
                seconds=delay_ms // 1000, nanos=delay_ms % 1000 * 1_000_000
            )
        ),
    ):
        message.details.add().Pack(detail)
    serialised: bytes = message.SerializeToString()
    return serialised


def fail(code: grpc.StatusCode, message: str = "", *, details: bytes | None = None) -> Answer:
    """Return an answer that ends the call with a status, and with google.rpc.Status if given."""

    def answer(context: grpc.ServicerContext) -> bytes:
        trailing: list[tuple[str, str | bytes]] = [("x-request-id", "request-1")]
        if details is not None:
            trailing.append(("grpc-status-details-bin", details))
        context.set_trailing_metadata(tuple(trailing))
        context.abort(code, message)
        raise AssertionError("abort raises")

    return answer


class HeldAnswer:
    """An answer that waits until the test releases it, and records the cancellation of its call."""

    def __init__(self) -> None:
        self.arrived = threading.Event()
        self.over = threading.Event()

    def __call__(self, context: grpc.ServicerContext) -> bytes:
        context.add_callback(self.over.set)
        self.arrived.set()
        self.over.wait()
        return ok(context)


@contextmanager
def refusing() -> Iterator[str]:
    """The address of a port that refuses connections, and that no other process can listen on."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{bound.getsockname()[1]}"


class Scripted(grpc.GenericRpcHandler, Generic[A]):
    """A server that answers each call by the next entry of its script; the last one repeats.

    Attributes:
        target: Address of the server.
        port: Port of the server.
        metadata: The metadata of each call so far.
    """

    def __init__(
        self, script: Sequence[A], credentials: grpc.ServerCredentials | None = None
    ) -> None:
        self._script = script
        self._lock = threading.Lock()
        self.metadata: list[dict[str, str | bytes]] = []
        self._server = grpc.server(ThreadPoolExecutor(max_workers=8))
        self._server.add_generic_rpc_handlers((self,))
        if credentials is None:
            self.port = self._server.add_insecure_port("127.0.0.1:0")
        else:
            self.port = self._server.add_secure_port("127.0.0.1:0", credentials)
        self.target = f"127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End all calls and stop serving."""
        self._server.stop(grace=None).wait()

    def _next(self, context: grpc.ServicerContext) -> A:
        with self._lock:
            entry = self._script[min(len(self.metadata), len(self._script) - 1)]
            self.metadata.append(dict(context.invocation_metadata()))
        return entry


class ScriptedServer(Scripted[Answer]):
    """Answers unary calls of any RPC.

    Attributes:
        calls: The path of each call so far.
    """

    def __init__(self, *script: Answer, credentials: grpc.ServerCredentials | None = None) -> None:
        super().__init__(script or (ok,), credentials)
        self.calls: list[str] = []

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[bytes, bytes]:
        def answer(_request: bytes, context: grpc.ServicerContext) -> bytes:
            self.calls.append(details.method)
            return self._next(context)(context)

        return grpc.unary_unary_rpc_method_handler(answer)
