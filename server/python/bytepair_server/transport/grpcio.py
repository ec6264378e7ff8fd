"""The portable transport: an adapter of `grpc.aio`.

It promises what the interface says, and neither the native transport's speed nor its defence
against hostile peers. On the wire a unary call is a stream of one message. It is registered as one,
because grpcio reads the message of a unary call before it hands the call over, and of a stream only
what is asked for.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import defaultdict
from collections.abc import Callable, Coroutine, Sequence
from functools import lru_cache
from typing import Any, Final

import grpc
from google.rpc import status_pb2  # type: ignore[import-untyped]
from grpc.aio import AbortError

from bytepair_server.admission.abuse import Floods
from bytepair_server.transport.interface import BrokenStream, Kind, Method, Status, Trailers

Context = grpc.aio.ServicerContext[bytes, bytes]

#: What gRPC reads after the last message.
_END: Final[Any] = grpc.aio.EOF
#: grpcio reads no message also where the caller is gone, and cancels the call a moment later. So a
#: call without a message is refused only after this time.
_NO_MESSAGE_SECONDS: Final = 0.2
_CODES: Final = {code.value[0]: code for code in grpc.StatusCode}
_CANCELLED: Final = grpc.StatusCode.CANCELLED.value[0]
_DETAILS: Final = "grpc-status-details-bin"
_TYPES: Final = "type.googleapis.com/"
_CERTIFICATE: Final = "x509_pem_cert"
_REMEMBERED: Final = 1024


def register(server: grpc.aio.Server, methods: Sequence[Method], floods: Floods) -> None:
    """Let a server that is not started answer these RPCs, and no others.

    Args:
        server: gRPC's.
        methods: Every RPC.
        floods: Counts calls of unknown RPCs against their peers.
    """
    services: dict[str, dict[str, Any]] = defaultdict(dict)
    for method in methods:
        service, _, name = method.path.rpartition("/")
        handler: Any
        if method.kind is Kind.UNARY:
            handler = grpc.stream_unary_rpc_method_handler(_unary(method.handler))
        else:
            handler = grpc.stream_stream_rpc_method_handler(_stream(method.handler))
        services[service][name] = handler
    for service, handlers in services.items():
        server.add_registered_method_handlers(service, handlers)
    server.add_generic_rpc_handlers((_Unknown(floods),))


Handler = Callable[[Any], Coroutine[Any, Any, None] | None]


def _unary(handler: Handler) -> Callable[[object, Context], Coroutine[Any, Any, bytes]]:
    async def handle(_: object, context: Context) -> bytes:
        call = GrpcioUnaryCall(context)
        handling = handler(call)
        if handling is not None:
            await handling
        return call.given

    return handle


def _stream(handler: Handler) -> Callable[[object, Context], Coroutine[Any, Any, None]]:
    async def handle(_: object, context: Context) -> None:
        call = GrpcioStreamCall(context)
        handling = handler(call)
        if handling is not None:
            await handling

    return handle


class _GrpcioCall:
    """What unary calls and streams have in common."""

    __slots__ = ("_context", "_headers", "given", "is_over", "peer")

    is_json: Final = False

    def __init__(self, context: Context) -> None:
        self._context: Final = context
        #: As gRPC names it at first: later it may know of none.
        self.peer: Final = context.peer()
        self._headers: dict[str, str] | None = None
        self.given = b""
        self.is_over = False

    @property
    def certificate(self) -> bytes | None:
        for pem in self._context.auth_context().get(_CERTIFICATE, ()):
            return _der(pem)
        return None

    def header(self, name: str) -> str | None:
        if self._headers is None:
            pairs = self._context.invocation_metadata() or ()
            self._headers = {key: value for key, value in pairs if isinstance(value, str)}
        return self._headers.get(name)

    def time_remaining(self) -> float | None:
        return self._context.time_remaining()

    def answer(self, message: bytes, trailers: Trailers = ()) -> None:
        self.is_over = True
        self.given = message
        self._context.set_trailing_metadata(tuple(trailers))

    async def fail(self, status: Status, trailers: Trailers = ()) -> None:
        self.is_over = True
        metadata: list[tuple[str, str | bytes]] = list(trailers)
        if status.details:
            rich = status_pb2.Status(code=status.code, message=status.message)
            for name, data in status.details:
                rich.details.add(type_url=_TYPES + name, value=data)
            metadata.append((_DETAILS, rich.SerializeToString()))
        try:
            await self._context.abort(_CODES[status.code], status.message, tuple(metadata))
        except AbortError:
            """It was sent; grpcio ends the handler by the same error."""

    def when_sent(self, callback: Callable[[], None]) -> None:
        context: Any = self._context  # the type of a callback has no public name
        context.add_done_callback(lambda _: callback())


class GrpcioUnaryCall(_GrpcioCall):
    """A `UnaryCall`."""

    __slots__ = ()

    message: Final = None
    size: Final = None

    async def read(self) -> bytes | None:
        try:
            raw = await self._context.read()
        except AbortError as error:
            raise BrokenStream(_CANCELLED, "the call was ended") from error
        if raw is _END:
            await asyncio.sleep(_NO_MESSAGE_SECONDS)
            return None
        return raw


class GrpcioStreamCall(_GrpcioCall):
    """A `StreamCall`."""

    __slots__ = ()

    async def read(self) -> bytes | None:
        try:
            raw = await self._context.read()
        except AbortError as error:
            raise BrokenStream(_CANCELLED, "the call was ended") from error
        except grpc.aio.InternalError:
            raise asyncio.CancelledError from None  # the caller is gone
        return None if raw is _END else raw

    async def write(self, message: bytes) -> None:
        try:
            await self._context.write(message)
        except grpc.aio.InternalError:
            raise asyncio.CancelledError from None  # the caller is gone

    def promise(self, trailers: Trailers) -> None:
        self._context.set_trailing_metadata(tuple(trailers))

    async def close(self) -> None:
        self.is_over = True


@lru_cache(_REMEMBERED)
def _der(pem: bytes) -> bytes:
    return ssl.PEM_cert_to_DER_cert(pem.decode("ascii"))


class _Unknown(grpc.GenericRpcHandler):
    """UNIMPLEMENTED for unknown RPCs. To be registered last."""

    def __init__(self, floods: Floods) -> None:
        self._handler: Final[Any] = grpc.stream_stream_rpc_method_handler(self._unimplemented)
        self._floods: Final = floods

    def service(self, _: grpc.HandlerCallDetails) -> Any:
        """The same for any."""
        return self._handler

    async def _unimplemented(self, _: object, context: Context) -> None:
        if self._floods.active:
            self._floods.hear_of(context.peer())
        self._floods.came_to_nothing(context.peer())
        await context.abort(grpc.StatusCode.UNIMPLEMENTED, "Method not found!")
