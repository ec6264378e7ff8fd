"""Streams are begun again while nothing was answered, and nothing of them is lost by that."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice

import grpc
import pytest
from bytepair.v1 import stream_pb2
from bytepair_client import Cancelled, InternalError, TokenizerClient, Unavailable, _retries
from support.clients import Clients
from support.scripted_streams import ScriptedStreams, StreamAnswer, echo, refuse, text

UNAVAILABLE = refuse(grpc.StatusCode.UNAVAILABLE)
CANCELLED = refuse(grpc.StatusCode.CANCELLED)


def refuse_after(requests_read: int) -> StreamAnswer:
    """A stream that takes so many requests, or all, and fails before it has answered one."""

    def answer(requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        deque(islice(requests, requests_read), maxlen=0)
        context.abort(grpc.StatusCode.UNAVAILABLE, "not now")
        yield b""

    return answer


def slowly(ids: range) -> Iterator[int]:
    """A source whose ids come while the stream is tried again, and so in requests of their own."""
    for token_id in ids:
        yield token_id
        time.sleep(0.002)


@pytest.mark.parametrize(
    "script",
    [
        [UNAVAILABLE, UNAVAILABLE, echo],
        [CANCELLED, echo],
        [refuse_after(1), echo],
        [refuse_after(7), refuse_after(3), refuse_after(20), echo],
    ],
)
def test_a_stream_is_tried_again_until_something_was_answered(
    clients: Clients, script: list[StreamAnswer]
) -> None:
    with ScriptedStreams(*script) as server:
        client = clients(server.target, encoding="e")
        ids = range(150)
        decoded = "".join(client.decode_stream(clients.source(slowly(ids))))
        assert decoded == "".join(f"{i} " for i in ids)
        assert len(server.metadata) == len(script)


def test_a_count_is_tried_again_with_all_of_its_text(clients: Clients) -> None:
    def total(requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        parsed = [stream_pb2.CountStreamRequest.FromString(request) for request in requests]
        size = sum(len(request.data) for request in parsed)
        assert [request.HasField("config") for request in parsed].index(True) == 0
        yield stream_pb2.CountStreamResponse(count=size, bytes_consumed=size).SerializeToString()

    with ScriptedStreams(refuse_after(3), UNAVAILABLE, total) as server:
        client = clients(server.target, encoding="e", max_unary_bytes=16)
        assert client.count_stream(["ten bytes."] * 6) == 60
        assert len(server.metadata) == 3


def test_a_stream_is_given_up_when_its_attempts_or_its_time_or_its_buffer_are_used_up(
    clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ScriptedStreams(UNAVAILABLE) as server:
        client = clients(server.target, encoding="e", max_attempts=3)
        with pytest.raises(Unavailable, match="not now"):
            list(client.decode_stream([1]))
        assert len(server.metadata) == 3
        monkeypatch.setattr(_retries, "INITIAL_BACKOFF_S", 40.0)
        with pytest.raises(Unavailable, match="not now"):
            list(client.decode_stream([1], timeout=20))  # the first wait is longer
        assert len(server.metadata) == 4
    with ScriptedStreams(refuse_after(12), echo) as server:
        client = clients(server.target, encoding="e", max_unary_bytes=4)
        with pytest.raises(Unavailable, match="not now"):
            client.count_stream(iter(["abcd"] * 12))
        assert len(server.metadata) == 1


def test_closing_a_stream_ends_its_attempts() -> None:
    refused = threading.Event()

    def note(requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        refused.set()
        return UNAVAILABLE(requests, context)

    with ScriptedStreams(note) as server:
        client = TokenizerClient(server.target, encoding="e", max_attempts=5)
        stream = client.decode_stream([1])

        def close() -> None:
            refused.wait()
            stream.close()

        closer = threading.Thread(target=close)
        closer.start()
        with client, suppress(StopIteration, Cancelled, Unavailable):  # by who was faster
            next(stream)
        closer.join()
        assert len(server.metadata) < 5


@pytest.mark.parametrize("consumed", [2, 4])
def test_a_stream_that_was_not_answered_for_all_that_was_sent_is_no_success(
    clients: Clients, consumed: int
) -> None:
    def lose(requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        for _ in requests:
            yield text("a")
        yield stream_pb2.DecodeStreamResponse(
            tokens_consumed=consumed, finished=True
        ).SerializeToString()

    with ScriptedStreams(lose) as server:
        with pytest.raises(InternalError, match=f"{consumed} of the 3 ids") as caught:
            list(clients(server.target, encoding="e").decode_stream([1, 2, 3]))
        assert caught.value.code == "DATA_LOSS"
