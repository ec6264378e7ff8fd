"""Limits on what unauthenticated callers can make the server hold."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from gzip import compress
from itertools import chain
from pathlib import Path
from threading import Event
from time import monotonic, sleep
from typing import Any

import grpc
import pytest
from bytepair_server.rpc import reflection
from bytepair_server.rpc.health import MAX_NAME_BYTES, MAX_WATCHES
from conftest import Serve
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2
from support import http2
from support.failures import read
from support.keys import keys_toml
from support.plain_http import ask
from support.serving import START_SECONDS, RunningServer

pytestmark = pytest.mark.slow  # it starts servers for few tests

KEY = "chat-key"
MESSAGE = http2.message(http2.count("hello world" * 100))
WATCH = health_pb2.HealthCheckRequest()
LIST = reflection_pb2.ServerReflectionRequest(list_services="").SerializeToString()


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    file = tmp_path_factory.mktemp("keyed") / "keys.toml"
    file.write_text(keys_toml(chat=KEY))
    flags = ("--builtin-encodings", "cl100k_base", "--api-keys-file", str(file))
    with RunningServer(*flags, "--reflection") as running:
        yield running


def answer(link: socket.socket, until: bytes) -> bytes:
    """Receive until these bytes arrive."""
    link.settimeout(START_SECONDS)
    got = b""
    while until not in got and (more := link.recv(1 << 12)):
        got += more
    return got


@pytest.mark.parametrize("key", ["", "another"])
def test_an_unauthenticated_call_is_rejected_before_a_large_message_is_read(
    keyed: RunningServer, key: str, pytestconfig: pytest.Config
) -> None:
    if pytestconfig.getoption("--transport") == "grpcio":
        pytest.skip("grpcio reads a unary message before it starts the call")
    labels = {"rpc": "Count", "reason": "UNAUTHENTICATED"}
    before = keyed.metric("bytepair_errors_total", **labels)
    half = http2.message(bytes(100), length=200_000)
    with http2.connection(keyed.target) as link:
        said = http2.frame(http2.HEADERS, http2.END_HEADERS, 1, http2.headers("Count", key=key))
        link.sendall(said + http2.frame(http2.DATA, 0, 1, half))
        assert http2.status(link) == "16"
    assert keyed.metric("bytepair_errors_total", **labels) == before + 1


def test_a_rejected_call_over_http2_may_send_its_message(
    keyed: RunningServer, pytestconfig: pytest.Config
) -> None:
    """curl 7.88 shows no answer if its stream is reset while it sends."""
    if pytestconfig.getoption("--transport") == "grpcio":
        pytest.skip("grpcio has no JSON")
    fields = http2.headers("Count", content_type="application/json")
    with http2.connection(keyed.target) as link:
        link.sendall(http2.frame(http2.HEADERS, http2.END_HEADERS, 1, fields))
        received = http2.frames(link)
        assert any(kind == http2.DATA for kind, *_ in received)  # the answer
        link.sendall(http2.frame(http2.DATA, http2.END_STREAM, 1, b"{}"))
        link.sendall(http2.frame(http2.PING, 0, 0, b"the last"))
        kinds = []
        for kind, _, payload, _ in received:
            kinds.append(kind)
            if payload == b"the last":
                break
    assert kinds[-1] == http2.PING
    assert http2.RST_STREAM not in kinds


def test_an_authenticated_caller_may_send_slowly(keyed: RunningServer) -> None:
    with http2.connection(keyed.target) as link:
        said = http2.frame(http2.HEADERS, http2.END_HEADERS, 1, http2.headers("Count", key=KEY))
        link.sendall(said + http2.frame(http2.DATA, 0, 1, MESSAGE[:100]))
        sleep(0.1)
        link.sendall(http2.frame(http2.DATA, http2.END_STREAM, 1, MESSAGE[100:]))
        assert http2.status(link) == "0"


def test_a_connection_with_too_many_unauthenticated_calls_is_closed(
    serve: Serve, tmp_path: Path
) -> None:
    (tmp_path / "keys.toml").write_text(keys_toml(chat=KEY))
    flags = ("--transport", "native", "--api-keys-file", str(tmp_path / "keys.toml"))
    server = serve(*flags, "--max-abandoned-per-second", "10")
    calls = [
        http2.frame(http2.HEADERS, http2.END_HEADERS, stream, http2.headers("Count"))
        + http2.frame(http2.DATA, http2.END_STREAM, stream, MESSAGE)
        for stream in range(1, 23, 2)  # one more than the limit
    ]
    with http2.connection(server.target) as link:
        link.sendall(b"".join(calls))  # together, because the limit is one of each second
        closed = server.wait_for_log("closed a connection", peer=http2.peer_of(link))
    assert "max_abandoned_per_second" in closed["reason"]


def test_a_malformed_health_request_is_an_invalid_argument(keyed: RunningServer) -> None:
    check: Any = keyed.channel.unary_unary(f"/{health.SERVICE_NAME}/Check")
    with pytest.raises(grpc.RpcError) as caught:
        check(b"\xff", timeout=20)
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def test_a_long_service_name_is_an_invalid_argument(keyed: RunningServer) -> None:
    request = health_pb2.HealthCheckRequest(service="a" * (MAX_NAME_BYTES + 1))
    stub: Any = health_pb2_grpc.HealthStub(keyed.channel)
    for call in (stub.Check, lambda each, timeout: next(stub.Watch(each, timeout=timeout))):
        with pytest.raises(grpc.RpcError) as caught:
            call(request, timeout=START_SECONDS)
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    shorter = health_pb2.HealthCheckRequest(service="a" * MAX_NAME_BYTES)
    with pytest.raises(grpc.RpcError) as caught:
        stub.Check(shorter, timeout=START_SECONDS)
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND


def test_all_concurrent_health_requests_are_answered(
    keyed: RunningServer,
) -> None:
    stub: Any = health_pb2_grpc.HealthStub(keyed.channel)
    for _ in range(3):
        calls = [stub.Check.future(WATCH, timeout=START_SECONDS) for _ in range(256)]
        serving = health_pb2.HealthCheckResponse.SERVING
        assert {call.result().status for call in calls} == {serving}


def test_a_watcher_that_does_not_read_delays_no_other(serve: Serve) -> None:
    """It delays neither other watchers nor the stop of the server."""
    server = serve("--grace-seconds", "60")
    size = struct.pack(">HI", http2.INITIAL_WINDOW_SIZE, 0)
    said = http2.headers("Watch", service=f"/{health.SERVICE_NAME}/")
    with http2.connection(server.target, hello=http2.PREFACE) as link:
        link.sendall(
            http2.frame(http2.SETTINGS, 0, 0, size)
            + http2.frame(http2.SETTINGS, http2.ACK, 0)
            + http2.frame(http2.HEADERS, http2.END_HEADERS, 1, said)
            + http2.frame(http2.DATA, http2.END_STREAM, 1, http2.message(b""))
        )
        answered = bytes((http2.HEADERS, http2.END_HEADERS)) + struct.pack(">I", 1)
        assert answered in answer(link, answered)  # more do not fit in the send buffer
        other = watch(server.channel)
        server.terminate()
        assert next(other).status == health_pb2.HealthCheckResponse.NOT_SERVING
        assert server.wait() == 0


def watch(channel: grpc.Channel) -> Any:
    """A watch of health that has received its first answer."""
    stub: Any = health_pb2_grpc.HealthStub(channel)
    call = stub.Watch(WATCH)
    assert next(call).status == health_pb2.HealthCheckResponse.SERVING
    return call


@pytest.mark.parametrize("rpc", ["Check", "Watch"])
def test_no_large_message_to_the_health_service_is_inflated(
    keyed: RunningServer, rpc: str, pytestconfig: pytest.Config
) -> None:
    """Nobody who sends one needs credentials."""
    if pytestconfig.getoption("--transport") == "grpcio":
        pytest.skip("gRPC's own library inflates")
    bomb = compress(bytes(1 << 20))
    framed = http2.message(bomb, compressed=True)
    service = f"/{health.SERVICE_NAME}/"
    with http2.connection(keyed.target, seconds=START_SECONDS) as link:
        fields = http2.headers(rpc, service=service, encoding="gzip")
        link.sendall(http2.frame(http2.HEADERS, http2.END_HEADERS, 1, fields))
        link.sendall(http2.frame(http2.DATA, http2.END_STREAM, 1, framed))
        assert http2.status(link) == "8"  # RESOURCE_EXHAUSTED
    forms: dict[str, tuple[bytes, dict[str, str]]] = {
        "application/grpc-web+proto": (framed, {"grpc_encoding": "gzip"}),
        "application/connect+proto": (framed, {"connect_content_encoding": "gzip"}),
        "application/proto": (bomb, {"content_encoding": "gzip"}),
    }
    del forms["application/connect+proto" if rpc == "Check" else "application/proto"]
    for content_type, (body, how) in forms.items():
        sent = ask(keyed.target, service + rpc, "POST", body, content_type=content_type, **how)
        said = str(sent).lower()
        # A message of unknown size is not even read.
        errors = ("resource_exhausted", "grpc-status: 8", "is not a healthcheckrequest")
        assert any(error in said for error in errors), content_type


def eventually(open_call: Callable[[], Any]) -> Any:
    """Open a call once a cancelled one has left room."""
    until = monotonic() + START_SECONDS
    while True:
        try:
            return open_call()
        except grpc.RpcError:
            assert monotonic() < until
            sleep(0.01)


def reflect(channel: grpc.Channel, request: bytes = LIST) -> Any:
    """A stream of reflection that stays open and has received its first answer."""
    ask: Any = channel.stream_stream(f"/{reflection.SERVICE_NAMES[0]}/ServerReflectionInfo")
    ended = Event()
    call = ask(chain((request,), iter(ended.wait, True)))
    call.add_callback(ended.set)
    assert next(call)
    return call


def test_a_large_message_to_reflection_is_rejected(
    keyed: RunningServer, pytestconfig: pytest.Config
) -> None:
    if pytestconfig.getoption("--transport") == "grpcio":
        pytest.skip("grpcio has one limit for all messages")
    with pytest.raises(grpc.RpcError) as caught:
        reflect(keyed.channel, bytes(20_000))
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


def test_streams_of_reflection_are_limited(keyed: RunningServer) -> None:
    held = [reflect(keyed.channel) for _ in range(reflection.MAX_STREAMS)]
    with pytest.raises(grpc.RpcError) as caught:
        reflect(keyed.channel)
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    held.pop().cancel()
    held.append(eventually(lambda: reflect(keyed.channel)))
    for call in held:
        assert call.is_active()
        call.cancel()


def test_health_watches_are_limited_and_an_address_with_few_gets_one_of_another(
    keyed: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = [("grpc.use_local_subchannel_pool", 1)]
    with ExitStack() as stack:
        first, second, last = [
            stack.enter_context(grpc.insecure_channel(keyed.target, options=own)) for _ in range(3)
        ]
        held = [watch(channel) for channel in (first, second) for _ in range(MAX_WATCHES // 2)]
        for channel in (first, last):
            with pytest.raises(grpc.RpcError) as caught:
                watch(channel)
            assert_overloaded(caught.value)
        checks: Any = health_pb2_grpc.HealthStub(last)
        assert checks.Check(WATCH).status == health_pb2.HealthCheckResponse.SERVING
        monkeypatch.setattr(http2, "_source", "127.0.0.2")
        link = stack.enter_context(http2.connection(keyed.target))
        said = http2.headers("Watch", service=f"/{health.SERVICE_NAME}/")
        call = http2.message(WATCH.SerializeToString())
        link.sendall(
            http2.frame(http2.HEADERS, http2.END_HEADERS, 1, said)
            + http2.frame(http2.DATA, http2.END_STREAM, 1, call)
        )
        serving = health_pb2.HealthCheckResponse(status="SERVING")
        written = http2.message(serving.SerializeToString())
        assert written in answer(link, written)
        oldest, *others = held
        with pytest.raises(grpc.RpcError) as caught:
            next(oldest)
        assert_overloaded(caught.value)
        others.pop().cancel()
        others.append(eventually(lambda: watch(last)))
        for each in others:
            assert each.is_active()
            each.cancel()


def assert_overloaded(error: grpc.RpcError) -> None:
    refused = read(error)
    assert (refused.code, refused.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED")
    assert refused.retry_seconds == 10
