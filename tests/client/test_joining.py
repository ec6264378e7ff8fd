"""Calls that come together are sent as one, and each caller cannot tell."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest
from bytepair.v1 import tokenizer_pb2
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
    special,
)
from bytepair_client.options import SERVICE
from conftest import Serve
from support.clients import Clients
from support.scripted import Answer, Held, ScriptedServer, details, fail, ok
from support.serving import RunningServer, write_config

END = "<|endoftext|>"
SINGLE, BATCH = f"/{SERVICE}/Count", f"/{SERVICE}/BatchCount"
Act = Callable[[TokenizerClient], Any]


@pytest.fixture
def gather(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Let clients that are made from then on send nothing until so many calls have come."""

    def choose(number: int) -> None:
        monkeypatch.setattr(lanes, "MAX_AT_ONCE", 0)
        monkeypatch.setattr(lanes, "MAX_WAIT_S", 60.0)
        monkeypatch.setattr(lanes, "MAX_ITEMS", number)

    return choose


def outcome(act: Act, client: TokenizerClient) -> Any:
    """What comes of a call: its value, or its error as it can be compared."""
    try:
        return act(client)
    except TokenizerError as error:
        has_id = error.request_id is not None
        return type(error), error.code, error.reason, error.metadata, str(error), error.item, has_id


def together(client: TokenizerClient, *acts: Act) -> list[Any]:
    """What comes of calls that are made at one time."""
    with ThreadPoolExecutor(len(acts)) as threads:
        return list(threads.map(lambda act: outcome(act, client), acts))


def counts(*numbers: int) -> Answer:
    """An answer of BatchCount."""
    results = [tokenizer_pb2.CountResult(count=number) for number in numbers]
    answer = tokenizer_pb2.BatchCountResponse(results=results).SerializeToString()
    return lambda context: answer


def count(client: TokenizerClient) -> int:
    return client.count("text")


TEXTS: list[Any] = [
    "",
    "Hello, world!",
    "naïve 日本語 🙂\r\n\t x",
    f"é {END}",
    [special(END), "a", END],
    [special("<|none|>"), "a"],
    "a" * 3000,
]
IDS = [[], [9906, 11, 1917], [64, 41907], [100257, 64], [64, 100256], [2**32 - 1], [30, 172]]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("count", {}),
        ("count", {"limit": 2}),
        ("count", {"disallowed_special": "all"}),
        ("count", {"allowed_special": {END}, "encoding": "gpt-4"}),
        ("count", {"encoding": "none"}),
        ("encode", {}),
        ("encode", {"disallowed_special": ()}),
        ("encode", {"allowed_special": "all", "add_special_tokens": True}),
        ("encode", {"allowed_special": {"<|fim_prefix|>"}}),
        ("encode", {"expected_fingerprint": "sha256:1"}),
        ("encode_with_offsets", {"unit": "utf16", "disallowed_special": ()}),
        ("decode", {}),
        ("decode", {"errors": "strict", "skip_special_tokens": True}),
        ("decode_bytes", {}),
    ],
    ids=str,
)
def test_what_is_joined_ends_as_it_would_by_itself(
    permissive: RunningServer,
    clients: Clients,
    gather: Callable[[int], None],
    name: str,
    options: dict[str, Any],
) -> None:
    contents = IDS if name.startswith("decode") else TEXTS
    acts = [calling(name, content, options, full) for content in contents for full in (0, 1)]
    rpc = name.partition("_")[0].capitalize()
    plain = clients(permissive.target, encoding="cl100k_base", coalesce=False)
    expected = [outcome(act, plain) for act in acts]
    before = calls(permissive, rpc), calls(permissive, f"Batch{rpc}")
    gather(len(acts))
    joining = clients(permissive.target, encoding="cl100k_base")
    assert together(joining, *acts) == expected
    after = calls(permissive, rpc), calls(permissive, f"Batch{rpc}")
    assert (after[0] - before[0], after[1] - before[1]) == (0, 1)


