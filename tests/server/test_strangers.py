"""What whoever reaches the port can have the server hold, without being anybody."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from time import monotonic, sleep
from typing import Any

import grpc
import pytest
from bytepair_server.health import MAX_WATCHES
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from support import hostile
from support.failures import read
from support.keys import keys_toml
from support.serving import START_SECONDS, RunningServer

KEY = "chat-key"
MESSAGE = hostile.message(hostile.count("hello world" * 100))
WATCH = health_pb2.HealthCheckRequest()
#: At once on one connection, of 1024 that there may be.
ON_EACH = MAX_WATCHES // 2


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    file = tmp_path_factory.mktemp("keyed") / "keys.toml"
    file.write_text(keys_toml(chat=KEY))
    flags = ("--builtin-encodings", "cl100k_base", "--api-keys-file", str(file))
    with RunningServer(*flags) as running:
        yield running


def answer(link: socket.socket) -> bytes:
    """What comes until a call has its status."""
    link.settimeout(START_SECONDS)
    got = b""
    while b"grpc-status" not in got and (more := link.recv(1 << 12)):
        got += more
    return got


@pytest.mark.parametrize("key", ["", "another"])
def test_a_stranger_is_refused_before_its_message_is_whole(keyed: RunningServer, key: str) -> None:
    """gRPC would hold the half of it for as long as the stranger likes."""
    labels = {"rpc": "Count", "reason": "UNAUTHENTICATED"}
    before = keyed.metric("bytepair_errors_total", **labels)
    with hostile.connection(keyed.target) as link:
        said = hostile.frame(
            hostile.HEADERS, hostile.END_HEADERS, 1, hostile.headers("Count", key=key)
        )
        link.sendall(said + hostile.frame(hostile.DATA, 0, 1, MESSAGE[:100]))
        assert b"grpc-status\x0216" in answer(link)
    assert keyed.metric("bytepair_errors_total", **labels) == before + 1


def test_a_known_caller_may_take_its_time(keyed: RunningServer) -> None:
    with hostile.connection(keyed.target) as link:
        said = hostile.frame(
            hostile.HEADERS, hostile.END_HEADERS, 1, hostile.headers("Count", key=KEY)
        )
        link.sendall(said + hostile.frame(hostile.DATA, 0, 1, MESSAGE[:100]))
        sleep(0.1)
        link.sendall(hostile.frame(hostile.DATA, hostile.END_STREAM, 1, MESSAGE[100:]))
        assert b"grpc-status\x010" in answer(link)


def test_what_is_no_request_of_health_is_an_invalid_argument(keyed: RunningServer) -> None:
    check: Any = keyed.channel.unary_unary(f"/{health.SERVICE_NAME}/Check")
    with pytest.raises(grpc.RpcError) as caught:
        check(b"\xff", timeout=20)
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def watch(channel: grpc.Channel) -> Any:
    """A watch of health that has had its first answer."""
    stub: Any = health_pb2_grpc.HealthStub(channel)
    call = stub.Watch(WATCH)
    assert next(call).status == health_pb2.HealthCheckResponse.SERVING
    return call


def test_watches_of_health_are_bounded_and_those_that_end_make_room(keyed: RunningServer) -> None:
    own = [("grpc.use_local_subchannel_pool", 1)]
    with ExitStack() as stack:
        channels = [
            stack.enter_context(grpc.insecure_channel(keyed.target, options=own)) for _ in range(3)
        ]
        held = [watch(channel) for channel in channels[:2] for _ in range(ON_EACH - 1)]
        held += [watch(channels[2]) for _ in range(2)]  # the last that is let in
        with pytest.raises(grpc.RpcError) as caught:
            watch(channels[2])
        refused = read(caught.value)
        assert (refused.code, refused.reason) == (
            grpc.StatusCode.RESOURCE_EXHAUSTED,
            "OVERLOADED",
        )
        assert refused.retry_seconds == 10
        checks: Any = health_pb2_grpc.HealthStub(channels[2])
        assert checks.Check(WATCH).status == health_pb2.HealthCheckResponse.SERVING
        held.pop().cancel()
        until = monotonic() + START_SECONDS
        while True:
            try:
                held.append(watch(channels[2]))
            except grpc.RpcError:
                assert monotonic() < until
                sleep(0.01)
            else:
                break
        for call in held:
            call.cancel()
