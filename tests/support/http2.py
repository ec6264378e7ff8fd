"""Hand-made HTTP/2 and gRPC frames that no library would send."""

from __future__ import annotations

import socket
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from select import select
from time import sleep
from typing import Final

from bytepair.v1 import tokenizer_pb2
from hpack import Decoder

from support.serving import START_SECONDS

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
CONTINUATION = 9
END_STREAM, ACK, END_HEADERS = 1, 1, 4
INITIAL_WINDOW_SIZE = 4
MAX_WINDOW: Final = (1 << 31) - 1
#: Initial window size of a connection (RFC 9113, section 6.9.2).
FIRST_WINDOW: Final = (1 << 16) - 1
CANCEL = 8
#: Size of a header field in addition to its name and value (RFC 9113, section 6.5.2).
FIELD_BYTES: Final = 32
SERVICE: Final = "/bytepair.v1.TokenizerService/"

#: Returns whether to continue.
Going = Callable[[], bool]


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """Encode a frame (RFC 9113, section 4.1)."""
    return (
        struct.pack(">I", len(payload))[1:]
        + bytes((kind, flags))
        + struct.pack(">I", stream)
        + payload
    )


def headers(
    rpc: str,
    *,
    service: str = SERVICE,
    encoding: str = "identity",
    content_type: str = "application/grpc",
    accept_encoding: str = "identity",
    size: int = 0,
    key: str = "",
    timeout: int = 0,
) -> bytes:
    """Encode the headers of a call without compression (RFC 7541, section 6.2.2).

    Args:
        rpc: Name of the RPC.
        service: The service as "/package.Service/". Encoded as Latin-1, so that any byte can be
            sent.
        encoding: The encoding of the message.
        content_type: The protocol.
        accept_encoding: The encoding of the answer, for Connect.
        key: The API key; "" for none.
        timeout: The call's timeout in milliseconds; 0 for none.
        size: Size of the headers as HTTP/2 counts them, filled up with meaningless fields; 0 for no
            filling.
    """
    fields = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", service + rpc),
        (":authority", "hostile"),
        ("content-type", content_type),
        ("te", "trailers"),
        ("connect-content-encoding" if "connect" in content_type else "grpc-encoding", encoding),
        ("accept-encoding", accept_encoding),
    ]
    if key:
        fields.append(("authorization", f"Bearer {key}"))
    if timeout:
        is_connect = content_type.startswith("application/connect")
        fields.append(
            ("connect-timeout-ms", f"{timeout}") if is_connect else ("grpc-timeout", f"{timeout}m")
        )
    left = size - sum(len(name) + len(value) + FIELD_BYTES for name, value in fields)
    while left > 0:
        some = left if left < 2 * FIELD_BYTES + 2 else min(left - FIELD_BYTES - 1, 100)
        fields.append(("x", "y" * (some - FIELD_BYTES - 1)))
        left -= some
    packed = bytearray()
    for name, value in fields:
        packed += b"\0" + bytes((len(name),)) + name.encode()
        packed += bytes((len(value),)) + value.encode("latin-1")
    return bytes(packed)


def message(raw: bytes, *, compressed: bool = False, length: int | None = None) -> bytes:
    """Encode a gRPC message, with a length that may be wrong."""
    return bytes((compressed,)) + struct.pack(">I", len(raw) if length is None else length) + raw


def peer_of(link: socket.socket) -> str:
    """Return the name of a connection in the server's log."""
    host, port = link.getsockname()
    return f"ipv4:{host}:{port}"


def status(link: socket.socket, stream: int = 1, field: str = "grpc-status") -> str:
    """Read until the `field` of a call, and return it; "" if the server ends the stream or the
    connection without one. Only for the first call of a connection that is read in this way,
    because HPACK's state continues from answer to answer."""
    for kind, number, payload, decoder in frames(link):
        if kind == HEADERS:
            fields = dict(decoder.decode(payload, raw=True))
            if number == stream and field.encode() in fields:
                return fields[field.encode()].decode()
        elif kind == RST_STREAM and number == stream:
            break
    return ""


