"""Limits of streams, connections and compressed messages: one below, at the limit, one above."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from time import monotonic
from typing import Any

import grpc
import pytest
from bytepair.v1 import tokenizer_pb2
from bytepair_server.config.settings import Settings
from bytepair_server.transport.interface import Kind, Limits, Method, Setup
from bytepair_server.transport.native import NativeTransport
from conftest import Serve
from google.protobuf import json_format
from support import http2
from support.failures import failure
from support.pki import Authority
from support.serving import START_SECONDS, RunningServer
from support.streaming import DecodeRequest, Talk, answers_of, decode_config

pytestmark = pytest.mark.slow  # it starts servers for few tests

LIMIT = 8
COUNT = tokenizer_pb2.CountRequest(encoding="cl100k_base", text="hello world")
METADATA_LIMIT = 2048
FLAGS = ("--max-stop-strings", str(LIMIT), "--max-stop-bytes", str(4 * LIMIT))


@pytest.fixture(scope="module")
def small() -> Iterator[RunningServer]:
    flags = (*FLAGS, "--max-concurrent-streams", str(LIMIT), "--max-input-bytes", "100000")
    with RunningServer("--builtin-encodings", "cl100k_base", *flags) as running:
        yield running


@pytest.fixture(scope="module")
def narrow() -> Iterator[RunningServer]:
    """A server to which only the tests' own connections exist."""
    flags = ("--max-connections", str(LIMIT), "--handshake-seconds", "2")
    more = ("--max-metadata-bytes", str(METADATA_LIMIT))
    with RunningServer("--builtin-encodings", "cl100k_base", *flags, *more) as running:
        yield running


@pytest.mark.parametrize(
    ("stops", "taken"),
    [
        (["ab"] * (LIMIT - 1), True),
        (["ab"] * LIMIT, True),
        (["ab"] * (LIMIT + 1), False),
        (["x" * (4 * LIMIT - 1)], True),
        (["x" * (4 * LIMIT - 2), "é"], True),
        (["x" * (4 * LIMIT - 1), "é"], False),
    ],
)
def test_stop_strings_by_number_and_by_bytes(
    small: RunningServer, stops: list[str], taken: bool
) -> None:
    messages = [decode_config(stop=stops), DecodeRequest(ids=[15339])]
    _, failed = answers_of(small.stub.DecodeStream, messages)
    assert (failed is None) == taken
    if failed is not None:
        assert (failed.reason, failed.field) == ("INPUT_TOO_LARGE", "config.stop")


@pytest.mark.parametrize(("open_streams", "answered"), [(LIMIT - 1, True), (LIMIT, False)])
def test_a_call_beyond_the_concurrent_streams_of_a_connection_waits(
    small: RunningServer, open_streams: int, answered: bool
) -> None:
    """With LIMIT - 1 open connections, one more is accepted."""
    own = [("grpc.use_local_subchannel_pool", 1)]
    with grpc.insecure_channel(small.target, options=own) as channel:
        method: Any = channel.stream_stream(
            "/bytepair.v1.TokenizerService/DecodeStream",
            request_serializer=DecodeRequest.SerializeToString,
        )
        count: Any = channel.unary_unary("/bytepair.v1.TokenizerService/Count")
        talks = [Talk(method) for _ in range(open_streams)]
        for talk in talks:
            talk.say(decode_config())
        waiting = count.future(COUNT.SerializeToString(), timeout=60)
        if not answered:
            with pytest.raises(grpc.FutureTimeoutError):
                waiting.result(timeout=0.3)
            talks.pop().call.cancel()
        assert tokenizer_pb2.CountResponse.FromString(waiting.result(timeout=60)).count == 2
        for talk in talks:
            talk.call.cancel()


@pytest.mark.parametrize("compression", [grpc.Compression.Gzip, grpc.Compression.NoCompression])
@pytest.mark.parametrize(("over", "code"), [(-1, None), (0, None), (1, "INVALID_ARGUMENT")])
def test_the_size_of_a_message_is_its_decompressed_size(
    small: RunningServer, over: int, code: str | None, compression: grpc.Compression
) -> None:
    limit = Settings(max_input_bytes=100_000).max_message_bytes
    bare = tokenizer_pb2.DecodeRequest(encoding="cl100k_base", as_bytes=True).ByteSize()
    # An unknown field that fills the remaining bytes exactly.
    filler = limit + over - bare - 1 - 4
    length = bytes([filler & 127 | 128, filler >> 7 & 127 | 128, filler >> 14 & 127 | 128])
    raw = tokenizer_pb2.DecodeRequest(encoding="cl100k_base", as_bytes=True).SerializeToString()
    raw += b"\x7a" + length + bytes([filler >> 21]) + bytes(filler)
    assert len(raw) == limit + over
    call: Any = small.channel.unary_unary("/bytepair.v1.TokenizerService/Decode")
    if code is None:
        assert call(raw, compression=compression)
    else:
        assert failure(call, raw, compression=compression).code.name == code


