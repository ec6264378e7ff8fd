"""Streams start, are cancelled and end when they should."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pytest
from bytepair_client import (
    AsyncTokenizerClient,
    Cancelled,
    ClientClosed,
    DeadlineExceeded,
    TokenizerClient,
    Unavailable,
    UnknownTokenId,
    _options,
)
from bytepair_client._stream_state import MAX_UNREAD_REQUESTS
from conftest import Serve
from support.clients import Clients
from support.pieces import Broke
from support.scripted import details
from support.scripted_streams import Open, ScriptedStreams, echo, text
from support.serving import RunningServer


class Model:
    """Yields the id 64, or another item, endlessly; records when it is closed."""

    def __init__(self, item: Any = 64) -> None:
        self._item = item
        self.let_go = threading.Event()

    def __iter__(self) -> Iterator[Any]:
        try:
            while True:
                yield self._item
                time.sleep(0.001)
        finally:
            self.let_go.set()


class CancelledLate:
    """gRPC's call, whose thread has time to send more while it is being cancelled."""

    def __init__(self, call: Any) -> None:
        self._call = call

    def __next__(self) -> Any:
        return next(self._call)

    def cancel(self) -> None:
        time.sleep(0.2)
        self._call.cancel()


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait until the condition is true, or the time limit of the test is reached."""
    while not condition():
        time.sleep(0.01)


def test_nothing_is_sent_before_the_first_piece_is_requested(clients: Clients) -> None:
    with ScriptedStreams(echo) as server:
        client = clients(server.target, encoding="e")
        model = Model()
        stream = client.decode_stream(iter(model))
        stream.close()
        assert list(stream) == []
        del stream
        client.decode_stream([1])
        assert not server.metadata
        assert "".join(client.decode_stream([1, 2])) == "1 2 "
        assert len(server.metadata) == 1


def test_a_stream_may_be_closed_while_it_waits_for_the_rate_limit(clients: Clients) -> None:
    with ScriptedStreams(echo) as server:
        client = clients(server.target, encoding="any", max_requests_per_second=0.001)
        with client.decode_stream([1]) as first:
            next(first)
        ends: list[object] = []
        stream = client.decode_stream(Model())
        reader = threading.Thread(target=lambda: ends.append(next(stream, None)), daemon=True)
        reader.start()
        time.sleep(0.2)
        stream.close()
        reader.join(30)
        assert (ends, len(server.metadata)) == ([None], 1)


def test_only_one_thread_or_task_may_wait_for_a_result(clients: Clients) -> None:
    rejected = threading.Event()
    ends: list[object] = []
    errors: list[str] = []

    def read() -> None:
        try:
            ends.append(next(stream, None))
        except RuntimeError as error:
            errors.append(str(error))
            rejected.set()

    with ScriptedStreams(Open()) as server:
        stream = clients(server.target, encoding="any").decode_stream(Model())
        assert next(stream) == "first"
        readers = [threading.Thread(target=read, daemon=True) for _ in range(2)]
        for reader in readers:
            reader.start()
        rejected.wait()  # and the other one still waits
        stream.close()
        for reader in readers:
            reader.join()
    assert ends == [None]
    assert "only one may read" in errors[0]


def test_a_client_may_be_closed_while_a_stream_waits_for_a_quota(clients: Clients) -> None:
    def reject(requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        del requests
        status = grpc.StatusCode.RESOURCE_EXHAUSTED
        rejection = details(
            "QUOTA_EXCEEDED", status, {"quota": "calls", "limit": "1"}, delay_ms=600_000
        )
        context.set_trailing_metadata((("grpc-status-details-bin", rejection),))
        context.abort(status, "later")
        yield b""

    with ScriptedStreams(reject) as server:
        client = clients(server.target, encoding="e", wait_for_quota=True)
        failures: list[BaseException] = []

        def read() -> None:
            try:
                next(client.decode_stream([1]))
            except ClientClosed as error:
                failures.append(error)

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        wait_for(lambda: bool(server.metadata and client._sleepers))
        client.close()
        reader.join(30)
        assert (len(failures), len(server.metadata)) == (1, 1)


def test_a_stream_has_a_deadline_only_if_it_is_given_one(clients: Clients) -> None:
    left: list[float] = []

    def answer(requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        left.append(context.time_remaining() or 0)  # gRPC says "forever" by a very large number
        return echo(requests, context)

    with ScriptedStreams(answer) as server:
        client = clients(server.target, encoding="e", timeout=5)
        list(client.decode_stream([1]))
        list(client.encode_stream(["a"]))
        list(client.decode_stream([1], timeout=None))
        list(client.decode_stream([1], timeout=60))
    assert min(left[:3]) > 1e9
    assert 0 < left[3] < 1.1 * 60  # gRPC sends it rounded


@pytest.mark.slow
def test_a_deadline_is_for_the_whole_stream(clients: Clients) -> None:
    with ScriptedStreams(Open()) as server:
        stream = clients(server.target, encoding="e").decode_stream([1], timeout=5)
        assert next(stream) == "first"
        with pytest.raises(
            DeadlineExceeded, match=f"the stream at {server.target} did not end within 5 s"
        ):
            next(stream)


def drop(stream: Any) -> None:
    """Do nothing: it is dropped on return."""


def leave(stream: Any) -> None:
    """Leave its `with` block."""
    with stream:
        next(stream)


@pytest.mark.slow
@pytest.mark.parametrize("how", [drop, leave, lambda stream: stream.close()])
def test_dropping_a_stream_cancels_its_call(
    clients: Clients, server: RunningServer, how: Callable[[Any], None]
) -> None:
    client = clients(server.target, encoding="cl100k_base")
    wait_for(lambda: server.metric("bytepair_open_streams") == 0)
    ended = {"rpc": "DecodeStream", "code": "CANCELLED"}
    cancelled = server.metric("bytepair_requests_total", **ended)
    model = Model()
    stream = client.decode_stream(clients.source(model))
    next(stream)
    assert server.metric("bytepair_open_streams") == 1
    how(stream)
    del stream
    wait_for(lambda: server.metric("bytepair_open_streams") == 0)
    assert server.metric("bytepair_requests_total", **ended) == cancelled + 1
    assert model.let_go.wait(60)


def test_a_cancelled_stream_does_not_end_normally_at_the_server(
    server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = {"rpc": "DecodeStream", "encoding": "cl100k_base", "code": "OK"}
    before = server.metric("bytepair_requests_total", **ended)
    with TokenizerClient(server.target, encoding="cl100k_base") as client:
        start = client._start
        monkeypatch.setattr(client, "_start", lambda *args: CancelledLate(start(*args)))
        stream = client.decode_stream(iter(Model()))
        next(stream)
        stream.close()
        wait_for(lambda: server.metric("bytepair_open_streams") == 0)
    assert server.metric("bytepair_requests_total", **ended) == before


def test_leaving_a_loop_cancels_the_call(clients: Clients, server: RunningServer) -> None:
    client = clients(server.target, encoding="cl100k_base")
    model = Model()

    def use() -> None:
        for _ in client.decode_stream(clients.source(model)):
            break

    use()
    wait_for(lambda: server.metric("bytepair_open_streams") == 0)
    assert model.let_go.wait(60)


@pytest.mark.slow
@pytest.mark.parametrize("item", [64, []])
def test_closing_a_stream_ends_a_source_that_is_far_ahead(clients: Clients, item: Any) -> None:
    model = Model(item)
    with ScriptedStreams(Open()) as server:
        client = clients(server.target, encoding="e", max_unary_bytes=8)
        with client.decode_stream(iter(model)) as stream:
            assert next(stream) == "first"
            time.sleep(0.2)  # until there is no room for more
        assert model.let_go.wait(60)


def test_unanswered_empty_messages_are_bounded(clients: Clients) -> None:
    received = 0
    before_an_answer: list[int] = []
    source_ended = threading.Event()

    def receive(requests: Iterator[bytes]) -> None:
        nonlocal received
        for _ in requests:
            received += 1

    def late(requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        receiver = threading.Thread(target=receive, args=(requests,), daemon=True)
        receiver.start()
        source_ended.wait()
        before_an_answer.append(received)
        answered = 0
        while receiver.is_alive() or answered < received:
            if answered < received:
                answered += 1
                yield text("", 0)
            time.sleep(0.001)

    def model() -> Iterator[list[int]]:
        while received < MAX_UNREAD_REQUESTS:
            yield []
            time.sleep(0.001)
        for _ in range(20):  # time to send more
            yield []
            time.sleep(0.01)
        source_ended.set()

    with ScriptedStreams(late) as server:
        client = clients(server.target, encoding="e", max_unary_bytes=4)  # one id at a time
        assert list(client.decode_stream(clients.source(model()))) == []
    assert before_an_answer == [MAX_UNREAD_REQUESTS]


def test_a_stream_that_ends_leaves_no_thread_or_task_behind(server: RunningServer) -> None:
    before = set(threading.enumerate())
    with TokenizerClient(server.target, encoding="cl100k_base") as client:
        for ids in ([64], iter([64]), [64, 4_000_000_000], Model()):
            with contextlib.suppress(UnknownTokenId):
                list(client.decode_stream(ids, stop=["aa"]))
    wait_for(lambda: set(threading.enumerate()) <= before)

    async def tasks_after_streams() -> int:
        async with AsyncTokenizerClient(server.target, encoding="cl100k_base") as client:
            async for _ in client.decode_stream(iter([64])):
                pass
            async for _ in client.decode_stream(iter(Model())):
                break
            while len(asyncio.all_tasks()) > 1:
                gc.collect()
                await asyncio.sleep(0.01)
        return len(asyncio.all_tasks())

    assert asyncio.run(tasks_after_streams()) == 1


def test_a_source_that_failed_is_freed_without_garbage_collection(clients: Clients) -> None:
    class Failing(Iterator[int]):
        def __next__(self) -> int:
            raise Broke

    source = Failing()
    alive = weakref.ref(source)
    gc.collect()
    gc.disable()
    try:
        with ScriptedStreams(echo) as server:
            stream = clients(server.target, encoding="e").decode_stream(source)
            del source
            with pytest.raises(Broke):
                next(stream)
            del stream
            wait_for(lambda: alive() is None)
    finally:
        gc.enable()


def test_a_stream_may_be_closed_while_its_call_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    with ScriptedStreams(Open()) as server, TokenizerClient(server.target, encoding="e") as client:
        stream = client.decode_stream([1])
        start = client._start

        def close(*arguments: Any) -> Any:
            stream.close()
            return start(*arguments)

        monkeypatch.setattr(client, "_start", close)
        assert list(stream) == []


def test_closing_the_client_ends_its_streams(clients: Clients) -> None:
    open_stream = Open()
    with ScriptedStreams(open_stream) as server:
        client = clients(server.target, encoding="e")
        stream = client.decode_stream(clients.source(Model()))
        assert next(stream) == "first"
        client.close()
        with pytest.raises(Cancelled):
            next(stream)
        assert open_stream.over.wait(60)
        with pytest.raises(ClientClosed):
            next(client.decode_stream([1]))
        with pytest.raises(ClientClosed):
            client.count_stream(["a"])


def test_a_server_that_died_is_noticed(
    clients: Clients, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_options, "KEEPALIVE_TIMEOUT_S", 1.0)
    server = serve()
    client = clients(server.target, encoding="cl100k_base", keepalive=1, max_attempts=1)
    stopped = threading.Event()

    def model() -> Iterator[int]:
        yield 64
        stopped.wait()
        yield 64

    stream = client.decode_stream(clients.source(model()))
    next(stream)
    os.kill(server.pid, signal.SIGSTOP)  # it keeps its connections but sends nothing
    try:
        stopped.set()
        with pytest.raises(Unavailable):
            next(stream)
    finally:
        os.kill(server.pid, signal.SIGCONT)
