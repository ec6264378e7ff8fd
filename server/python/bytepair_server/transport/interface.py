"""The interface of a transport: calls as bytes.

`rpc/` and `streaming/` depend only on this file. A transport runs handlers on the event loop, which
they must not block. Calls are not thread-safe.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field, fields
from enum import IntEnum, StrEnum
from typing import Any, Final, Protocol

from bytepair_server.config.settings import Settings

#: Returns the answer to a message at once, or None if the handler's task must process it.
AtOnce = Callable[[bytes], bytes | None]

#: Trailing metadata: lower-case names and ASCII values.
Trailers = Sequence[tuple[str, str]]


class Kind(StrEnum):
    """Whether request and answer of an RPC are one message or a stream."""

    UNARY = "unary"
    SERVER_STREAM = "server_stream"
    CLIENT_STREAM = "client_stream"
    BIDI_STREAM = "bidi_stream"


class Code(IntEnum):
    """gRPC's status codes of failed calls (grpc/grpc doc/statuscodes.md) that the server uses."""

    INVALID_ARGUMENT = 3
    NOT_FOUND = 5
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    INTERNAL = 13
    UNAVAILABLE = 14
    UNAUTHENTICATED = 16


@dataclass(frozen=True, slots=True)
class Status:
    """The status of a failed call.

    Attributes:
        code: The gRPC status code.
        message: The message for people.
        details: Messages of `google.rpc.Status.details`: full type name, serialized message, and
            for a call in JSON the message as JSON, otherwise "".
    """

    code: int
    message: str
    details: Sequence[tuple[str, bytes, str]] = ()


class Call(Protocol):
    """The part of a call that all kinds share.

    The handler's task is cancelled if the caller cancels or the deadline passes.
    """

    @property
    def peer(self) -> str:
        """The address of the connection: `ipv4:127.0.0.1:4711`, `ipv6:[::1]:4711` or `unix:`."""

    @property
    def certificate(self) -> bytes | None:
        """The verified client certificate, as DER; None without one."""

    @property
    def is_json(self) -> bool:
        """Whether messages are proto3 JSON."""

    def header(self, name: str) -> str | None:
        """The values of a header, joined by ", ", by its lower-case name; None if it is absent."""

    def time_remaining(self) -> float | None:
        """Seconds until the deadline; None without a deadline."""

    def fail(self, status: Status, trailers: Trailers = (), headers: Trailers = ()) -> None:
        """End the call with an error. For a stream, `close` must follow."""


class UnaryCall(Call, Protocol):
    """A call with one message and one answer."""

    @property
    def message(self) -> bytes | None:
        """The message; None if `read` must read it."""

    @property
    def size(self) -> int:
        """Size of the message in bytes; an upper bound if it is not yet known."""

    @property
    def is_excess(self) -> bool:
        """Whether its connection has too many unread calls: the handler must reject it."""

    def has_room(self, size: int) -> bool:
        """Whether an answer of `size` bytes keeps the limit on its connection's unsent answers."""

    def answer(self, message: bytes, trailers: Trailers = ()) -> None:
        """End the call with its answer."""

    async def read(self) -> bytes | None:
        """Read the message; None if there is none.

        Raises:
            UnreadableMessage: The message cannot be read.
        """


class StreamCall(Call, Protocol):
    """A call with a stream of messages, of answers, or both."""

    async def read(self, at_once: AtOnce | None = None) -> bytes | None:
        """Read the next message; None after the last one.

        Args:
            at_once: The transport may call it with arriving messages and send its answers without
                waking the waiting task. `read` returns the first message without such an answer.
        Raises:
            UnreadableMessage: The messages cannot be read.
        """

    async def write(self, message: bytes) -> None:
        """Send an answer; waits while too many earlier ones are unsent. A call of
        `Kind.CLIENT_STREAM` has one answer."""

    def promise(self, trailers: Trailers) -> None:
        """Set the trailers after the last answer, before the first answer is written."""

    async def close(self) -> None:
        """End the call, successfully unless `fail` was called. Returns when all answers are sent or
        the caller has disconnected."""


class UnreadableMessage(Exception):
    """A message cannot be read, or the call was ended while it was read.

    Attributes:
        code: The gRPC status code.
    """

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class Method:
    """One RPC.

    Attributes:
        path: `package.Service/Method`, without a leading slash.
        kind: Its kind.
        handler: Takes a `UnaryCall` for `Kind.UNARY`, else a `StreamCall`. It ends the call and
            returns None, or returns a coroutine that will end it. So a small call costs no task.
        has_no_side_effects: Whether HTTP GET may call it.
        is_small: Whether its messages have at most 16 KiB, compressed and inflated. The native
            transport rejects larger ones before it inflates them.
    """

    path: str
    kind: Kind
    handler: Callable[[Any], Coroutine[Any, Any, None] | None] = field(repr=False)
    has_no_side_effects: bool = False
    is_small: bool = False


