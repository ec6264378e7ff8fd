"""The interface of a transport: calls as bytes.

`rpc/` and `streaming/` are written against this file alone. A transport runs a handler on the event
loop, which it must not block. A call is for that event loop only.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Protocol

from bytepair_server.config.settings import Settings

#: The answer to a message that needs no waiting; None for one that does.
AtOnce = Callable[[bytes], bytes | None]

#: Names and values that follow an answer. Names are lower case; values are ASCII.
Trailers = Sequence[tuple[str, str]]


class Kind(StrEnum):
    """What an RPC takes and gives: one message or a stream of them."""

    UNARY = "unary"
    SERVER_STREAM = "server_stream"
    CLIENT_STREAM = "client_stream"
    BIDI_STREAM = "bidi_stream"


@dataclass(frozen=True, slots=True)
class Status:
    """How a call fails.

    Attributes:
        code: gRPC's number.
        message: For people.
        details: Messages of `google.rpc.Status.details`: full type name, serialized message.
    """

    code: int
    message: str
    details: Sequence[tuple[str, bytes]] = ()


class Call(Protocol):
    """What is known of a call, whatever it takes and gives.

    Where the caller gives up or the deadline is over, the task of the handler is cancelled.
    """

    @property
    def peer(self) -> str:
        """The connection: `ipv4:127.0.0.1:4711`, `ipv6:[::1]:4711` or `unix:`."""

    @property
    def certificate(self) -> bytes | None:
        """The client certificate that was verified, as DER; None without one."""

    @property
    def is_json(self) -> bool:
        """Whether messages are proto3 JSON."""

    @property
    def is_over(self) -> bool:
        """Whether it was answered or has failed."""

    def header(self, name: str) -> str | None:
        """The first value of a header, by its lower-case name; None if there is none."""

    def time_remaining(self) -> float | None:
        """Seconds until the deadline; None if there is none."""

    def fail(self, status: Status, trailers: Trailers = ()) -> None:
        """End the call with an error. A stream's `close` has to follow."""


class UnaryCall(Call, Protocol):
    """A call of one message, to be answered once."""

    @property
    def message(self) -> bytes | None:
        """The message; None where it was not read yet."""

    @property
    def size(self) -> int:
        """Bytes of the message; the most that it may have where that is not known before."""

    def answer(self, message: bytes, trailers: Trailers = ()) -> None:
        """End the call with its answer."""

    async def read(self) -> bytes | None:
        """The message; None where there is none.

        Raises:
            BrokenStream: The call was ended meanwhile.
        """


class StreamCall(Call, Protocol):
    """A call whose messages or answers, or both, are streams."""

    async def read(self, at_once: AtOnce | None = None) -> bytes | None:
        """The next message; None after the last one.

        Args:
            at_once: A transport may give it messages that arrive meanwhile, and write its answers,
                without waking the task that waits here. `read` returns the first one that has
                no such answer.
        Raises:
            BrokenStream: The messages cannot be read.
        """

    async def write(self, message: bytes) -> None:
        """Send an answer, once enough of those before it were sent. To a call of
        `Kind.CLIENT_STREAM` there is one."""

    def promise(self, trailers: Trailers) -> None:
        """Say what follows the last answer. It has to be known before the first is written."""

    async def close(self) -> None:
        """End the call, well unless it has failed. Returns when the transport holds nothing more of
        its answers, or the caller is gone."""


class BrokenStream(Exception):
    """A message cannot be read, or the call was ended while it was read.

    Attributes:
        code: gRPC's number for what is wrong.
    """

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class Method:
    """One RPC.

    Attributes:
        path: `package.Service/Method`, without a slash in front.
        kind: What it takes and gives.
        handler: Takes a `UnaryCall` for `Kind.UNARY`, otherwise a `StreamCall`. It ends the call
            and gives None where nothing has to be waited for; otherwise it gives the coroutine
            that will. So a small call costs no task.
        has_no_side_effects: It may be called by HTTP GET.
    """

    path: str
    kind: Kind
    handler: Callable[[Any], Coroutine[Any, Any, None] | None] = field(repr=False)
    has_no_side_effects: bool = False


@dataclass(frozen=True, slots=True)
class File:
    """A static file, for GET and HEAD of one path.

    Attributes:
        path: From the root of the port: "/" or "/assets/page.css".
        headers: Names in lower case, and values. An `etag` among them is compared with what the
            browser has. `content-length` is added.
        content: What is answered.
    """

    path: str
    headers: Trailers
    content: bytes = field(repr=False)


