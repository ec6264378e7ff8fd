"""A server that drains: its connections, and the calls on them."""

from __future__ import annotations

import asyncio
import gc
import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPConnection
from io import StringIO
from time import sleep
from typing import Any

import grpc
import pytest
from bytepair.v1 import tokenizer_pb2
from bytepair_server.admission import executor
from bytepair_server.config import loader
from bytepair_server.observability import logs
from bytepair_server.server import Server
from bytepair_server.transport import native
from conftest import Serve
from grpc_health.v1 import health_pb2, health_pb2_grpc
from support import http2
from support.failures import failure, read
from support.serving import START_SECONDS, RunningServer
from support.slow import SLOW_FLAGS, WITHOUT_CORE, endless_count
from support.streaming import Talk, decode_config

SERVICE = "bytepair.v1.TokenizerService"
ARGUMENTS = ["--grpc-address", "127.0.0.1:0", "--http-address", "127.0.0.1:0"]
ARGUMENTS += ["--builtin-encodings", "cl100k_base", "--allow-reference-backend"]
QUICK = tokenizer_pb2.CountRequest(encoding="cl100k_base", text="a")


@contextmanager
def draining(server: RunningServer) -> Iterator[None]:
    """Let a stream keep the server draining during the block. It refuses connections then."""
    talk = Talk(server.stub.DecodeStream)
    talk.say(decode_config())
    server.terminate()
    server.wait_for_log("draining", open_streams=1)
    assert failure(server.stub.Count, QUICK).code is grpc.StatusCode.UNAVAILABLE
    yield
    assert talk.close()[1] is None
    assert server.wait() == 0


def test_a_watch_of_health_ends_with_a_status_once_the_server_has_drained(serve: Serve) -> None:
    """The stop would wait for its connection, and then close it."""
    server = serve("--stream-grace-seconds", "600")
    stub: Any = health_pb2_grpc.HealthStub(server.channel)
    watch = stub.Watch(health_pb2.HealthCheckRequest())
    assert next(watch).status == health_pb2.HealthCheckResponse.SERVING
    with draining(server):
        assert next(watch).status == health_pb2.HealthCheckResponse.NOT_SERVING
        assert watch.is_active()
    with pytest.raises(grpc.RpcError) as caught:
        next(watch)
    ended = read(caught.value)
    assert (ended.code, ended.reason) == (grpc.StatusCode.UNAVAILABLE, "DRAINING")


def connections(stack: ExitStack, server: RunningServer, number: int) -> list[HTTPConnection]:
    """Open connections, since a server that drains refuses new ones."""
    found = []
    for _ in range(number):
        found.append(HTTPConnection(server.target, timeout=START_SECONDS))
        stack.enter_context(closing(found[-1])).connect()
    return found


def test_a_call_that_is_being_computed_is_answered_during_the_drain(serve: Serve) -> None:
    server = serve(*SLOW_FLAGS, "--grace-seconds", "600", environment=WITHOUT_CORE)
    seconds = tokenizer_pb2.CountRequest(encoding="cl100k_base", text="a" * 4000)
    running = server.stub.Count.future(seconds)
    while not server.metric("bytepair_in_flight") and not running.done():
        sleep(0.001)
    server.terminate()
    assert running.result().count == 500
    assert server.wait() == 0


def test_a_new_call_is_rejected_during_the_drain(serve: Serve) -> None:
    server = serve(*SLOW_FLAGS, "--grace-seconds", "600", environment=WITHOUT_CORE)
    with endless_count(server), ExitStack() as stack:
        count, check = connections(stack, server, 2)
        server.terminate()
        server.wait_for_log("draining", in_flight=1)
        assert failure(server.stub.Count, QUICK).code is grpc.StatusCode.UNAVAILABLE
        status, answer = posted(count, f"{SERVICE}/Count", {"encoding": "cl100k_base"})
        (detail,) = answer["details"]
        assert (status, answer["code"]) == (503, "unavailable")
        assert detail["debug"]["reason"] == "DRAINING"
        assert not detail["debug"].get("metadata")
        status, answer = posted(check, "grpc.health.v1.Health/Check", {"service": SERVICE})
        assert (status, answer) == (200, {"status": "NOT_SERVING"})
        assert server.get("/readyz") == (503, "draining\n")
        assert server.get("/healthz")[0] == 200
        assert server.metric("bytepair_ready") == 0
    assert server.wait() == 0
    assert failure(server.stub.Count, QUICK).code is grpc.StatusCode.UNAVAILABLE


def test_an_open_connection_gets_goaway_and_no_other_is_accepted_during_the_drain(
    serve: Serve,
) -> None:
    """A client that balances between servers would come back to one that accepts connections."""
    server = serve("--stream-grace-seconds", "600")
    with http2.connection(server.target, seconds=START_SECONDS) as link, draining(server):
        announced = (kind for kind, *_ in http2.frames(link) if kind in (http2.GOAWAY, http2.PING))
        assert next(announced) == http2.GOAWAY
        host, _, port = server.target.rpartition(":")
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((host, int(port)))


def posted(connection: HTTPConnection, path: str, request: Any) -> tuple[int, Any]:
    """Call by JSON. Returns the status and the answer."""
    json_type = {"content-type": "application/json"}
    connection.request("POST", f"/{path}", json.dumps(request), json_type)
    with connection.getresponse() as answer:
        return answer.status, json.load(answer)


def post(connection: HTTPConnection) -> tuple[int, str | None]:
    """Count by JSON. Returns the status and the header `connection`."""
    json_type = {"content-type": "application/json"}
    connection.request("POST", f"/{SERVICE}/Count", '{"encoding": "cl100k_base"}', json_type)
    with connection.getresponse() as answer:
        answer.read()
        return answer.status, answer.getheader("connection")


def test_a_connection_of_http_1_ends_with_an_answer_during_the_drain(serve: Serve) -> None:
    """A request that arrives as the server closes an idle connection is lost."""
    server = serve("--stream-grace-seconds", "600")
    with ExitStack() as stack:
        used, unused, other = connections(stack, server, 3)
        assert post(used) == (200, None)
        with draining(server):
            assert post(used) == post(unused) == (503, "close")
            other.request("GET", "/unknown")
            with other.getresponse() as answer:
                assert answer.getheader("connection") == "close"


def test_a_connection_of_http_1_ends_with_an_answer_when_the_drain_ends_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(native, "LAST_CALLS_SECONDS", START_SECONDS)
    monkeypatch.setattr(executor, "CLOSE_SECONDS", START_SECONDS)

    async def run() -> None:
        server = Server(loader.load(ARGUMENTS, {}), logs.configure("json", "error", StringIO()))
        await server.start()
        await server.load()
        with closing(HTTPConnection(server.grpc_address, timeout=START_SECONDS)) as connection:
            assert await asyncio.to_thread(post, connection) == (200, None)
            await server.drain()
            stopping = asyncio.create_task(server.stop())
            await asyncio.sleep(0.1)  # time in which it would close an idle connection
            assert await asyncio.to_thread(post, connection) == (503, "close")
            assert await stopping

    try:
        asyncio.run(run())
    finally:
        gc.unfreeze()
