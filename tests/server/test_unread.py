"""What those who send no whole messages, or read no answers, can have the server hold."""

from __future__ import annotations

import select
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic, sleep
from typing import Any

import bytepair_engine
import grpc
from bytepair.v1 import stream_pb2, tokenizer_pb2
from bytepair_server.admission.limiter import ANSWERS_TO_REQUESTS
from bytepair_server.admission.slow_readers import MAX_SLOW
from conftest import Serve
from support import http2
from support.serving import START_SECONDS, RunningServer
from support.streaming import DecodeRequest, Talk, decode_config

MIB = 1 << 20
#: Characters of one token: answers are many times their requests.
LONG_TOKEN = 64
#: A stream's first answer has fewer bytes.
SMALL_ANSWER = 256
#: Of one answer.
ANSWER_BYTES = MIB // 2
OVERLOADED = b"grpc-status\x018"


def long_ids() -> list[int]:
    encoding = bytepair_engine.get_encoding("cl100k_base")
    ids = encoding.encode(" " * LONG_TOKEN)
    assert len(ids) == 1
    return ids * (ANSWER_BYTES // LONG_TOKEN)


@contextmanager
def never_reading(server: RunningServer) -> Iterator[socket.socket]:
    """A connection that takes hardly anything of any call's answers but their headers."""
    size = struct.pack(">HI", http2.INITIAL_WINDOW_SIZE, SMALL_ANSWER)
    with http2.connection(server.target, hello=http2.PREFACE, seconds=START_SECONDS) as link:
        link.sendall(
            http2.frame(http2.SETTINGS, 0, 0, size) + http2.frame(http2.SETTINGS, http2.ACK, 0)
        )
        yield link


def call(link: socket.socket, stream: int, rpc: str, *messages: Any) -> None:
    """Begin a call with these messages; it sends no others, and does not say so."""
    link.sendall(http2.frame(http2.HEADERS, http2.END_HEADERS, stream, http2.headers(rpc)))
    for each in messages:
        raw = http2.message(each.SerializeToString())
        for start in range(0, len(raw), 16_000):
            link.sendall(http2.frame(http2.DATA, 0, stream, raw[start : start + 16_000]))


def until(said: bytes, *links: socket.socket) -> None:
    """Read until this comes on one of them."""
    got = dict.fromkeys(links, b"")
    while not any(said in each for each in got.values()):
        ready = select.select(links, (), (), START_SECONDS)[0]
        assert ready, "nothing came"
        for link in ready:
            more = link.recv(1 << 16)
            assert more, "it was closed"
            got[link] = got[link][-64:] + more


def test_answers_that_nobody_reads_are_bounded_by_their_bytes(serve: Serve) -> None:
    server = serve("--max-in-flight-bytes", str(MIB), "--max-wait-seconds", "0")
    request = tokenizer_pb2.DecodeRequest(encoding="cl100k_base", ids=long_ids())
    room = ANSWERS_TO_REQUESTS * MIB // ANSWER_BYTES
    with never_reading(server) as link:
        for number in range(room + 1):
            call(link, 2 * number + 1, "Decode", request)
        until(OVERLOADED, link)
        small = tokenizer_pb2.DecodeRequest(encoding="cl100k_base", ids=[15339])
        assert server.stub.Decode(small).text == "hello"
    # What nobody waits for any more makes room.
    deadline = monotonic() + START_SECONDS
    while True:
        try:
            assert len(server.stub.Decode(request).text) == ANSWER_BYTES
            return
        except grpc.RpcError:
            assert monotonic() < deadline
            sleep(0.05)


def test_who_reads_no_answers_leaves_some_room_to_others(serve: Serve) -> None:
    server = serve("--max-in-flight-bytes", str(MIB), "--max-wait-seconds", "0")
    request = tokenizer_pb2.DecodeRequest(encoding="cl100k_base", ids=long_ids())
    with never_reading(server) as link:
        for number in range(2 * ANSWERS_TO_REQUESTS * MIB // ANSWER_BYTES):
            call(link, 2 * number + 1, "Decode", request)
        until(OVERLOADED, link)
        for _ in range(3):
            assert len(server.stub.Decode(request).text) == ANSWER_BYTES


def test_streams_whose_answers_nobody_reads_are_bounded_whatever_they_are_sent(
    serve: Serve,
) -> None:
    """By small messages as by large ones."""
    server = serve("--max-streams-bytes", str(4 * MIB))
    config = stream_pb2.DecodeStreamRequest(
        config=stream_pb2.DecodeStreamConfig(encoding="cl100k_base")
    )
    ids = long_ids()[:2_000]
    with never_reading(server) as link:
        for number in range(4 * MIB // (len(ids) * LONG_TOKEN) + 2):
            call(
                link,
                2 * number + 1,
                "DecodeStream",
                config,
                stream_pb2.DecodeStreamRequest(ids=ids),
            )
        until(OVERLOADED, link)
        other = Talk(server.stub.DecodeStream)  # whose answers are small whatever it sends
        other.say(decode_config())
        assert other.say(DecodeRequest(ids=[15339, 15339])).text == "hellohello"


def test_of_messages_that_are_not_whole_few_are_held(serve: Serve) -> None:
    places = 8
    server = serve("--max-in-flight", str(places))
    half = http2.message(bytes(1_000), length=10_000)
    with http2.connection(server.target, seconds=START_SECONDS) as link:
        for stream in range(1, 2 * (MAX_SLOW + 3 * places), 2):
            link.sendall(
                http2.frame(http2.HEADERS, http2.END_HEADERS, stream, http2.headers("Count"))
                + http2.frame(http2.DATA, 0, stream, half)
            )
        until(OVERLOADED, link)
        count = tokenizer_pb2.CountRequest(encoding="cl100k_base", text="hello world")
        assert server.stub.Count(count, timeout=START_SECONDS).count == 2
