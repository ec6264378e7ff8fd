"""A gRPC server that answers as a test tells it, for failures that no sane server shows at will."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Self

import grpc
from bytepair.v1 import tokenizer_pb2
from google.protobuf import any_pb2, duration_pb2
from google.rpc import error_details_pb2, status_pb2  # type: ignore[import-untyped]

#: What one call is answered with: it returns the message's bytes, or ends the call by abort.
Answer = Callable[[grpc.ServicerContext], bytes]


def ok(context: grpc.ServicerContext) -> bytes:
    """A Count of 7."""
    return tokenizer_pb2.CountResponse(count=7).SerializeToString()


def details(
    reason: str, status: grpc.StatusCode, metadata: dict[str, str], domain: str = "bytepair"
) -> bytes:
    """Status details as the service sends them, with one of a type that nobody knows."""
    message = status_pb2.Status(code=status.value[0], message="told")
    message.details.append(any_pb2.Any(type_url="type.example/unknown.Thing", value=b"\xff"))
    for detail in (
        error_details_pb2.ErrorInfo(reason=reason, domain=domain, metadata=metadata),
        error_details_pb2.BadRequest(
            field_violations=[error_details_pb2.BadRequest.FieldViolation(field="a_field")]
        ),
        error_details_pb2.RetryInfo(
            retry_delay=duration_pb2.Duration(seconds=1, nanos=500_000_000)
        ),
    ):
        message.details.add().Pack(detail)
    serialised: bytes = message.SerializeToString()
    return serialised


def fail(code: grpc.StatusCode, message: str = "", *, details: bytes | None = None) -> Answer:
    """An answer that ends the call with a status, and with google.rpc.Status if given."""

    def answer(context: grpc.ServicerContext) -> bytes:
        trailing: list[tuple[str, str | bytes]] = [("x-request-id", "request-1")]
        if details is not None:
            trailing.append(("grpc-status-details-bin", details))
        context.set_trailing_metadata(tuple(trailing))
        context.abort(code, message)
        raise AssertionError("abort raises")

    return answer


class Held:
    """An answer that waits until the test lets it go; it notes when its call is cancelled."""

    def __init__(self) -> None:
        self.arrived = threading.Event()
        self.over = threading.Event()

    def __call__(self, context: grpc.ServicerContext) -> bytes:
        context.add_callback(self.over.set)
        self.arrived.set()
        self.over.wait()
        return ok(context)


class ScriptedServer:
    """Answers each call of any RPC by the next answer of its script, then by the last for ever.

    Attributes:
        target: Where it is served.
        calls: The path of each call so far.
        metadata: The metadata of each call so far.
    """

    def __init__(self, *script: Answer, credentials: grpc.ServerCredentials | None = None) -> None:
        self._script = script or (ok,)
        self._lock = threading.Lock()
        self.calls: list[str] = []
        self.metadata: list[dict[str, str | bytes]] = []
        self._server = grpc.server(ThreadPoolExecutor(max_workers=8))
        self._server.add_generic_rpc_handlers((_Handler(self._answer),))
        if credentials is None:
            port = self._server.add_insecure_port("127.0.0.1:0")
        else:
            port = self._server.add_secure_port("127.0.0.1:0", credentials)
        self.port = port
        self.target = f"127.0.0.1:{port}"

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """End all calls and go away."""
        self._server.stop(grace=None).wait()

    def _answer(self, path: str, context: grpc.ServicerContext) -> bytes:
        with self._lock:
            answer = self._script[min(len(self.calls), len(self._script) - 1)]
            self.calls.append(path)
            self.metadata.append(dict(context.invocation_metadata()))
        return answer(context)


class _Handler(grpc.GenericRpcHandler):
    def __init__(self, answer: Callable[[str, grpc.ServicerContext], bytes]) -> None:
        self._answer = answer

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[bytes, bytes]:
        path = details.method
        return grpc.unary_unary_rpc_method_handler(
            lambda _request, context: self._answer(path, context)
        )
