"""Clients whose messages, headers or frames are malformed, or cost far more than they are long."""

from __future__ import annotations

import gzip
import random
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from time import sleep
from typing import Final

from bytepair.v1 import context_pb2

from support.http2 import (
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    Going,
    connection,
    count,
    drain,
    frame,
    headers,
    message,
)


def _repeated_headers(rpc: str, fields: int) -> bytes:
    """Return the frames of a call's headers with `fields` more fields. Each takes one byte, a
    reference to an earlier field (RFC 7541, section 6.1)."""
    said = headers(rpc) + b"\x40\x01x\x01y" + b"\xbe" * fields
    parts = [said[start : start + 16_000] for start in range(0, len(said), 16_000)]
    kinds = [HEADERS] + [CONTINUATION] * (len(parts) - 1)
    flags = [0] * (len(parts) - 1) + [END_HEADERS]
    return b"".join(
        frame(kind, flag, 1, part) for kind, flag, part in zip(kinds, flags, parts, strict=True)
    )


def _again(address: str, going: Going, attack: Callable[[socket.socket], int]) -> int:
    """Run an attack on one connection after the other, because the server may close each."""
    sent = 0
    while going():
        try:
            with connection(address) as link:
                while going():
                    sent += attack(link)
                    drain(link)
        except OSError:
            sleep(0.01)  # closed by the server, as it should be
    return sent


@cache
def bomb() -> bytes:
    """Return a message that decompresses to 64 MiB."""
    return message(gzip.compress(bytes(1 << 26)), compressed=True)


def gzip_bombs(address: str, going: Going) -> int:
    """Sends small messages that decompress to 64 MiB."""
    body = bomb()
    sent = 0
    while going():
        with suppress(OSError), connection(address) as link:
            link.sendall(frame(HEADERS, END_HEADERS, 1, headers("Count", encoding="gzip")))
            for start in range(0, len(body), 16_000):
                last = start + 16_000 >= len(body)
                link.sendall(
                    frame(DATA, END_STREAM if last else 0, 1, body[start : start + 16_000])
                )
            sent += 1
            link.settimeout(1)
            with suppress(OSError):
                link.recv(1 << 16)
    return sent


def gzip_to_health(address: str, going: Going) -> int:
    """Sends messages that decompress to 2 MB to the health service, which needs no credentials."""
    bomb = message(gzip.compress(bytes(2_000_000)), compressed=True)
    said = headers(
        "Watch",
        service="/grpc.health.v1.Health/",
        encoding="gzip",
        content_type="application/grpc-web+proto",
    )
    sent = 0
    while going():
        with suppress(OSError), connection(address, seconds=0.2) as link:
            for stream in range(1, 401, 2):
                link.sendall(frame(HEADERS, END_HEADERS, stream, said))
                link.sendall(frame(DATA, END_STREAM, stream, bomb))
                sent += 1
            while link.recv(1 << 16):
                pass
    return sent


def large_headers(address: str, going: Going) -> int:
    """Sends 10 KB of headers that decompress to 340 KB, and never acknowledges the server's
    settings: for such a client gRPC does not apply the server's limit but one of 16 MiB."""
    call = _repeated_headers("Count", 10_000) + frame(DATA, END_STREAM, 1, message(count()))
    sent = 0
    while going():
        with suppress(OSError), connection(address) as link:
            link.sendall(call)
            sent += 1
            link.settimeout(1)
            while b"grpc-status" not in (got := link.recv(1 << 16)) and got:
                pass
    return sent


def _one_call(body: bytes, rpc: str = "Count") -> Callable[[str, Going], int]:
    """Sends calls with this message, each on a separate connection."""

    def attack(address: str, going: Going) -> int:
        sent = 0
        while going():
            with suppress(OSError), connection(address) as link:
                link.sendall(
                    frame(HEADERS, END_HEADERS, 1, headers(rpc)) + frame(DATA, END_STREAM, 1, body)
                )
                sent += 1
                link.settimeout(1)
                # Until the answer: other frames come first.
                while len(link.recv(1 << 16)) in range(1, 100):
                    pass
        return sent

    return attack


def wrong_lengths(address: str, going: Going) -> int:
    """Sends messages and frames whose declared length is wrong."""
    raw = count()
    bodies = [
        message(raw, length=0xFFFFFFFF),
        message(raw, length=len(raw) + 1),
        message(raw, length=1),
        b"\0\0",
        message(raw, compressed=True),
    ]
    sent = 0
    while going():
        for body in bodies:
            sent += _one_call(body)(address, _once())
        with suppress(OSError), connection(address) as link:
            link.sendall(b"\xff\xff\xff" + frame(DATA, 0, 1)[3:] + bytes(100_000))
            sent += 1
    return sent


def random_frames(address: str, going: Going) -> int:
    """Sends random frames and random bytes."""
    rng = random.Random(1)

    def attack(link: socket.socket) -> int:
        if rng.random() < 0.5:
            link.sendall(rng.randbytes(rng.randrange(1, 4096)))
        else:
            body = rng.randbytes(rng.randrange(200))
            link.sendall(frame(rng.randrange(12), rng.randrange(256), rng.randrange(9), body))
        return 1

    return _again(address, going, attack)


def _once() -> Going:
    left = iter((True,))
    return lambda: next(left, False)


#: Malformed requests, and one with text that is not UTF-8 (field 2 of Count).
not_protobuf: Final = _one_call(message(b"\xff" * 64))
not_utf8: Final = _one_call(message(b"\x0a\x0bcl100k_base\x12\x03a\xff\xfe"))

#: A small message whose answer takes a thousand times as long as a count.
costly_splits: Final = _one_call(
    message(
        context_pb2.SplitRequest(
            encoding="cl100k_base", text="qz" * 8000, max_tokens=1
        ).SerializeToString()
    ),
    "Split",
)
