"""The portable transport: an adapter of `grpc.aio`.

It implements the interface, without the native transport's speed and its defence against hostile
peers: put a proxy before a port that unauthenticated callers can reach.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import defaultdict, deque
from collections.abc import Callable, Coroutine
from contextlib import nullcontext
from functools import lru_cache
from typing import Any, Final

import grpc
from google.rpc import status_pb2  # type: ignore[import-untyped]
from grpc.aio import AbortError

from bytepair_server.transport import ports
from bytepair_server.transport.interface import (
    AtOnce,
    Kind,
    Limits,
    Method,
    Setup,
    Status,
    TlsFiles,
    Trailers,
    UnreadableMessage,
)

Context = grpc.aio.ServicerContext[bytes, bytes]
Handler = Callable[[Any], Coroutine[Any, Any, None] | None]

#: Time for calls to end by themselves when the transport stops.
STOP_SECONDS: Final = 1.0
#: Minimum interval of a client's pings, with or without calls: half of what our client uses.
MIN_PING_INTERVAL_MS: Final = 10_000
#: Maximum calls that gRPC holds until their handlers start.
MAX_PENDING_CALLS: Final = 1 << 16

#: gRPC's value after the last message.
_END: Final[Any] = grpc.aio.EOF
_CODES: Final = {code.value[0]: code for code in grpc.StatusCode}
_CANCELLED: Final = grpc.StatusCode.CANCELLED.value[0]
_INTERNAL: Final = grpc.StatusCode.INTERNAL.value[0]
_DETAILS: Final = "grpc-status-details-bin"
_TYPES: Final = "type.googleapis.com/"
_CERTIFICATE: Final = "x509_pem_cert"
_CACHED_PEERS: Final = 1024


class GrpcioTransport:
    """A `Transport`."""

    def __init__(self, setup: Setup) -> None:
        """See `Transport`. It applies the limits that gRPC supports, closes no connections, and
        serves no files."""
        self._setup: Final = setup
        #: Changed files, which gRPC's threads fetch.
        self._changed: Final[deque[TlsFiles]] = deque(maxlen=1)
        self._server: grpc.aio.Server | None = None

    async def start(self, address: str, *, shares_port: bool, unix_socket_mode: str) -> str:
        """See `Transport`."""
        tls = self._setup.tls
        server = grpc.aio.server(options=_options(self._setup.limits, shares_port=shares_port))
        services: dict[str, dict[str, Any]] = defaultdict(dict)
        for method in self._setup.methods:
            service, _, name = method.path.rpartition("/")
            services[service][name] = self._handler(method)
        server.add_generic_rpc_handlers(
            [grpc.method_handlers_generic_handler(*each) for each in services.items()]
        )
        is_unix = address.startswith("unix:")
        try:
            with ports.created_with(int(unix_socket_mode, 8)) if is_unix else nullcontext():
                if tls is None:
                    port = server.add_insecure_port(address)
                else:
                    credentials = grpc.dynamic_ssl_server_credentials(
                        _configuration(tls),
                        self._fetch,  # type: ignore[arg-type]  # its types forbid None
                        require_client_authentication=tls.client_authorities is not None,
                    )
                    port = server.add_secure_port(address, credentials)
        except RuntimeError:
            port = 0
        if port == 0:
            # gRPC does not say why, but the system does.
            ports.listen(address, share=False, unix_socket_mode=unix_socket_mode).close()
            raise ports.unavailable(address, "gRPC rejects it without a reason")
        await server.start()
        self._server = server
        return address if is_unix else f"{address.rpartition(':')[0]}:{port}"

    def replace_tls(self, tls: TlsFiles) -> None:
        """See `Transport`."""
        self._changed.append(tls)

    def drain(self) -> None:
        """Do nothing: gRPC's server closes its port only by `stop`. New calls on open connections
        could then end with CANCELLED, which no client retries, instead of DRAINING."""

    async def stop(self) -> None:
        """Close all connections."""
        if self._server is not None:
            await self._server.stop(STOP_SECONDS)

    def _fetch(self) -> grpc.ServerCertificateConfiguration | None:
        """Return changed files, once; None if nothing has changed. gRPC calls it at each
        handshake."""
        try:
            return _configuration(self._changed.pop())
        except IndexError:
            return None

    def _handler(self, method: Method) -> Any:
        async def unary(raw: bytes, context: Context) -> bytes:
            call = _UnaryCall(context, raw)
            await self._run(method.handler, call)
            return call.given

        async def stream(_: object, context: Context) -> None:
            call = _StreamCall(context)
            await self._run(method.handler, call)

        if method.kind is Kind.UNARY:
            return grpc.unary_unary_rpc_method_handler(unary)
        return grpc.stream_stream_rpc_method_handler(stream)

    async def _run(self, handler: Handler, call: _Call) -> None:
        try:
            handling = handler(call)
            if handling is not None:
                await handling
        except Exception as error:
            self._setup.on_fault(error)
            call.fail(Status(_INTERNAL, "internal error"))
        await call.end()


class _Call:
    """The base of unary calls and streams."""

    __slots__ = ("_context", "_failure", "_headers", "peer")

    is_json: Final = False

    def __init__(self, context: Context) -> None:
        self._context: Final = context
        #: Read at once: gRPC may not know it later.
        self.peer: Final = context.peer()
        self._headers: dict[str, str] | None = None
        self._failure: tuple[Status, Trailers] | None = None

    @property
    def certificate(self) -> bytes | None:
        for pem in self._context.auth_context().get(_CERTIFICATE, ()):
            return _der(pem)
        return None

    def header(self, name: str) -> str | None:
        if self._headers is None:
            self._headers = {}
            for key, value in self._context.invocation_metadata() or ():
                if isinstance(value, str):  # several values are one, as in the native transport
                    before = self._headers.get(key)
                    self._headers[key] = value if before is None else f"{before}, {value}"
        return self._headers.get(name)

    def time_remaining(self) -> float | None:
        return self._context.time_remaining()

    def fail(self, status: Status, trailers: Trailers = (), headers: Trailers = ()) -> None:
        self._failure = status, (*trailers, *headers)

    async def end(self) -> None:
        """Send the status of a failed call."""
        if self._failure is None:
            return
        status, trailers = self._failure
        metadata: list[tuple[str, str | bytes]] = list(trailers)
        if status.details:
            rich = status_pb2.Status(code=status.code, message=status.message)
            for name, data, _ in status.details:
                rich.details.add(type_url=_TYPES + name, value=data)
            metadata.append((_DETAILS, rich.SerializeToString()))
        await self._context.abort(_CODES[status.code], status.message, tuple(metadata))


class _UnaryCall(_Call):
    """A `UnaryCall`."""

    __slots__ = ("given", "message")

    is_excess: Final = False

    def __init__(self, context: Context, message: bytes) -> None:
        super().__init__(context)
        self.message: Final = message
        self.given = b""

    @property
    def size(self) -> int:
        return len(self.message)

    def has_room(self, _: int) -> bool:
        return True

    async def read(self) -> bytes | None:
        return self.message

    def answer(self, message: bytes, trailers: Trailers = ()) -> None:
        self.given = message
        self._context.set_trailing_metadata(tuple(trailers))


class _StreamCall(_Call):
    """A `StreamCall`."""

    __slots__ = ()

    async def read(self, at_once: AtOnce | None = None) -> bytes | None:
        del at_once
        try:
            raw = await self._context.read()
        except AbortError as error:
            raise UnreadableMessage(_CANCELLED, "the call was ended") from error
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
        """Do nothing: gRPC ends the call once its handler has returned."""


def _options(limits: Limits, *, shares_port: bool) -> list[tuple[str, int]]:
    options = [
        # Otherwise two servers could share the port, and each would get some of the calls.
        ("grpc.so_reuseport", int(shares_port)),
        ("grpc.max_receive_message_length", limits.max_message_bytes),
        # gRPC's value is the smallest size that it rejects.
        ("grpc.max_metadata_size", limits.max_metadata_bytes + 1),
        ("grpc.absolute_max_metadata_size", limits.max_metadata_bytes + 1),
        ("grpc.max_concurrent_streams", limits.max_concurrent_streams),
        # Otherwise gRPC cancels some of a thousand calls that arrive at once.
        ("grpc.server.max_pending_requests", MAX_PENDING_CALLS),
        ("grpc.server.max_pending_requests_hard_limit", MAX_PENDING_CALLS),
        ("grpc.max_allowed_incoming_connections", limits.max_connections),
        ("grpc.server_handshake_timeout_ms", int(limits.handshake_seconds * 1000)),
        ("grpc.keepalive_time_ms", int(limits.keepalive_seconds * 1000)),
        ("grpc.keepalive_timeout_ms", int(limits.keepalive_timeout_seconds * 1000)),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.min_ping_interval_without_data_ms", MIN_PING_INTERVAL_MS),
    ]
    if limits.max_connection_age_seconds:
        age = int(limits.max_connection_age_seconds * 1000)
        options.append(("grpc.max_connection_age_ms", age))
    return options


def _configuration(tls: TlsFiles) -> grpc.ServerCertificateConfiguration:
    return grpc.ssl_server_certificate_configuration(
        [(tls.key, tls.certificate)], tls.client_authorities
    )


@lru_cache(_CACHED_PEERS)
def _der(pem: bytes) -> bytes:
    return ssl.PEM_cert_to_DER_cert(pem.decode("ascii"))