def test_a_connection_at_its_maximum_age_is_closed_without_failing_a_call(serve: Serve) -> None:
    """gRPC's asyncio channel tells its state without a thread that outlives it."""
    server = serve("--max-connection-age-seconds", "0.2")

    async def three_connections(channel: grpc.aio.Channel) -> None:
        for ready in (True, False) * 3:
            while ((state := channel.get_state()) is grpc.ChannelConnectivity.READY) != ready:
                await channel.wait_for_state_change(state)

    async def counts() -> set[int]:
        answers = set()
        async with grpc.aio.insecure_channel(server.target) as channel:
            count: Any = channel.unary_unary("/bytepair.v1.TokenizerService/Count")
            connections = asyncio.create_task(three_connections(channel))
            while not connections.done():
                raw = await count(COUNT.SerializeToString(), timeout=60, wait_for_ready=True)
                answers.add(tokenizer_pb2.CountResponse.FromString(raw).count)
            await connections
        return answers

    assert asyncio.run(counts()) == {2}


def test_a_call_begun_as_its_connection_ends_does_not_fail_the_others(serve: Serve) -> None:
    """grpc's clients may acknowledge a PING before they send the headers of a call that has begun.
    h2 0.4 ignores a call after the last that it announced, but its WINDOW_UPDATE ends the
    connection with PROTOCOL_ERROR."""
    server = serve("--max-connection-age-seconds", "0.2")
    opened = http2.frame(http2.HEADERS, http2.END_HEADERS, 1, http2.headers("Count"))
    late = http2.frame(http2.HEADERS, http2.END_HEADERS, 3, http2.headers("Count"))
    message = http2.message(http2.count())
    ping = http2.frame(http2.PING, 0, 0, bytes(8))[:9]
    with http2.connection(server.target, seconds=START_SECONDS) as link:
        link.sendall(opened)
        received = b""
        while http2.frame(http2.GOAWAY, 0, 0, bytes(8))[:9] not in received:
            received += link.recv(1 << 16)
        if ping in received:
            payload = received.partition(ping)[2][:8]
            link.sendall(http2.frame(http2.PING, http2.ACK, 0, payload))
        link.sendall(late + http2.frame(http2.WINDOW_UPDATE, 0, 3, bytes((0, 0, 0, 1))))
        link.sendall(http2.frame(http2.DATA, http2.END_STREAM, 3, message))
        link.sendall(http2.frame(http2.DATA, http2.END_STREAM, 1, message))
        assert http2.status(link) == "0"


def status_of_count(link: socket.socket, fields: bytes) -> str:
    """Return the status of a call with these headers."""
    link.sendall(
        http2.frame(http2.HEADERS, http2.END_HEADERS, 1, fields)
        + http2.frame(http2.DATA, http2.END_STREAM, 1, http2.message(http2.count()))
    )
    return http2.status(link)


def is_welcome(link: socket.socket) -> bool:
    """Return whether the server sends its HTTP/2 preface; if not, it closes the connection."""
    link.settimeout(START_SECONDS)
    try:
        return bool(link.recv(1, socket.MSG_PEEK))
    except ConnectionResetError:  # data in flight was not read
        return False


@contextmanager
def accepted(server: RunningServer) -> Iterator[socket.socket]:
    """A connection, once the server accepts one: it notices late that others were closed."""
    until = monotonic() + START_SECONDS
    with ExitStack() as stack:
        while not is_welcome(link := stack.enter_context(http2.connection(server.target))):
            assert monotonic() < until
        yield link


def test_a_connection_beyond_the_limit_is_closed_until_another_closes(
    narrow: RunningServer,
) -> None:
    with ExitStack() as stack:
        for _ in range(LIMIT):  # the connections up to the limit are accepted
            link = stack.enter_context(accepted(narrow))
        with http2.connection(narrow.target) as another:
            assert not is_welcome(another)
        assert status_of_count(link, http2.headers("Count")) == "0"
    with accepted(narrow):
        pass


