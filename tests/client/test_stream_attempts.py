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
from support.pieces import Broke, read
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


def test_a_quiet_source_goes_on_in_the_next_attempt(clients: Clients) -> None:
    resumed = threading.Event()

    def refuse(requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        assert any(stream_pb2.DecodeStreamRequest.FromString(request).ids for request in requests)
        yield from UNAVAILABLE(requests, context)

    def note(requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        for answer in echo(requests, context):
            if b"1" in answer:
                resumed.set()
            yield answer

    def model() -> Iterator[int]:
        yield 1
        resumed.wait(30)
        yield 2
        raise Broke

    with ScriptedStreams(refuse, note) as server:
        client = clients(server.target, encoding="e")
        pieces, error = read(client.decode_stream(clients.source(model())))
    assert "".join(pieces) == "1 2 "
    assert isinstance(error, Broke)


def total(requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
    """Answer the last request of CountStream with the size of all text."""
    parsed = [stream_pb2.CountStreamRequest.FromString(request) for request in requests]
    size = sum(len(request.data) for request in parsed)
    assert [request.HasField("config") for request in parsed].index(True) == 0
    yield stream_pb2.CountStreamResponse(count=size, bytes_consumed=size).SerializeToString()


@pytest.mark.slow
def test_a_count_is_retried_with_all_of_its_text(clients: Clients) -> None:
    with ScriptedStreams(refuse_after(3), UNAVAILABLE, total) as server:
        client = clients(server.target, encoding="e", max_unary_bytes=16)
        assert client.count_stream(["ten bytes."] * 6) == 60
        assert len(server.metadata) == 3


@pytest.mark.parametrize("is_failing", [False, True])
def test_a_text_that_is_read_again_is_read_once_at_a_time(is_failing: bool) -> None:
    again = threading.Event()
    first_reader: list[threading.Thread] = []

    def first() -> Iterator[str]:
        first_reader.append(threading.current_thread())
        yield from ["abcd"] * 12
        again.wait(30)
        if is_failing:
            raise Broke
        yield "late"

    def second() -> Iterator[str]:
        again.set()
        first_reader[0].join(30)
        yield from ["abcd"] * 12

    class Book:
        def __iter__(self) -> Iterator[str]:
            return next(readings)

    readings = iter([iter(()), first(), second()])  # an iterator would return itself
    with ScriptedStreams(refuse_after(12), total) as server:
        with TokenizerClient(server.target, encoding="e", max_unary_bytes=4) as client:
            assert client.count_stream(Book()) == 48
        assert len(server.metadata) == 2


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


@pytest.mark.parametrize("status", [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.INTERNAL])
def test_a_stream_that_breaks_after_its_last_response_is_complete(
    clients: Clients, status: grpc.StatusCode
) -> None:
    def answer(requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        yield from whole(requests, context)
        context.abort(status, "gone")

    def finish(requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        deque(requests, maxlen=0)
        response = stream_pb2.DecodeStreamResponse(text="a", tokens_consumed=1, finished=True)
        yield response.SerializeToString()

    for whole in (finish, total):
        with ScriptedStreams(answer) as server:
            client = clients(server.target, encoding="e")
            if whole is total:
                assert client.count_stream(["abc"]) == 3
            else:
                stream = client.decode_stream([1])
                assert list(stream) == ["a"]
                assert stream.last.finished
            assert len(server.metadata) == 1


@pytest.mark.parametrize("consumed", [2, 4])
def test_a_stream_whose_responses_miss_input_is_data_loss(clients: Clients, consumed: int) -> None:
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

    def lose_text(requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        deque(requests, maxlen=0)
        yield stream_pb2.CountStreamResponse(bytes_consumed=consumed).SerializeToString()

    lost = f"{consumed} of the 3 ids or bytes"
    with ScriptedStreams(lose_text) as server, pytest.raises(InternalError, match=lost):
        clients(server.target, encoding="e").count_stream(["abc"])


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


@pytest.mark.slow
def test_failures_before_a_stream_advanced_do_not_count(clients: Clients) -> None:
    response = stream_pb2.DecodeStreamResponse
    breaking = Answering(response(text="a", tokens_consumed=1, encoding="e"))
    last = Answering(response(text="a", tokens_consumed=1, encoding="e", finished=True))
    with ScriptedStreams(breaking, breaking, breaking, last) as server:
        client = clients(server.target, encoding="e", max_attempts=2, max_unary_bytes=4)
        answers = list(client.with_raw_response.decode_stream([1, 2, 3, 4]))
        assert "".join(answer.text for answer in answers) == "aaaa"
        assert [answer.encoding for answer in answers] == ["e"] + [""] * (len(answers) - 1)
        assert len(server.metadata) == 4


def test_a_stream_with_too_much_pending_says_why_it_does_not_resume(clients: Clients) -> None:
    def answer(requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        consumed = 0
        for request in requests:
            consumed += len(stream_pb2.DecodeStreamRequest.FromString(request).ids)
            yield stream_pb2.DecodeStreamResponse(
                tokens_consumed=consumed, pending_bytes=1, encoding="e"
            ).SerializeToString()
        yield from UNAVAILABLE(requests, context)

    with ScriptedStreams(answer) as server:
        client = clients(server.target, encoding="e", max_unary_bytes=4)
        with pytest.raises(Unavailable, match="broke: not now") as caught:
            list(client.decode_stream(range(12)))
        assert "too much of it was pending" in caught.value.__notes__[0]
        assert len(server.metadata) == 1


def test_without_retries_a_stream_does_not_resume(
    clients: Clients,
) -> None:
    response = stream_pb2.DecodeStreamResponse
    extra = response(text="b", tokens_consumed=1)  # of a stopping server
    breaking = Answering(response(text="a", tokens_consumed=1, encoding="e"), extra)
    with ScriptedStreams(breaking) as server:
        stream = clients(server.target, encoding="e", max_attempts=1).decode_stream([1])
        assert [next(stream), next(stream)] == ["a", "b"]
        broke = f"the connection to {server.target} broke: gone"
        with pytest.raises(Unavailable, match=broke) as caught:
            next(stream)
        assert isinstance(caught.value.__cause__, grpc.RpcError)
        assert not hasattr(caught.value, "__notes__")
        assert len(server.metadata) == 1


def test_the_extra_text_of_a_stopping_server_comes_unless_the_stream_advances(
    clients: Clients,
) -> None:
    response = stream_pb2.DecodeStreamResponse
    start = response(text="a", tokens_consumed=1, pending_bytes=1, encoding="e")
    stopping = Answering(start, response(text="b", tokens_consumed=1))
    breaking = Answering(start)  # without extra text
    further = Answering(response(text="abc", tokens_consumed=2, pending_bytes=1, encoding="e"))
    for script, pieces, consumed in (
        ([stopping, UNAVAILABLE], ["a", "b"], 1),
        ([stopping, breaking], ["a", "b"], 1),
        ([stopping, further, UNAVAILABLE], ["a", "bc"], 2),
    ):
        with ScriptedStreams(*script) as server:
            client = clients(server.target, encoding="e", max_attempts=2, max_unary_bytes=4)
            stream = client.decode_stream([1, 2])
            read_pieces, error = read(stream)
            assert (read_pieces, type(error)) == (pieces, Unavailable)
            assert stream.last.tokens_consumed == consumed
            assert len(server.metadata) == len(script)


def test_the_last_response_stays_if_a_resumed_stream_breaks_before_it(clients: Clients) -> None:
    response = stream_pb2.DecodeStreamResponse
    start = response(text="a", tokens_consumed=1, pending_bytes=1, encoding="e")
    first = Answering(start, response(text="b", tokens_consumed=2, pending_bytes=1))
    with ScriptedStreams(first, Answering(start)) as server:
        client = clients(server.target, encoding="e", max_attempts=2, max_unary_bytes=4)
        stream = client.decode_stream([1, 2])
        pieces, error = read(stream)
        assert (pieces, type(error)) == (["a", "b"], Unavailable)
        assert stream.last.tokens_consumed == 2
        assert len(server.metadata) == 2
