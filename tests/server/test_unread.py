"""Limits on what incomplete messages and unread answers can make the server hold."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from gzip import compress
from pathlib import Path
from random import Random
from time import monotonic, sleep
from typing import Any

import bytepair_engine
import grpc
import pytest
from bytepair.v1 import stream_pb2, tokenizer_pb2
from bytepair_server.config.settings import Settings
from bytepair_server.transport.interface import Limits
from conftest import Serve
from support import http2
from support.failures import read
from support.keys import keys_toml
from support.serving import START_SECONDS, RunningServer, write_config
from support.streaming import CountRequest, DecodeRequest, Talk, count_config, decode_config

MIB = 1 << 20
LIMITS = Limits.of(Settings())
#: The lowest limit of unread bytes, and limits of messages that fit it.
SMALL = ("--max-buffered-bytes", str(MIB), "--max-input-bytes", "400000", "--max-ids", "80000")
#: Characters of one token, so that answers are many times as large as their requests.
LONG_TOKEN = 64
#: Larger than the first answer of a stream.
SMALL_ANSWER = 256
#: Size of one answer.
ANSWER_BYTES = MIB // 2
KEY = "a key"
COUNT = tokenizer_pb2.CountRequest(encoding="cl100k_base", text="hello world")


def long_ids() -> list[int]:
    encoding = bytepair_engine.get_encoding("cl100k_base")
    ids = encoding.encode(" " * LONG_TOKEN)
    assert len(ids) == 1
    return ids * (ANSWER_BYTES // LONG_TOKEN)


@contextmanager
def never_reading(server: RunningServer) -> Iterator[socket.socket]:
    """A connection that reads hardly more of an answer than its headers."""
    size = struct.pack(">HI", http2.INITIAL_WINDOW_SIZE, SMALL_ANSWER)
    with http2.connection(server.target, hello=http2.PREFACE, seconds=START_SECONDS) as link:
        link.sendall(
            http2.frame(http2.SETTINGS, 0, 0, size) + http2.frame(http2.SETTINGS, http2.ACK, 0)
        )
        yield link


def call(link: socket.socket, sender: http2.Sender, stream: int, rpc: str, *messages: Any) -> None:
    """Start a call with these messages. A stream stays half open."""
    link.sendall(http2.frame(http2.HEADERS, http2.END_HEADERS, stream, http2.headers(rpc)))
    for each in messages:
        send(sender, stream, http2.message(each.SerializeToString()))
    if not rpc.endswith("Stream"):
        sender.data(stream, b"", http2.END_STREAM, lambda: True)


def send(sender: http2.Sender, stream: int, raw: bytes, *, ends: bool = False) -> None:
    """Send a part of a request, and its end, as the connection's window permits."""
    for start in range(0, len(raw), 16_000):
        flags = http2.END_STREAM if ends and start + 16_000 >= len(raw) else 0
        assert sender.data(stream, raw[start : start + 16_000], flags, lambda: True)


def send_many(
    link: socket.socket, count: int, headers: bytes, raw: bytes, *, ends: bool = True
) -> None:
    """Send this many calls with the same message."""
    sender = http2.Sender(link)
    for stream in range(1, 2 * count, 2):
        link.sendall(http2.frame(http2.HEADERS, http2.END_HEADERS, stream, headers))
        send(sender, stream, raw, ends=ends)


def check_evicted(server: RunningServer, link: socket.socket) -> None:
    """Wait until the server has closed a connection, and no other, for the bytes that it holds."""
    closed = server.wait_for_log("closed a connection", peer=http2.peer_of(link))
    assert "max_buffered_bytes" in closed["reason"]
    assert server.metric("bytepair_evicted_connections_total") == 1