def test_connections_are_limited_by_address(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    server = serve("--transport", "native", "--max-connections-per-address", "1")
    with http2.connection(server.target) as first, http2.connection(server.target) as second:
        assert is_welcome(first)
        assert not is_welcome(second)
        monkeypatch.setattr(http2, "_source", "127.0.0.2")
        with http2.connection(server.target) as other:
            assert is_welcome(other)


@pytest.mark.parametrize("setting", ["max_connections", "max_connections_per_address"])
def test_refused_connections_are_counted_and_logged(serve: Serve, setting: str) -> None:
    server = serve("--transport", "native", f"--{setting.replace('_', '-')}", "1")
    # Prometheus counts from the first value that it sees.
    series = f'bytepair_refused_connections_total{{setting="{setting}"}} 0.0\n'
    assert series in server.get("/metrics")[1]
    with http2.connection(server.target) as first:
        assert is_welcome(first)
        for _ in range(3):
            with http2.connection(server.target) as second:
                assert not is_welcome(second)
        server.wait_for_metric("bytepair_refused_connections_total", 3, setting=setting)
    assert server.metric("bytepair_refused_connections_total") == 3
    line = server.wait_for_log("refused a connection")
    # Further ones are only counted, within the same minute.
    assert [each["event"] for each in server.log].count("refused a connection") == 1
    assert (line["level"], line["reason"]) == ("warning", f"{setting} is 1")
    assert line["peer"].startswith("ipv4:127.")


@pytest.mark.parametrize("said", [b"", http2.PREFACE[:10], http2.PREFACE])
def test_a_slow_http_client_is_disconnected(narrow: RunningServer, said: bytes) -> None:
    with accepted(narrow) as polite, http2.connection(narrow.target, hello=said) as mute:
        mute.settimeout(START_SECONDS)
        while mute.recv(1 << 12):
            pass
        assert status_of_count(polite, http2.headers("Count")) == "0"


@pytest.mark.parametrize("said", [b"", b"\x16\x03\x01"])
def test_a_slow_tls_handshake_is_ended(serve: Serve, tmp_path: Path, said: bytes) -> None:
    Authority().server().write(tmp_path)
    files = ("--tls-cert-file", f"{tmp_path}/server.pem", "--tls-key-file", f"{tmp_path}/key.pem")
    server = serve("--handshake-seconds", "0.1", *files)
    with http2.connection(server.target, hello=said, seconds=START_SECONDS) as link:
        assert not link.recv(1)


LIMITS = Limits.of(Settings())
HELLO = http2.PREFACE + http2.frame(http2.SETTINGS, 0, 0)
HALF, HALF_JSON = (
    http2.frame(http2.HEADERS, http2.END_HEADERS, 1, fields)
    + http2.frame(http2.DATA, 0, 1, http2.message(b"a", length=9))
    for fields in (
        http2.headers("Count"),
        http2.headers("Count", content_type="application/json") + b"\0\x0econtent-length\x0214",
    )
)


@pytest.mark.parametrize(
    ("kind", "limits", "said", "status"),
    [
        (
            Kind.UNARY,
            replace(LIMITS, keepalive_seconds=0.1, keepalive_timeout_seconds=0.1),
            HELLO,
            "",
        ),
        (
            Kind.UNARY,
            replace(LIMITS, keepalive_seconds=0.1, handshake_seconds=0.1),
            b"POST / HTTP/1.1\r\n",
            "",
        ),
        (Kind.UNARY, replace(LIMITS, message_seconds=0.1), HELLO + HALF, "4"),
        (Kind.SERVER_STREAM, replace(LIMITS, message_seconds=0.1), HELLO + HALF, "4"),
        (Kind.UNARY, replace(LIMITS, message_seconds=0.1), HELLO + HALF_JSON, "408"),
    ],
    ids=[
        "no answer to a PING",
        "incomplete headers",
        "incomplete message",
        "the same, of a stream",
        "the same, in JSON",
    ],
)
def test_a_peer_that_falls_silent_is_not_waited_for(
    kind: Kind, limits: Limits, said: bytes, status: str
) -> None:
    """Its connection is closed, or its call fails. Otherwise reading would time out."""

    def read(address: str) -> str:
        with http2.connection(address, hello=said) as link:
            return http2.status(link, field=":status" if status == "408" else "grpc-status")

    async def run() -> str:
        methods = [Method(f"{http2.SERVICE[1:]}Count", kind, lambda _: None)]
        transport = NativeTransport(Setup(methods, limits, lambda _: None, lambda *_: None))
        address = await transport.start("127.0.0.1:0", shares_port=False, unix_socket_mode="0600")
        try:
            return await asyncio.to_thread(read, address)
        finally:
            await transport.stop()

    assert asyncio.run(run()) == status


@pytest.mark.parametrize(("over", "status"), [(-1, "0"), (0, "0"), (1, "8")])
def test_metadata_is_bounded_by_its_size_in_http2(
    narrow: RunningServer, over: int, status: str
) -> None:
    """This applies to clients that acknowledge the server's settings: gRPC bounds others by 16
    MiB."""
    with accepted(narrow) as link:
        link.sendall(http2.frame(http2.SETTINGS, http2.ACK, 0))
        fields = http2.headers("Count", size=METADATA_LIMIT + over)
        assert status_of_count(link, fields) == status


@pytest.mark.parametrize(
    ("size", "status"), [(0, "200"), (1.0, "429"), (1.9, "429"), (2.0, "431"), (3.0, "431")]
)
def test_metadata_is_bounded_in_http1_1(server: RunningServer, size: float, status: str) -> None:
    """A size is in units of the limit."""
    body = json_format.MessageToJson(COUNT).encode()
    lines = (
        f"POST {http2.SERVICE}Count HTTP/1.1",
        "host: localhost",
        "content-type: application/json",
        f"content-length: {len(body)}",
        f"x-large: {'a' * int(size * Settings().max_metadata_bytes)}",
    )
    hello = "\r\n".join((*lines, "", "")).encode() + body
    end = b'"resource_exhausted"' if status == "429" else b"\r\n\r\n"
    with http2.connection(server.target, hello=hello, seconds=START_SECONDS) as link:
        answer = b""
        while end not in answer and (more := link.recv(4096)):  # the body may come later
            answer += more
    assert answer.startswith(f"HTTP/1.1 {status} ".encode())
    assert (b'"resource_exhausted"' in answer) == (status == "429")


def test_headers_count_as_long_as_their_call_lasts(serve: Serve) -> None:
    """A call may wait long for its message. Each header takes more memory than its bytes."""
    limits = ("--max-input-bytes", "10000", "--max-ids", "10000")
    server = serve("--transport", "native", "--max-buffered-bytes", f"{1 << 20}", *limits)
    fields = http2.headers("Count", size=6000)
    with http2.connection(server.target) as link:
        for stream in range(1, 301, 2):
            link.sendall(http2.frame(http2.HEADERS, http2.END_HEADERS, stream, fields))
        closed = server.wait_for_log("closed a connection", peer=http2.peer_of(link))
    assert "max_buffered_bytes" in closed["reason"]


@pytest.mark.parametrize("content_type", ["application/grpc", "application/connect+proto"])
def test_headers_of_open_streams_count_after_their_answers_have_begun(
    serve: Serve, content_type: str
) -> None:
    limits = ("--max-input-bytes", "10000", "--max-ids", "10000")
    server = serve("--transport", "native", "--max-buffered-bytes", f"{1 << 20}", *limits)
    fields = http2.headers("DecodeStream", size=6000, content_type=content_type)
    config = http2.message(decode_config().SerializeToString())
    with http2.connection(server.target) as link:
        answers = (it[1] for it in http2.frames(link) if it[0] == http2.HEADERS)
        with suppress(ConnectionError):
            for stream in range(1, 301, 2):
                link.sendall(http2.frame(http2.HEADERS, http2.END_HEADERS, stream, fields))
                link.sendall(http2.frame(http2.DATA, 0, stream, config))
                if next(answers, None) is None:
                    break
        closed = server.wait_for_log("closed a connection", peer=http2.peer_of(link))
    assert "max_buffered_bytes" in closed["reason"]


def test_headers_far_beyond_the_limit_are_rejected_by_http(narrow: RunningServer) -> None:
    """Before their call begins."""
    with accepted(narrow) as link:
        fields = http2.headers("Count", size=3 * METADATA_LIMIT)
        link.sendall(http2.frame(http2.HEADERS, http2.END_HEADERS, 1, fields))
        [answer] = islice((it for it in http2.frames(link) if it[0] == http2.HEADERS), 1)
        assert dict(answer[3].decode(answer[2], raw=True))[b":status"] == b"431"
    endless = b"GET / HTTP/1.1\r\nx: ".ljust(20_000, b"a")
    with http2.connection(narrow.target, hello=endless, seconds=START_SECONDS) as link:
        assert link.recv(100).startswith(b"HTTP/1.1 431")