#: Called with an exception that a handler raised, which is a fault of the handler.
OnFault = Callable[[BaseException], None]
#: Called with a connection that is closed for what its peer does, as `Call.peer` has it, and why.
OnEvicted = Callable[[str, str], None]


class Transport(Protocol):
    """What carries calls, for the current event loop. To be made after a fork."""

    async def start(self, address: str, *, shares_port: bool, unix_socket_mode: str) -> str:
        """Serve.

        Args:
            address: `host:port`, or `unix:path`.
            shares_port: Other processes listen there too.
            unix_socket_mode: Permissions of a Unix socket's file, octal.
        Returns:
            The address, with the port that was bound.
        Raises:
            ConfigurationError: It cannot be listened at.
        """

    def replace_tls(self, tls: TlsFiles) -> None:
        """Use this for connections that come from now on."""

    def drain(self) -> None:
        """Ask the peers of open connections to go elsewhere; their calls go on."""

    async def stop(self) -> None:
        """Close everything."""


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """What TLS needs, as PEM.

    Attributes:
        certificate: The server's, with its chain.
        key: Its private key.
        client_authorities: Who signs clients' certificates; b"" where clients show none.
        client_certificate_required: Connections without a client certificate are refused.
    """

    certificate: bytes
    key: bytes = field(repr=False)
    client_authorities: bytes = b""
    client_certificate_required: bool = False


#: 64 KiB: as many as HTTP/2's flow control lets a call send that is not read.
READ_AHEAD_BYTES: Final = 64 << 10


@dataclass(frozen=True, slots=True)
class Limits:
    """What one process takes from its peers. Times are in seconds; 0 means no limit where said.

    Attributes:
        max_connections: Open at once.
        max_connections_per_address: Open at once from one IP address; 0: no limit of its own.
        handshake_seconds: For a TLS handshake, and again for the first bytes of HTTP.
        message_seconds: For one unary message to arrive whole, once it is read.
        max_concurrent_streams: Of one HTTP/2 connection.
        max_header_bytes: Of one header list.
        max_message_bytes: Of one message, compressed and not.
        read_ahead_bytes: Unary messages up to this size are read before their call is admitted.
        max_unread_calls: Of one connection, whose larger messages wait unread to be admitted.
        max_unsent_bytes: Of unsent answers of one connection.
        max_buffered_bytes: Of incomplete messages and of unsent answers, of
            all connections together.
        max_abandoned_per_second: Calls that one connection may give up; 0: no limit.
        max_connection_age_seconds: Then a connection gets GOAWAY; 0: never.
        keepalive_seconds: An idle connection is probed this often.
        keepalive_timeout_seconds: And closed when it does not answer for so long.
        overloaded: How a call fails beyond the two bounds of one connection, on calls that wait
            unread and on unsent bytes.
        cors_origins: Pages of these origins may call; "*" for any.
    """

    max_connections: int = 10_000
    max_connections_per_address: int = 0
    handshake_seconds: float = 10.0
    message_seconds: float = 60.0
    max_concurrent_streams: int = 1000
    max_header_bytes: int = 128 << 10
    max_message_bytes: int = 4 << 20
    read_ahead_bytes: int = READ_AHEAD_BYTES
    max_unread_calls: int = 64
    max_unsent_bytes: int = 64 << 20
    max_buffered_bytes: int = 256 << 20
    max_abandoned_per_second: int = 1000
    max_connection_age_seconds: float = 0.0
    keepalive_seconds: float = 60.0
    keepalive_timeout_seconds: float = 20.0
    overloaded: Status = Status(8, "this connection has too many calls or answers that wait")
    cors_origins: Sequence[str] = ()

    @classmethod
    def of(cls, settings: Settings, tried_max_bytes: int, overloaded: Status) -> Limits:
        """What the settings say of peers; what is tried on the event loop must be read ahead."""
        return cls(
            overloaded=overloaded,
            read_ahead_bytes=max(READ_AHEAD_BYTES, tried_max_bytes),
            max_connections=settings.max_connections,
            max_connections_per_address=settings.max_connections_per_address,
            handshake_seconds=settings.handshake_seconds,
            max_concurrent_streams=settings.max_concurrent_streams,
            max_header_bytes=settings.max_metadata_bytes,
            max_message_bytes=settings.max_message_bytes,
            max_buffered_bytes=settings.max_buffered_bytes,
            max_abandoned_per_second=settings.max_abandoned_per_second,
            max_connection_age_seconds=settings.max_connection_age_seconds,
            cors_origins=settings.cors_origins,
        )
