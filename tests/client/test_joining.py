"""Calls that come together are sent as one, and each caller cannot tell."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from bytepair_client import (
    lanes,
    special,
)
from conftest import Serve
from support.clients import Clients
from support.joining import BATCH, SINGLE, Act, count, counts, noting, outcome, together
from support.scripted import Held, ScriptedServer, ok
from support.serving import RunningServer, write_config

END = "<|endoftext|>"


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