@dataclass(frozen=True, slots=True)
class File:
    """A static file, for GET and HEAD of one path.

    Attributes:
        path: The path of the URL: "/" or "/assets/page.css".
        headers: Lower-case names and values. An `etag` is compared with that of the browser.
            `content-length` is added.
        content: The content.
    """

    path: str
    headers: Trailers
    content: bytes = field(repr=False)


#: Called with an exception that a handler raised: handlers must not raise.
OnFault = Callable[[BaseException], None]
#: The fault of a connection that was closed for breaking a limit.
LIMIT: Final = "limit"
#: The same for breaking HTTP/2.
HTTP2: Final = "http2"
#: The fault of connections that wait, unaccepted, for a file descriptor of this process.
DESCRIPTORS: Final = "file_descriptors"
#: The faults of a connection that was refused: DESCRIPTORS, or the setting whose limit was reached.
REFUSED: Final = ("max_connections", "max_connections_per_address", DESCRIPTORS)
#: The fault of one whose client closed it before the TLS handshake.
CLOSED: Final = "closed"
#: Called when a connection is refused, or closed because of its peer. Arguments: the peer (see
#: `Call.peer`), "" for DESCRIPTORS; LIMIT, HTTP2, one of REFUSED, or the kind of TLS failure; the
#: reason, for people.
OnClosed = Callable[[str, str, str], None]


@dataclass(frozen=True, slots=True)
class Setup:
    """What a transport serves, and whom it tells.

    Attributes:
        methods: Every RPC.
        limits: The limits on peers.
        on_fault: Called with an exception of a handler, whose call fails with INTERNAL.
        on_closed: See `OnClosed`.
        tls: The TLS files; None for plain text.
        files: Static files that browsers may get.
    """

    methods: Sequence[Method]
    limits: Limits
    on_fault: OnFault
    on_closed: OnClosed
    tls: TlsFiles | None = None
    files: Sequence[File] = ()


class Transport(Protocol):
    """A transport for the current event loop. Make it after forking."""

    def __init__(self, setup: Setup) -> None:
        """Bind nothing yet.

        Raises:
            ConfigurationError: The certificate, the key or an authority cannot be used.
        """

    async def start(self, address: str, *, shares_port: bool, unix_socket_mode: str) -> str:
        """Bind the address and serve.

        Args:
            address: `host:port`, or `unix:path`.
            shares_port: Whether other processes listen on the same port.
            unix_socket_mode: Octal permissions of a Unix socket's file.
        Returns:
            The address with the bound port.
        Raises:
            ConfigurationError: The address cannot be bound.
        """

    def replace_tls(self, tls: TlsFiles) -> None:
        """Use new files for connections that start later."""

    def drain(self) -> None:
        """Accept no more connections, and ask the peers of open ones to connect elsewhere. Running
        calls continue."""

    async def stop(self) -> None:
        """Close everything."""


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """The content of the TLS files, as PEM.

    Attributes:
        certificate: The server's certificate with its chain.
        key: Its private key.
        client_authorities: The authorities of client certificates, one of which clients must
            have; None if they need none.
    """

    certificate: bytes
    key: bytes = field(repr=False)
    client_authorities: bytes | None = None


#: 64 KiB: the initial flow-control window of HTTP/2.
READ_AHEAD_BYTES: Final = 64 << 10


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one process on its peers. Those with the name of a setting are described there.

    Attributes:
        message_seconds: Time for a unary message to arrive, from the start of its reading.
        read_ahead_bytes: Unary messages up to this size are read before their call is admitted.
        max_unread_calls: Calls of one connection whose unread messages wait for admission.
        max_unsent_bytes: Unsent answers of one connection.
        keepalive_seconds: Interval of pings on an idle connection.
        keepalive_timeout_seconds: Time to answer a ping before the connection is closed.
    """

    max_connections: int
    max_connections_per_address: int
    handshake_seconds: float
    max_concurrent_streams: int
    max_metadata_bytes: int
    max_message_bytes: int
    max_buffered_bytes: int
    max_abandoned_per_second: int
    max_connection_age_seconds: float
    cors_origins: Sequence[str]
    message_seconds: float = 60.0
    read_ahead_bytes: int = READ_AHEAD_BYTES
    max_unread_calls: int = 64
    max_unsent_bytes: int = 64 << 20
    keepalive_seconds: float = 60.0
    keepalive_timeout_seconds: float = 20.0

    @classmethod
    def of(cls, settings: Settings, tried_max_bytes: int = 0) -> Limits:
        """The limits by the settings. Counts that are tried on the event loop are read ahead."""
        names = [each.name for each in fields(cls) if hasattr(settings, each.name)]
        return cls(
            read_ahead_bytes=max(READ_AHEAD_BYTES, tried_max_bytes),
            **{name: getattr(settings, name) for name in names},
        )