def test_a_connection_with_the_most_unread_answers_is_closed(serve: Serve) -> None:
    server = serve("--max-buffered-bytes", str(4 * MIB))
    large = tokenizer_pb2.DecodeRequest(encoding="cl100k_base", ids=long_ids())
    with never_reading(server) as greedy, never_reading(server) as modest:
        call(modest, http2.Sender(modest), 1, "Decode", large)
        sender = http2.Sender(greedy)
        with suppress(ConnectionError):
            for number in range(4 * MIB // ANSWER_BYTES + 1):
                call(greedy, sender, 2 * number + 1, "Decode", large)
        check_evicted(server, greedy)
        for _ in range(3):
            assert len(server.stub.Decode(large).text) == ANSWER_BYTES
        check_evicted(server, greedy)


def test_an_answer_that_is_read_slowly_arrives_although_the_server_stops(serve: Serve) -> None:
    server = serve("--transport", "native")
    more, got = ANSWER_BYTES // 6, 0
    with never_reading(server) as link:
        large = tokenizer_pb2.DecodeRequest(encoding="cl100k_base", ids=long_ids())
        call(link, http2.Sender(link), 1, "Decode", large)
        for kind, _, payload, _ in http2.frames(link):
            if kind == http2.HEADERS and got:
                break
            before, got = got, got + len(payload) * (kind == http2.DATA)
            has_begun = got > 0 and not before
            if has_begun:
                server.terminate()
                server.wait_for_log("draining")
            if has_begun or before // more < got // more:
                sleep(0.25)
                said = struct.pack(">I", more)
                with suppress(ConnectionError):  # it is closed once everything is sent
                    for stream in (0, 1):
                        link.sendall(http2.frame(http2.WINDOW_UPDATE, 0, stream, said))
    assert got > ANSWER_BYTES
    assert server.wait() == 0


@pytest.mark.parametrize(
    "headers",
    [
        http2.headers("Count"),
        http2.headers("EncodeStream"),
        http2.headers("Count", content_type="application/proto"),
        http2.headers("EncodeStream", content_type="application/connect+proto"),
        http2.headers("EncodeStream", content_type="application/grpc-web+proto"),
    ],
    ids=["unary", "stream", "connect", "connect stream", "web stream"],
)
def test_a_connection_with_the_most_incomplete_messages_is_closed(
    serve: Serve, headers: bytes
) -> None:
    server = serve("--transport", "native", *SMALL)
    half = http2.message(bytes(60_000), length=100_000)
    with http2.connection(server.target, seconds=START_SECONDS) as link:
        with suppress(ConnectionError):
            send_many(link, MIB // len(half) + 1, headers, half, ends=False)
        check_evicted(server, link)
    assert server.stub.Count(COUNT, timeout=START_SECONDS).count == 2


@pytest.mark.parametrize("content_type", ["application/grpc", "application/connect+proto"])
def test_inflated_messages_of_streams_count_until_they_are_processed(
    serve: Serve, tmp_path: Path, content_type: str
) -> None:
    """A quota pauses the streams, so that their messages wait."""
    (tmp_path / "keys.toml").write_text(keys_toml(paused="paused"))
    quota = "[quotas.paused]\ninput_bytes_per_second = 0.001\ninput_burst_bytes = 1\n"
    flags = ("--config", write_config(tmp_path, f'api_keys_file = "keys.toml"\n{quota}'))
    server = serve(*flags, "--transport", "native", "--max-buffered-bytes", str(4 * MIB))
    config = http2.message(count_config().SerializeToString())
    text = compress(CountRequest(text="a" * 2 * MIB).SerializeToString())
    raw = config + http2.message(text, compressed=True) * 2
    headers = http2.headers("CountStream", content_type=content_type, encoding="gzip", key="paused")
    with http2.connection(server.target, seconds=START_SECONDS) as link:
        with suppress(ConnectionError):
            send_many(link, 4, headers, raw, ends=False)
        check_evicted(server, link)


def test_streams_with_unread_answers_are_bounded(
    serve: Serve,
) -> None:
    """Tested with small and with large messages."""
    server = serve("--max-buffered-bytes", str(4 * MIB))
    config = stream_pb2.DecodeStreamRequest(
        config=stream_pb2.DecodeStreamConfig(encoding="cl100k_base")
    )
    ids = long_ids()[:2_000]
    with never_reading(server) as link:
        sender = http2.Sender(link)
        with suppress(ConnectionError):
            for number in range(4 * MIB // (len(ids) * LONG_TOKEN) + 2):
                one = stream_pb2.DecodeStreamRequest(ids=ids)
                call(link, sender, 2 * number + 1, "DecodeStream", config, one)
        check_evicted(server, link)
        other = Talk(server.stub.DecodeStream)  # its answers are small
        other.say(decode_config())
        assert other.say(DecodeRequest(ids=[15339, 15339])).text == "hellohello"


def test_unread_answers_of_streams_leave_no_room_for_large_ones(serve: Serve) -> None:
    server = serve("--max-streams-bytes", str(MIB))
    large, small = Talk(server.stub.DecodeStream), Talk(server.stub.DecodeStream)

    def ask_for_large_answers() -> None:
        until = monotonic() + START_SECONDS
        while monotonic() < until:  # those of the others are computed in a while
            large.say(DecodeRequest(ids=[15339] * 200))

    for talk in (large, small):  # the first message of a stream is checked in any case
        talk.say(decode_config())
    with never_reading(server) as link:
        sender, ids = http2.Sender(link), DecodeRequest(ids=long_ids())
        for stream in (1, 3):  # HTTP takes the first two answers of each
            call(link, sender, stream, "DecodeStream", decode_config(), ids, ids, ids)
        with pytest.raises(grpc.RpcError) as caught:
            ask_for_large_answers()
        assert read(caught.value).metadata == {"setting": "max_streams_bytes"}
        assert small.say(DecodeRequest(ids=[15339])).text == "hello"
    for talk in (large, small):
        talk.cancel()


def test_an_idle_stream_ends_although_its_last_text_is_not_read(serve: Serve) -> None:
    """Its unread answers leave no room for the text that is held back until the stream ends."""
    server = serve("--stream-idle-seconds", "1", "--max-stop-bytes", "40000")
    [line] = bytepair_engine.get_encoding("cl100k_base").encode("-" * LONG_TOKEN)
    config, held = decode_config(stop=["-" * 40_000]), DecodeRequest(ids=[line] * 624)
    answered = DecodeRequest(ids=long_ids()[:256])  # as much as HTTP takes at once
    with never_reading(server) as link:
        sender = http2.Sender(link)
        call(link, sender, 1, "DecodeStream", config, *[answered] * 16, held)
        assert server.wait_for_log("call", rpc="DecodeStream")["reason"] == "STREAM_IDLE"


def test_compressed_unread_answers_of_connect_are_bounded(serve: Serve) -> None:
    server = serve(*SMALL)
    text = Random(1).randbytes(30_000).hex()
    raw = tokenizer_pb2.EncodeRequest(encoding="cl100k_base", text=text).SerializeToString()
    headers = http2.headers("Encode", content_type="application/proto", accept_encoding="gzip")
    with never_reading(server) as link, suppress(ConnectionError):
        send_many(link, 100, headers, raw)
        server.wait_for_metric("bytepair_evicted_connections_total", 1)


def test_an_answer_beside_too_many_unread_ones_is_overloaded_and_not_counted_as_answered(
    serve: Serve,
) -> None:
    server = serve()
    ids = long_ids() * 2
    raw = http2.message(
        tokenizer_pb2.DecodeRequest(encoding="cl100k_base", ids=ids).SerializeToString()
    )
    fit = LIMITS.max_unsent_bytes // (len(ids) * LONG_TOKEN + len(http2.message(b"")))
    with never_reading(server) as link:
        send_many(link, fit + 1, http2.headers("Decode"), raw)
        for code, times in (("RESOURCE_EXHAUSTED", 1), ("OK", fit)):
            server.wait_for_metric("bytepair_requests_total", times, rpc="Decode", code=code)


def test_an_answer_arrives_after_the_server_has_ended_the_connection(serve: Serve) -> None:
    """A system that receives data for a closed socket resets the connection, and what it has not
    sent yet is lost."""
    server = serve()
    request = tokenizer_pb2.DecodeRequest(encoding="cl100k_base", ids=long_ids())
    body = request.SerializeToString()
    head = (
        "POST /bytepair.v1.TokenizerService/Decode HTTP/1.1\r\nhost: localhost\r\n"
        "content-type: application/proto\r\nconnection: close\r\n"
        f"content-length: {len(body)}\r\n\r\n"
    )
    host, port = server.target.rsplit(":", 1)
    with socket.socket() as link:
        link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        link.settimeout(START_SECONDS)
        link.connect((host, int(port)))
        link.sendall(head.encode() + body)
        answer = b""
        while more := link.recv(4096):
            answer += more
            link.sendall(b"\n")
    assert answer.endswith(b"\r\n0\r\n\r\n"), len(answer)  # the last chunk (RFC 9112, section 7.1)


@pytest.mark.parametrize("content_type", ["application/grpc", "application/connect+proto"])
def test_the_deadline_ends_a_stream_whose_caller_reads_nothing(
    serve: Serve, content_type: str
) -> None:
    server = serve("--max-open-streams", "1", "--stream-idle-seconds", "600")
    with never_reading(server) as link:
        sent = http2.headers("EncodeStream", content_type=content_type, timeout=500)
        config = stream_pb2.EncodeStreamConfig(encoding="cl100k_base")
        one = stream_pb2.EncodeStreamRequest(config=config, text="hello world" * SMALL_ANSWER)
        link.sendall(http2.frame(http2.HEADERS, http2.END_HEADERS, 1, sent))
        send(http2.Sender(link), 1, http2.message(one.SerializeToString()), ends=True)
        # Half a second may be over before the first look at the metrics.
        server.wait_for_metric("bytepair_requests_total", 1, rpc="EncodeStream")
        server.wait_for_metric("bytepair_open_streams", 0)
        talk = Talk(server.stub.DecodeStream)
        talk.say(decode_config())
        assert talk.close()[1] is None
