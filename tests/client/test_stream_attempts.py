"""Streams are retried without losing or repeating anything."""

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
from bytepair_client import Cancelled, InternalError, TokenizerClient, Unavailable, _base
from support.clients import Clients
from support.scripted_streams import ScriptedStreams, StreamAnswer, echo, reject, text

UNAVAILABLE = reject(grpc.StatusCode.UNAVAILABLE)
CANCELLED = reject(grpc.StatusCode.CANCELLED)


def refuse_after(requests_read: int) -> StreamAnswer:
    """A stream that reads some or all requests, and fails before the first response."""

    def answer(requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        deque(islice(requests, requests_read), maxlen=0)
        context.abort(grpc.StatusCode.UNAVAILABLE, "not now")
        yield b""

    return answer


def slowly(ids: range) -> Iterator[int]:
    """A source whose ids arrive while the stream is retried, and so in separate requests."""
    for token_id in ids:
        yield token_id
        time.sleep(0.002)


@pytest.mark.slow
@pytest.mark.parametrize(
    "script",
    [
        [UNAVAILABLE, UNAVAILABLE, echo],
        [CANCELLED, echo],
        [refuse_after(1), echo],
        [refuse_after(7), refuse_after(3), refuse_after(20), echo],
    ],
)
def test_a_stream_is_retried_until_the_first_answer(
    clients: Clients, script: list[StreamAnswer]
) -> None:
    with ScriptedStreams(*script) as server:
        client = clients(server.target, encoding="e")
        ids = range(150)
        decoded = "".join(client.decode_stream(clients.source(slowly(ids))))
        assert decoded == "".join(f"{i} " for i in ids)
        assert len(server.metadata) == len(script)


@pytest.mark.slow
def test_a_count_is_retried_with_all_of_its_text(clients: Clients) -> None:
    def total(requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        parsed = [stream_pb2.CountStreamRequest.FromString(request) for request in requests]
        size = sum(len(request.data) for request in parsed)
        assert [request.HasField("config") for request in parsed].index(True) == 0
        yield stream_pb2.CountStreamResponse(count=size, bytes_consumed=size).SerializeToString()

    with ScriptedStreams(refuse_after(3), UNAVAILABLE, total) as server:
        client = clients(server.target, encoding="e", max_unary_bytes=16)
        assert client.count_stream(["ten bytes."] * 6) == 60
        assert len(server.metadata) == 3


@pytest.mark.slow
def test_a_stream_fails_when_its_attempts_its_time_or_its_buffer_are_used_up(
    clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ScriptedStreams(UNAVAILABLE) as server:
        client = clients(server.target, encoding="e", max_attempts=3)
        with pytest.raises(Unavailable, match="not now"):
            list(client.decode_stream([1]))
        assert len(server.metadata) == 3
        monkeypatch.setattr(_base, "INITIAL_BACKOFF_S", 40.0)
        with pytest.raises(Unavailable, match="not now"):
            list(client.decode_stream([1], timeout=20))  # the first wait is longer
        assert len(server.metadata) == 4
    with ScriptedStreams(refuse_after(12), echo) as server:
        client = clients(server.target, encoding="e", max_unary_bytes=4)
        with pytest.raises(Unavailable, match="not now"):
            client.count_stream(iter(["abcd"] * 12))
        assert len(server.metadata) == 1


def test_closing_a_stream_ends_its_attempts() -> None:
    rejected = threading.Event()

    def note(requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        rejected.set()
        return UNAVAILABLE(requests, context)

    with ScriptedStreams(note) as server:
        client = TokenizerClient(server.target, encoding="e", max_attempts=9)
        stream = client.decode_stream([1])

        def close() -> None:
            rejected.wait()
            stream.close()

        closer = threading.Thread(target=close)
        closer.start()
        with client, suppress(StopIteration, Cancelled, Unavailable):  # depending on timing
            next(stream)
        closer.join()
        assert len(server.metadata) < 9


@pytest.mark.parametrize("consumed", [2, 4])
def test_a_stream_whose_responses_miss_ids_is_data_loss(clients: Clients, consumed: int) -> None:
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


class Answering:
    """A stream that sends each response once its `tokens_consumed` ids have arrived, then breaks.

    Attributes:
        config: Of the last such stream.
        ids: All that were sent through it.
    """

    def __init__(self, *answers: stream_pb2.DecodeStreamResponse) -> None:
        self._answers = answers
        self.config = stream_pb2.DecodeStreamConfig()
        self.ids: list[int] = []

    def __call__(self, requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        self.ids = []
        for answer in self._answers:
            while len(self.ids) < answer.tokens_consumed:
                request = stream_pb2.DecodeStreamRequest.FromString(next(requests))
                if request.HasField("config"):
                    self.config = request.config
                self.ids += request.ids
                if len(self.ids) < answer.tokens_consumed:
                    part = stream_pb2.DecodeStreamResponse(
                        text="",
                        tokens_consumed=len(self.ids),
                        encoding=answer.encoding,
                        fingerprint=answer.fingerprint,
                    )
                    yield part.SerializeToString()
            yield answer.SerializeToString()
        if not self._answers[-1].finished:
            context.abort(grpc.StatusCode.UNAVAILABLE, "gone")


def test_another_server_is_sent_the_ids_that_were_not_settled(clients: Clients) -> None:
    response = stream_pb2.DecodeStreamResponse
    first = Answering(
        response(text="a", tokens_consumed=2, encoding="canonical", fingerprint="sha256:1"),
        response(text="b", tokens_consumed=4, pending_bytes=1),
    )
    second = Answering(response(text="bc", tokens_consumed=2, finished=True, encoding="canonical"))
    with ScriptedStreams(first, second) as server:
        client = clients(server.target, encoding="alias", max_unary_bytes=8)  # two ids at a time
        stream = client.decode_stream([1, 2, 3, 4], prefill_ids=[9])
        assert list(stream) == ["a", "b", "c"]
        assert stream.last.tokens_consumed == 4
        assert stream.last.finished
    assert second.config.encoding == "canonical"
    assert second.config.expected_fingerprint == "sha256:1"
    assert list(second.config.prefill_ids) == [9, 1, 2]
    assert second.ids == [3, 4]


@pytest.mark.slow
def test_a_stream_that_always_breaks_at_one_place_is_not_retried_forever(clients: Clients) -> None:
    response = stream_pb2.DecodeStreamResponse
    poisoned = Answering(response(text="a", tokens_consumed=1, pending_bytes=1, encoding="e"))
    with ScriptedStreams(poisoned) as server:
        client = clients(server.target, encoding="e", max_attempts=3, max_unary_bytes=4)
        stream = client.decode_stream([1, 2])
        assert next(stream) == "a"
        broke = "broke, and no server answered in 2 attempts to resume: gone"
        with pytest.raises(Unavailable, match=broke):
            list(stream)
        assert len(server.metadata) == 3


def test_without_retries_a_stream_does_not_resume(
    clients: Clients,
) -> None:
    response = stream_pb2.DecodeStreamResponse
    with ScriptedStreams(Answering(response(text="a", tokens_consumed=1, encoding="e"))) as server:
        stream = clients(server.target, encoding="e", max_attempts=1).decode_stream([1])
        assert next(stream) == "a"
        with pytest.raises(Unavailable, match=f"the connection to {server.target} broke: gone"):
            next(stream)
        assert len(server.metadata) == 1
