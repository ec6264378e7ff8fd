"""Cancelled calls stop using resources, whether they run or are queued."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import monotonic, sleep
from typing import Any

import grpc
import pytest
from bytepair.v1 import text_pb2, tokenizer_pb2
from conftest import Serve
from support.serving import RunningServer
from support.slow import SLOW_FLAGS, WITHOUT_CORE, slow_text
from support.streaming import CountRequest, count_config

SMALL = tokenizer_pb2.CountRequest(encoding="cl100k_base", text="hello world")
ONE_THREAD = (*SLOW_FLAGS, "--work-threads", "1")


def slow_request(times: int = 1) -> tokenizer_pb2.CountRequest:
    return tokenizer_pb2.CountRequest(encoding="cl100k_base", text=slow_text() * times)


@pytest.fixture
def slow_server(serve: Serve) -> RunningServer:
    """A server with one thread, which computes every request."""
    return serve(*ONE_THREAD, environment=WITHOUT_CORE)


def cancelled(server: RunningServer, rpc: str = "Count", **fields: Any) -> None:
    """Cancel a call while the server computes it."""
    request: Any = getattr(tokenizer_pb2, f"{rpc}Request")
    if rpc.startswith("Batch"):
        item = text_pb2.TextItem(text="a")
        fields = {"items": [item, text_pb2.TextItem(text=slow_text()), item]}
    elif not fields:
        fields = {"text": slow_text()}
    running = getattr(server.stub, rpc).future(request(encoding="cl100k_base", **fields))
    server.wait_for_metric("bytepair_in_flight", 1)
    running.cancel()


def cancelled_in_a_segment(server: RunningServer) -> None:
    texts = ("a", slow_text(), "a")
    cancelled(server, segments=[text_pb2.Segment(text=text) for text in texts])


def expired(server: RunningServer) -> None:
    """Let the deadline of a call pass while the server computes it."""
    with pytest.raises(grpc.RpcError) as caught:
        server.stub.Count(slow_request(4), timeout=1)
    assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED


def given_up(server: RunningServer) -> None:
    """Cancel a stream while the server computes one of its messages."""
    messages = [count_config("cl100k_base"), CountRequest(text=slow_text())]
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
        expired,
        given_up,
    ],
)
def test_the_thread_is_free_for_the_next_call_at_once(
    slow_server: RunningServer, give_up: Callable[[RunningServer], None]
) -> None:
    """The time is compared with that of the whole text on this server, under the same load."""
    began = monotonic()
    assert slow_server.stub.Count(slow_request()).count > 0
    whole = monotonic() - began
    took, given_up = whole, 0
    for _ in range(3):  # a machine may stall once
        for _ in range(3):
            give_up(slow_server)
            given_up += 1
            slow_server.wait_for_metric("bytepair_requests_total", given_up, code="CANCELLED")
        began = monotonic()
        assert slow_server.stub.Count(SMALL).count == 2
        took = min(took, monotonic() - began)
    assert took < whole / 2


def test_a_function_cancelled_before_it_gets_a_thread_never_starts(
    slow_server: RunningServer,
) -> None:
    first = slow_server.stub.Count.future(slow_request())
    slow_server.wait_for_metric("bytepair_in_flight", 1)
    waiting = [slow_server.stub.Count.future(slow_request()) for _ in range(3)]
    slow_server.wait_for_metric("bytepair_waiting_for_thread", 3)
    for each in waiting:
        each.cancel()
    slow_server.wait_for_metric("bytepair_waiting_for_thread", 0)
    assert first.result().count > 0
    assert slow_server.stub.Count(SMALL).count == 2
    assert slow_server.metric("bytepair_input_bytes_total", rpc="Count") == len(
        slow_text().encode()
    ) + len(SMALL.text)


def test_bytes_in_flight_are_bounded_and_cancelled_calls_release_theirs(serve: Serve) -> None:
    room_for_two = slow_request(2).ByteSize() * 5 // 2
    flags = (*ONE_THREAD, "--max-in-flight-bytes", str(room_for_two), "--max-queue-seconds", "0")
    server = serve(*flags, environment=WITHOUT_CORE)
    running = [server.stub.Count.future(slow_request(2)) for _ in range(2)]
    server.wait_for_metric("bytepair_in_flight", len(running))
    with pytest.raises(grpc.RpcError) as caught:
        server.stub.Count(slow_request(2))
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert server.metric("bytepair_errors_total", rpc="Count", reason="OVERLOADED") == 1
    for each in running:
        each.cancel()
    server.wait_for_metric("bytepair_in_flight", 0)
    assert server.stub.Count(slow_request()).count > 0  # cancelled calls have released their bytes
