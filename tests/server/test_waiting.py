"""Calls to a full server are queued, and admitted or rejected."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import grpc
import pytest
from bytepair.v1 import tokenizer_pb2, tokenizer_pb2_grpc
from conftest import Serve
from support import http2
from support.failures import Failed, read
from support.slow import SLOW_FLAGS, WITHOUT_CORE, endless_count

Code = grpc.StatusCode

SMALL = tokenizer_pb2.CountRequest(encoding="cl100k_base", text="hello world")
#: Longer than any test takes.
LONG = "60"
ONE_PLACE = (*SLOW_FLAGS, "--max-in-flight", "1", "--max-queue-seconds")
#: Its text fills the limit of bytes in flight, and fits in one message.
LARGE = tokenizer_pb2.CountRequest(encoding="cl100k_base", text="hello " * (1 << 18))


def failure_of(call: Any) -> Failed:
    """Return the error of a call that was started before."""
    with pytest.raises(grpc.RpcError) as caught:
        call.result()
    return read(caught.value)


def test_a_queued_call_is_answered_as_soon_as_a_slot_is_free(serve: Serve) -> None:
    server = serve(*ONE_PLACE, LONG, environment=WITHOUT_CORE)
    with endless_count(server) as running:
        calls = [server.stub.Count.future(SMALL) for _ in range(3)]
        server.wait_for_metric("bytepair_queued", 3)
        calls.pop().cancel()
        server.wait_for_metric("bytepair_queued", 2)
        assert server.metric("bytepair_in_flight") == 1
        running.cancel()
        assert [each.result().count for each in calls] == [2, 2]
    assert server.metric("bytepair_queued") == 0
    assert not server.metric("bytepair_errors_total", rpc="Count", reason="OVERLOADED")


def test_connections_take_turns_if_all_calls_have_one_caller(serve: Serve) -> None:
    flags = (*ONE_PLACE, LONG, "--log-calls", "info", "--log-level", "info")
    server = serve(*flags, environment=WITHOUT_CORE)
    own = [("grpc.use_local_subchannel_pool", 1)]
    with grpc.insecure_channel(server.target, options=own) as other, endless_count(server) as first:
        stub: Any = tokenizer_pb2_grpc.TokenizerServiceStub(other)  # type: ignore[no-untyped-call]
        calls = []
        for waiting, (each, name) in enumerate(
            [(server.stub, f"many{i}") for i in range(2)] + [(stub, "one")], 1
        ):
            calls.append(each.Count.future(SMALL, metadata=(("x-request-id", name),)))
            server.wait_for_metric("bytepair_queued", waiting)
        first.cancel()
        assert {each.result().count for each in calls} == {2}
    server.wait_for_log("call", times=3, code="OK")  # a call is logged after its answer
    answered = [line["request_id"] for line in server.log if line.get("code") == "OK"]
    assert answered == ["many0", "one", "many1"]


def test_a_queued_call_is_rejected_before_its_deadline(serve: Serve) -> None:
    server = serve(*ONE_PLACE, LONG, environment=WITHOUT_CORE)
    with endless_count(server):
        failed = failure_of(server.stub.Count.future(SMALL, timeout=10))
        assert (failed.code, failed.reason) == (Code.RESOURCE_EXHAUSTED, "OVERLOADED")
        assert failed.retry_seconds == 0.25
        assert server.metric("bytepair_errors_total", rpc="Count", reason="OVERLOADED") == 1


def test_a_connection_that_cancels_too_many_calls_is_closed(serve: Serve) -> None:
    flags = (*ONE_PLACE, LONG, "--transport", "native", "--max-abandoned-per-second", "10")
    server = serve(*flags, environment=WITHOUT_CORE)
    streams = range(1, 23, 2)  # one more than the limit
    message, reset = http2.message(http2.count()), http2.CANCEL.to_bytes(4, "big")
    with endless_count(server), http2.connection(server.target) as link:
        for each in streams:
            called = http2.frame(http2.HEADERS, http2.END_HEADERS, each, http2.headers("Count"))
            link.sendall(called + http2.frame(http2.DATA, http2.END_STREAM, each, message))
        server.wait_for_metric("bytepair_queued", len(streams))
        link.sendall(b"".join(http2.frame(http2.RST_STREAM, 0, it, reset) for it in streams))
        closed = server.wait_for_log("closed a connection", peer=http2.peer_of(link))
    assert "max_abandoned_per_second" in closed["reason"]


@pytest.mark.parametrize("content_type", ["application/grpc", "application/proto"])
def test_calls_that_are_cancelled_within_their_messages_count_too(
    serve: Serve, content_type: str
) -> None:
    server = serve("--transport", "native", "--max-abandoned-per-second", "10")
    half, reset = http2.message(http2.count())[:-1], http2.CANCEL.to_bytes(4, "big")
    headers = http2.headers("Count", content_type=content_type)
    streams = range(1, 23, 2)  # one more than the limit
    with http2.connection(server.target) as link:
        for each in streams:
            link.sendall(
                http2.frame(http2.HEADERS, http2.END_HEADERS, each, headers)
                + http2.frame(http2.DATA, 0, each, half)
            )
        assert server.stub.Count(SMALL).count == 2  # the server has read the frames
        # Together, because the limit is one of each second.
        link.sendall(b"".join(http2.frame(http2.RST_STREAM, 0, it, reset) for it in streams))
        closed = server.wait_for_log("closed a connection", peer=http2.peer_of(link))
    assert "max_abandoned_per_second" in closed["reason"]


def test_queued_calls_fail_with_draining_when_the_server_drains(serve: Serve) -> None:
    server = serve(*ONE_PLACE, LONG, environment=WITHOUT_CORE)
    with endless_count(server) as running:
        call = server.stub.Count.future(SMALL)
        server.wait_for_metric("bytepair_queued", 1)
        server.terminate()
        failed = failure_of(call)
        assert not running.done()
    assert (failed.code, failed.reason) == (Code.UNAVAILABLE, "DRAINING")
    assert server.wait() == 0


def test_a_call_that_exceeds_the_bytes_in_flight_is_queued(serve: Serve) -> None:
    flags = ("--max-in-flight-bytes", str(1 << 20), "--max-queue-seconds")
    server = serve(*SLOW_FLAGS, *flags, LONG, environment=WITHOUT_CORE)
    with endless_count(server) as running:
        given_up = server.stub.Count.future(LARGE)
        server.wait_for_metric("bytepair_queued", 1)
        given_up.cancel()
        server.wait_for_metric("bytepair_queued", 0)
        failed = failure_of(server.stub.Count.future(LARGE, timeout=10))
        running.cancel()
    assert (failed.code, failed.reason) == (Code.RESOURCE_EXHAUSTED, "OVERLOADED")
    assert failed.metadata == {"setting": "max_in_flight_bytes"}
    assert failed.message.startswith("the call was queued for max_queue_seconds or half of the ")


@pytest.mark.parametrize("transport", ["native", "grpcio"])
def test_simultaneous_calls_are_all_answered(serve: Serve, transport: str) -> None:
    server = serve("--transport", transport, "--max-queue-seconds", LONG)
    own = [("grpc.use_local_subchannel_pool", 1)]
    with ExitStack() as stack:
        stubs: list[Any] = [
            tokenizer_pb2_grpc.TokenizerServiceStub(  # type: ignore[no-untyped-call]
                stack.enter_context(grpc.insecure_channel(server.target, options=own))
            )
            for _ in range(4)
        ]
        calls = [stub.Count.future(SMALL) for _ in range(512) for stub in stubs]
        assert {each.result().count for each in calls} == {2}


def test_calls_whose_messages_never_arrive_hold_no_slot(serve: Serve) -> None:
    server = serve("--max-in-flight", "2")
    whole = http2.message(http2.count())
    with http2.connection(server.target) as link:
        for stream in (1, 3, 5):
            call = http2.frame(http2.HEADERS, http2.END_HEADERS, stream, http2.headers("Count"))
            link.sendall(call + http2.frame(http2.DATA, 0, stream, whole[:9]))
        for _ in range(8):
            assert server.stub.Count(SMALL).count == 2
