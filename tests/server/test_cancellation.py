"""Cancelled calls stop using resources, whether they run or are queued."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from functools import partial
from time import sleep
from typing import Any

import grpc
import pytest
from bytepair.v1 import text_pb2, tokenizer_pb2
from conftest import Serve
from support.serving import START_SECONDS, RunningServer
from support.slow import ENDLESS, SLOW_FLAGS, WITHOUT_CORE
from support.streaming import CountRequest, DecodeRequest, Talk, count_config, decode_config

SMALL = tokenizer_pb2.CountRequest(encoding="cl100k_base", text="hello world")
ONE_THREAD = (*SLOW_FLAGS, "--work-threads", "1")


def endless_request(spaces: int = 0) -> tokenizer_pb2.CountRequest:
    return tokenizer_pb2.CountRequest(encoding="cl100k_base", text=ENDLESS + " " * spaces)


@pytest.fixture
def slow_server(serve: Serve) -> RunningServer:
    """A server with one thread, which computes every request."""
    return serve(*ONE_THREAD, environment=WITHOUT_CORE)


def cancelled(server: RunningServer, rpc: str = "Count", **fields: Any) -> None:
    """Cancel a call while the server computes it."""
    request: Any = getattr(tokenizer_pb2, f"{rpc}Request")
    if rpc.startswith("Batch"):
        item = text_pb2.TextItem(text="a")
        fields = {"items": [item, text_pb2.TextItem(text=ENDLESS), item]}
    elif not fields:
        fields = {"text": ENDLESS}
    running = getattr(server.stub, rpc).future(request(encoding="cl100k_base", **fields))
    server.wait_for_metric("bytepair_in_flight", 1)
    running.cancel()


def cancelled_in_a_segment(server: RunningServer) -> None:
    texts = ("a", ENDLESS, "a")
    cancelled(server, segments=[text_pb2.Segment(text=text) for text in texts])


def given_up(server: RunningServer) -> None:
    """Cancel a stream while the server computes one of its messages."""
    messages = [count_config("cl100k_base"), CountRequest(text=ENDLESS)]
    running: Any = server.stub.CountStream.future(iter(messages))
    server.wait_for_metric("bytepair_open_streams", 1)
    sleep(0.1)  # no signal tells that its second message has arrived
    running.cancel()


@pytest.mark.parametrize(
    "give_up",
    [
        *(
            pytest.param(partial(cancelled, rpc=rpc), id=f"cancelled {rpc}")
            for rpc in ("Count", "Encode", "BatchCount", "BatchEncode")
        ),
        cancelled_in_a_segment,
        given_up,
    ],
)
def test_the_thread_is_free_for_the_next_call_at_once(
    slow_server: RunningServer, give_up: Callable[[RunningServer], None]
) -> None:
    give_up(slow_server)
    slow_server.wait_for_metric("bytepair_requests_total", 1, code="CANCELLED")
    assert slow_server.stub.Count(SMALL, timeout=START_SECONDS).count == 2


@pytest.mark.parametrize("rpc", ["Count", "CountStream"])
def test_a_call_whose_deadline_passed_is_counted_and_logged_as_such(
    slow_server: RunningServer, rpc: str
) -> None:
    stream = iter([count_config("cl100k_base"), CountRequest(text=ENDLESS)])
    request = stream if rpc == "CountStream" else endless_request()
    with pytest.raises(grpc.RpcError) as caught:
        getattr(slow_server.stub, rpc)(request, timeout=2)
    assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    code = "DEADLINE_EXCEEDED"
    slow_server.wait_for_metric("bytepair_requests_total", 1, rpc=rpc, code=code)
    assert slow_server.wait_for_log("call", rpc=rpc)["code"] == code
    assert slow_server.metric("bytepair_requests_total", code="CANCELLED") == 0
    assert slow_server.stub.Count(SMALL, timeout=START_SECONDS).count == 2


def test_a_call_that_is_cancelled_before_its_deadline_is_counted_as_cancelled(
    slow_server: RunningServer,
) -> None:
    running = slow_server.stub.Count.future(endless_request(), timeout=60)
    slow_server.wait_for_metric("bytepair_in_flight", 1)
    running.cancel()
    slow_server.wait_for_metric("bytepair_requests_total", 1, rpc="Count", code="CANCELLED")


def test_bursts_of_calls_whose_deadline_passed_leave_their_connection_open(serve: Serve) -> None:
    """The server reads the calls of a burst and their resets together."""
    server = serve("--transport", "native")
    talk = Talk(server.stub.DecodeStream)
    talk.say(decode_config())
    for _ in range(3):
        os.kill(server.pid, signal.SIGSTOP)
        try:
            calls = [server.stub.Count.future(SMALL, timeout=0.2) for _ in range(200)]
            assert {call.code() for call in calls} == {grpc.StatusCode.DEADLINE_EXCEEDED}
        finally:
            os.kill(server.pid, signal.SIGCONT)
        assert talk.say(DecodeRequest(ids=[15339])).text == "hello"
    assert talk.close()[1] is None


def test_bytes_in_flight_are_bounded_and_cancelled_calls_release_theirs(serve: Serve) -> None:
    half = endless_request(spaces=1 << 19)
    room_for_two = half.ByteSize() * 5 // 2
    flags = (*ONE_THREAD, "--max-in-flight-bytes", str(room_for_two), "--max-queue-seconds", "0")
    server = serve(*flags, environment=WITHOUT_CORE)
    for rejected in (1, 2):
        running = [server.stub.Count.future(half) for _ in range(2)]
        server.wait_for_metric("bytepair_in_flight", len(running))
        with pytest.raises(grpc.RpcError) as caught:
            server.stub.Count(half)
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        overloaded = server.metric("bytepair_errors_total", rpc="Count", reason="OVERLOADED")
        assert overloaded == rejected
        for each in running:
            each.cancel()
        server.wait_for_metric("bytepair_in_flight", 0)
