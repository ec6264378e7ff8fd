"""Calls that are sent as one, when time passes, somebody gives up, or the server fails."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest
from bytepair_client import (
    AsyncTokenizerClient,
    Cancelled,
    ClientClosed,
    DeadlineExceeded,
    InternalError,
    Overloaded,
    TokenizerClient,
    TokenizerError,
    Unavailable,
    lanes,
)
from support.clients import Clients
from support.joining import BATCH, SINGLE, Act, count, counts, noting, outcome, together
from support.scripted import Answer, Held, ScriptedServer, details, fail, ok


def test_every_caller_has_its_own_deadline(
    clients: Clients, gather: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    gather(3)
    arrived: list[Any] = []
    monkeypatch.setattr(lanes.Lanes, "gather", noting(arrived, lanes.Lanes.gather))
    left: list[float] = []
    held = Held()

    def answer(context: grpc.ServicerContext) -> bytes:
        left.append(context.time_remaining())
        held(context)
        return counts(7, 7, 7)(context)

    def short(client: TokenizerClient) -> int:
        while len(arrived) < 2:  # so that its time does not pass before theirs begins
            threading.Event().wait(0.001)
        try:
            return client.count("text", timeout=2)
        finally:
            held.over.set()  # the others are answered once it has given up

    with ScriptedServer(answer) as server:
        client = clients(server.target, encoding="e")
        acts: list[Act] = [
            short,
            lambda c: c.count("text", timeout=30),
            lambda c: c.count("text", timeout=60),
        ]
        late, *others = together(client, *acts)
    assert late[0] is DeadlineExceeded
    assert late[1] == "DEADLINE_EXCEEDED"
    assert late[4] == f"no answer from {server.target} within 2 s"
    assert others == [7, 7]
    assert server.calls == [BATCH]
    assert 50 < left[0] < 66  # gRPC sends it rounded


def test_a_deadline_may_pass_while_a_call_waits(
    clients: Clients, gather: Callable[[int], None]
) -> None:
    gather(3)
    with ScriptedServer(counts(1, 2)) as server:
        client = clients(server.target, encoding="e")
        # The first of a gathering, and nobody else: it is never sent.
        assert outcome(lambda c: c.count("text", timeout=0.05), client)[0] is DeadlineExceeded
        assert server.calls == []


def test_the_server_is_told_when_nobody_waits_any_more(
    clients: Clients, gather: Callable[[int], None]
) -> None:
    gather(2)
    held = Held()
    with ScriptedServer(held) as server:
        client = clients(server.target, encoding="e")
        late = together(client, *[lambda c: c.count("text", timeout=5)] * 2)
        assert [each[0] for each in late] == [DeadlineExceeded] * 2
        assert held.over.wait(60)


def test_whoever_is_cancelled_takes_nothing_from_the_others(
    gather: Callable[[int], None],
) -> None:
    gather(3)
    held = Held()

    def answer(context: grpc.ServicerContext) -> bytes:
        held(context)
        return counts(1, 2, 3)(context)

    async def main(target: str) -> None:
        async with AsyncTokenizerClient(target, encoding="e") as client:
            waiting = asyncio.create_task(client.count("text"))
            await asyncio.sleep(0)
            waiting.cancel()  # before anything is sent
            tasks = [asyncio.create_task(client.count("text")) for _ in range(3)]
            await asyncio.to_thread(held.arrived.wait)
            tasks[1].cancel()
            with pytest.raises(asyncio.CancelledError):
                await tasks[1]
            held.over.set()
            assert [await tasks[0], await tasks[2]] == [1, 3]
            assert waiting.cancelled()

    with ScriptedServer(answer) as server:
        asyncio.run(main(server.target))
    assert server.calls == [BATCH]


def test_when_all_are_cancelled_so_is_their_batch(gather: Callable[[int], None]) -> None:
    gather(2)
    held = Held()

    async def main(target: str) -> None:
        async with AsyncTokenizerClient(target, encoding="e") as client:
            tasks = [asyncio.create_task(client.count("text")) for _ in range(2)]
            await asyncio.to_thread(held.arrived.wait)
            for task in tasks:
                task.cancel()
            await asyncio.to_thread(held.over.wait)
            # What is cancelled before it was sent leaves nothing under way.
            early = [asyncio.create_task(client.count("text")) for _ in range(2)]
            await asyncio.sleep(0)
            for task in early:
                task.cancel()
            await asyncio.wait(early)
            await asyncio.sleep(0)
            assert not client._coalescer._lanes._lanes

    with ScriptedServer(held) as server:
        asyncio.run(main(server.target))
    assert server.calls == [BATCH]


def test_a_batch_is_tried_again_as_a_call_is(
    clients: Clients, gather: Callable[[int], None]
) -> None:
    gather(2)
    gone = fail(grpc.StatusCode.UNAVAILABLE)
    with ScriptedServer(gone, gone, counts(1, 2)) as server:
        client = clients(server.target, encoding="e")
        assert set(together(client, count, count)) == {1, 2}
    assert server.calls == [BATCH] * 3


def test_a_server_that_dies_is_told_to_all(clients: Clients, gather: Callable[[int], None]) -> None:
    gather(2)
    held = Held()
    with ScriptedServer(held) as server, ThreadPoolExecutor(2) as threads:
        client = clients(server.target, encoding="e", max_attempts=1)
        running = [threads.submit(client.count, "text") for _ in range(2)]
        held.arrived.wait()
        server.stop()
        errors = [one.exception() for one in running]
    assert [type(error) for error in errors] == [Unavailable, Unavailable]
    assert errors[0] is not errors[1]
    assert errors[0] is not None
    assert isinstance(errors[0].__cause__, grpc.RpcError)


def refused(reason: str, status: grpc.StatusCode, **metadata: str) -> Answer:
    return fail(status, "told", details=details(reason, status, metadata))


INVALID, EXHAUSTED = grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.RESOURCE_EXHAUSTED


@pytest.mark.parametrize(
    "failure",
    [
        refused("INPUT_TOO_LARGE", INVALID, field="items", limit="1"),
        refused("QUOTA_EXCEEDED", EXHAUSTED, quota="input_bytes_per_second", limit="1"),
        fail(EXHAUSTED, "message too large"),
        fail(grpc.StatusCode.INTERNAL),
        fail(grpc.StatusCode.UNIMPLEMENTED),
        fail(grpc.StatusCode.PERMISSION_DENIED),
        counts(1, 2, 3),  # of which nobody knows whose is whose
    ],
)
def test_what_may_be_the_fault_of_the_batch_is_sent_again_one_by_one(
    clients: Clients, gather: Callable[[int], None], failure: Answer
) -> None:
    gather(2)
    with ScriptedServer(failure, ok) as server:
        client = clients(server.target, encoding="e")
        assert together(client, count, count) == [7, 7]
    assert server.calls == [BATCH, SINGLE, SINGLE]


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (refused("OVERLOADED", EXHAUSTED), Overloaded),
        (fail(grpc.StatusCode.UNAVAILABLE), Unavailable),
    ],
)
def test_what_would_befall_each_is_told_to_each(
    clients: Clients, gather: Callable[[int], None], failure: Answer, kind: type[TokenizerError]
) -> None:
    gather(2)
    with ScriptedServer(failure) as server:
        client = clients(server.target, encoding="e", max_attempts=1)
        assert [each[0] for each in together(client, count, count)] == [kind, kind]
    assert server.calls == [BATCH]


def test_an_error_of_one_call_alone_is_not_tried_again(clients: Clients) -> None:
    with ScriptedServer(fail(grpc.StatusCode.INTERNAL)) as server:
        assert outcome(count, clients(server.target, encoding="e"))[0] is InternalError
    assert server.calls == [SINGLE]


def test_a_request_that_the_client_may_not_send_is_not_made(clients: Clients) -> None:
    with ScriptedServer() as server, ThreadPoolExecutor(8) as threads:
        client = clients(server.target, encoding="e", max_request_bytes=60)
        assert list(threads.map(client.count, ["x" * 50] * 40)) == [7] * 40
    assert set(server.calls) == {SINGLE}


def test_closing_ends_what_waits_and_what_is_under_way(
    clients: Clients, gather: Callable[[int], None]
) -> None:
    gather(2)
    held = Held()
    with ScriptedServer(held) as server, ThreadPoolExecutor(3) as threads:
        client = clients(server.target, encoding="e")
        sent = [threads.submit(outcome, count, client) for _ in range(2)]
        held.arrived.wait()
        client.close()
        assert [one.result()[0] for one in sent] == [Cancelled, Cancelled]
        with pytest.raises(ClientClosed):
            client.count("text")