def frames(link: socket.socket) -> Iterator[tuple[int, int, bytes, Decoder]]:
    """Yield the frames of the server: kind, stream, payload, and the decoder of headers."""
    link.settimeout(START_SECONDS)
    reader = _Reader()
    try:
        while more := link.recv(1 << 16):
            for kind, stream, payload in reader.take(more):
                yield kind, stream, payload, reader.decoder
    except ConnectionError:
        return


class _Reader:
    """Parses bytes to frames."""

    def __init__(self) -> None:
        self._bytes = b""
        self.decoder = Decoder()

    def take(self, more: bytes) -> Iterator[tuple[int, int, bytes]]:
        """Yield kind, stream and payload of each complete frame."""
        for kind, _, stream, payload in self.whole(more):
            yield kind, stream, payload

    def whole(self, more: bytes) -> Iterator[tuple[int, int, int, bytes]]:
        """Yield the same with the flags after the kind."""
        self._bytes += more
        while len(self._bytes) >= 9:
            end = 9 + int.from_bytes(self._bytes[:3], "big")
            if len(self._bytes) < end:
                return
            head, payload, self._bytes = self._bytes[:9], self._bytes[9:end], self._bytes[end:]
            yield head[3], head[4], int.from_bytes(head[5:], "big"), payload


class Sender:
    """Sends DATA within the server's connection window, as a client must (RFC 9113, section 5.2).
    Otherwise the server would close the connection, and nothing else would be tested.

    Attributes:
        ended: Number of streams that the server has ended.
    """

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self._reader = _Reader()
        self._room = FIRST_WINDOW
        self.ended = 0

    def data(self, stream: int, payload: bytes, flags: int, going: Going) -> bool:
        """Send a frame once the window has room for it. Returns whether it had room while `going`.

        Raises:
            OSError: The server has closed the connection.
        """
        self.look()
        while self._room < len(payload):
            if not going():
                return False
            sleep(0.001)
            self.look()
        self._room -= len(payload)
        self._link.sendall(frame(DATA, flags, stream, payload))
        return True

    def look(self) -> None:
        """Process received frames without waiting.

        Raises:
            OSError: The server has closed the connection.
        """
        while select([self._link], [], [], 0)[0]:
            more = self._link.recv(1 << 16)
            if not more:
                raise ConnectionError("the server has closed the connection")
            for kind, flags, stream, payload in self._reader.whole(more):
                if kind == WINDOW_UPDATE and not stream:
                    self._room += int.from_bytes(payload, "big")
                elif kind == GOAWAY:
                    raise ConnectionError("the server has sent GOAWAY")
                elif kind == RST_STREAM or (kind in (DATA, HEADERS) and flags & END_STREAM):
                    self.ended += 1


def count(text: str = "hello world") -> bytes:
    """Return a request of Count."""
    return tokenizer_pb2.CountRequest(encoding="cl100k_base", text=text).SerializeToString()


def come_from(number: int) -> None:
    """Use a separate source address for later connections, on Linux, where loopback has several.
    The server may block that address.

    Args:
        number: Number of the address, from 1 to 65,534.
    """
    global _source
    _source = f"127.1.{number >> 8}.{number & 255}" if sys.platform == "linux" else ""


_source = ""
#: `IP_BIND_ADDRESS_NO_PORT` of <linux/in.h>. Without it a flood would run out of ports.
_NO_PORT: Final = 24


@contextmanager
def connection(
    address: str, *, hello: bytes | None = None, seconds: float = 5
) -> Iterator[socket.socket]:
    """Open a connection and send a client's preface. Every step may take `seconds`."""
    host, port = address.rsplit(":", 1)
    with socket.socket() as link:
        if _source:
            link.setsockopt(socket.IPPROTO_IP, _NO_PORT, 1)
            link.bind((_source, 0))
        link.settimeout(seconds)
        link.connect((host, int(port)))
        link.sendall(PREFACE + frame(SETTINGS, 0, 0) if hello is None else hello)
        yield link


def drain(link: socket.socket) -> None:
    """Drop all received data."""
    link.setblocking(False)
    try:
        while link.recv(1 << 16):
            pass
    except BlockingIOError:
        pass
    finally:
        link.setblocking(True)
        link.settimeout(5)
