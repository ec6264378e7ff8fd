"""A client of HTTP/2 with little overhead: one connection, small messages, simple flow control.

A gRPC client in Python takes about as much time for a message as the server, so that it would
measure itself. This one writes and reads many frames in one system call.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _RESET, _SETTINGS, _PING, _GOAWAY, _WINDOW = 0, 1, 3, 4, 6, 7, 8
_ACK = _END_STREAM = 1
_END_HEADERS = 4
_INITIAL_WINDOW = 4
_LARGEST_WINDOW = 2**31 - 1
_DEFAULT_WINDOW = 65_535
_READ_BYTES = 1 << 18


class Connection:
    """One connection with streams of gRPC messages.

    What is sent is not checked against the peer's window: a stream may have little unanswered.
    """

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._last_stream = -1
        self._read = bytearray()
        self._bodies: dict[int, bytes] = {}
        self._out = [
            _PREFACE,
            _frame(_SETTINGS, 0, 0, struct.pack(">HI", _INITIAL_WINDOW, _LARGEST_WINDOW)),
            _frame(_WINDOW, 0, 0, struct.pack(">I", _LARGEST_WINDOW - _DEFAULT_WINDOW)),
        ]

    def open(self, path: str) -> int:
        """Queue the start of a call. Returns the number of its stream."""
        self._last_stream += 2
        fields = {
            ":method": "POST",
            ":scheme": "http",
            ":path": path,
            ":authority": "localhost",
            "te": "trailers",
            "content-type": "application/grpc",
        }
        block = b"".join(
            b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()
            for name, value in fields.items()
        )
        self._out.append(_frame(_HEADERS, _END_HEADERS, self._last_stream, block))
        self._bodies[self._last_stream] = b""
        return self._last_stream

    def send(self, stream: int, message: bytes, *, last: bool = False) -> None:
        """Queue a message. `last` ends the stream."""
        prefixed = b"\0" + len(message).to_bytes(4, "big") + message
        self._out.append(_frame(_DATA, _END_STREAM if last else 0, stream, prefixed))

    def flush(self) -> None:
        """Send everything that is queued."""
        if self._out:
            self._socket.sendall(b"".join(self._out))
            self._out.clear()

    def receive(self) -> Iterator[tuple[int, bytes]]:
        """Flush, wait for input, and return the received messages with their streams.

        Raises:
            RuntimeError: A stream was reset, or ended, or the connection closed.
        """
        self.flush()
        data = self._socket.recv(_READ_BYTES)
        if not data:
            raise RuntimeError("the server closed the connection")
        buffer = self._read
        buffer += data
        start, end = 0, len(buffer)
        while end - start >= 9:
            size = int.from_bytes(buffer[start : start + 3], "big")
            if end - start < 9 + size:
                break
            kind, flags = buffer[start + 3], buffer[start + 4]
            stream = int.from_bytes(buffer[start + 5 : start + 9], "big")
            payload = bytes(buffer[start + 9 : start + 9 + size])
            start += 9 + size
            if kind == _DATA:
                body = self._bodies[stream] + payload
                while len(body) >= 5 and len(body) >= (length := 5 + _length(body)):
                    yield stream, body[5:length]
                    body = body[length:]
                self._bodies[stream] = body
            elif kind == _PING and not flags & _ACK:
                self._out.append(_frame(_PING, _ACK, 0, payload))
            elif kind == _SETTINGS and not flags & _ACK:
                self._out.append(_frame(_SETTINGS, _ACK, 0, b""))
            elif kind in (_RESET, _GOAWAY) or (kind == _HEADERS and flags & _END_STREAM):
                raise RuntimeError(f"the server ended stream {stream}: {payload!r}")
        del buffer[:start]

    def close(self) -> None:
        """Close the connection, and every call with it."""
        self._socket.close()


def _length(body: bytes) -> int:
    return int.from_bytes(body[1:5], "big")


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    header = len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big")
    return header + payload