def calling(name: str, content: Any, options: dict[str, Any], full: int) -> Act:
    return lambda client: getattr(client.full if full else client, name)(content, **options)


@pytest.fixture(scope="module")
def permissive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    config = f'builtin_encodings = ["cl100k_base"]\n[ceiling.default]\ncl100k_base = ["{END}"]\n'
    path = write_config(tmp_path_factory.mktemp("joining"), config)
    with RunningServer("--config", path) as running:
        yield running


def calls(server: RunningServer, rpc: str) -> int:
    """How many calls of an RPC have ended."""
    page = server.get("/metrics")[1].splitlines()
    found = (line for line in page if line.startswith("bytepair_requests_total{"))
    return sum(int(float(line.rpartition(" ")[2])) for line in found if f'rpc="{rpc}"' in line)


def test_an_idle_channel_sends_each_call_as_it_is(clients: Clients) -> None:
    with ScriptedServer() as server:
        client = clients(server.target, encoding="e")
        assert [client.count("text") for _ in range(3)] == [7, 7, 7]
    assert server.calls == [SINGLE] * 3


def test_calls_that_come_while_others_are_under_way_leave_with_the_first_that_ends(
    clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lanes, "MAX_AT_ONCE", 1)
    monkeypatch.setattr(lanes, "MAX_WAIT_S", 60.0)
    arrived: list[Any] = []
    held = Held()
    monkeypatch.setattr(lanes.Lanes, "gather", noting(arrived, lanes.Lanes.gather))
    with ScriptedServer(held, counts(1, 2)) as server, ThreadPoolExecutor(3) as threads:
        client = clients(server.target, encoding="e")
        first = threads.submit(client.count, "text")
        held.arrived.wait()
        others = [threads.submit(client.count, "text") for _ in range(2)]
        while len(arrived) < 2:
            threading.Event().wait(0.001)
        held.over.set()
        assert first.result() == 7
        assert sorted(other.result() for other in others) == [1, 2]
    assert server.calls == [SINGLE, BATCH]


def noting(seen: list[Any], method: Callable[..., Any]) -> Callable[..., Any]:
    def note(*arguments: Any) -> Any:
        result = method(*arguments)
        seen.append(arguments)
        return result

    return note


def test_nobody_waits_long_for_what_is_under_way(
    clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lanes, "MAX_AT_ONCE", 1)
    held = Held()
    with ScriptedServer(held, ok) as server, ThreadPoolExecutor(1) as threads:
        client = clients(server.target, encoding="e")
        first = threads.submit(client.count, "text")
        held.arrived.wait()
        assert client.count("text") == 7
        assert not first.done()
        held.over.set()
        first.result()


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
            return client.count("text", timeout=0.2)
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
    assert late[4] == f"no answer from {server.target} within 0.2 s"
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
        late = together(client, *[lambda c: c.count("text", timeout=1)] * 2)
        assert [each[0] for each in late] == [DeadlineExceeded] * 2
        held.over.wait()


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


def test_it_can_be_turned_off(clients: Clients, gather: Callable[[int], None]) -> None:
    gather(2)
    with ScriptedServer() as server:
        client = clients(server.target, encoding="e", coalesce=False)
        assert together(client, *[count] * 8) == [7] * 8
    assert server.calls == [SINGLE] * 8


def test_many_at_once_by_the_real_decisions(serve: Serve, clients: Clients) -> None:
    server = serve()
    client = clients(server.target, encoding="cl100k_base")
    texts = [" word" * (index % 50) for index in range(600)]
    with ThreadPoolExecutor(64) as threads:
        assert list(threads.map(client.count, texts)) == [index % 50 for index in range(600)]
        encoded = list(threads.map(client.encode, texts))
        assert list(threads.map(client.decode, encoded)) == texts
    assert not client._coalescer._lanes._lanes
