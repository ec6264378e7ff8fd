"""Counts that were asked for before are given again, and to the very same question alone."""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from os import urandom

import grpc
import pytest
from bytepair.v1 import tokenizer_pb2
from bytepair_client import (
    ClientClosed,
    FingerprintMismatch,
    InvalidOption,
    SpecialTokenInText,
    TokenizerClient,
    special,
)
from bytepair_client.count_cache import CountCache
from support.clients import Clients
from support.scripted import ScriptedServer, details, fail, ok
from support.serving import RunningServer

MIB = 1 << 20
FINGERPRINT = "sha256:a"
MISMATCH = fail(
    grpc.StatusCode.FAILED_PRECONDITION,
    details=details("FINGERPRINT_MISMATCH", grpc.StatusCode.FAILED_PRECONDITION, {}),
)


def remembering(clients: Clients, target: str, **options: object) -> TokenizerClient:
    given = {"encoding": "e", "expected_fingerprint": FINGERPRINT, "count_cache_bytes": MIB}
    return clients(target, **(given | options))


def test_the_same_question_is_asked_once(clients: Clients) -> None:
    with ScriptedServer() as server:
        client = remembering(clients, server.target)
        answers = [client.count("a") for _ in range(3)]
        answers += [client.full.count("a", timeout=3).count, client.count(["a"]), client.count("a")]
    assert answers == [7] * 6
    # A segment may mean another thing than the text alone, where a text has a frame.
    assert len(server.calls) == 2


@pytest.mark.parametrize(
    "other",
    [
        lambda c: c.count("b"),
        lambda c: c.count("a", limit=0),
        lambda c: c.count("a", limit=7),
        lambda c: c.count("a", encoding="f", expected_fingerprint=FINGERPRINT),
        lambda c: c.count("a", expected_fingerprint="sha256:b"),
        lambda c: c.count("a", allowed_special={"<|x|>"}),
        lambda c: c.count("a", allowed_special="all"),
        lambda c: c.count("a", disallowed_special="all"),
        lambda c: c.count("a", add_special_tokens=True),
        lambda c: c.count([special("a")]),
    ],
)
def test_whatever_may_change_the_answer_is_another_question(
    clients: Clients, other: Callable[[TokenizerClient], int]
) -> None:
    with ScriptedServer() as server:
        client = remembering(clients, server.target)
        client.count("a")
        assert other(client) == 7
        assert len(server.calls) == 2
        assert other(client) == 7
        assert len(server.calls) == 2


@pytest.mark.parametrize(
    "options", [{"count_cache_bytes": 0}, {"expected_fingerprint": None}, {"count_cache_bytes": 9}]
)
def test_nothing_is_remembered_unless_it_may_be(
    clients: Clients, options: dict[str, object]
) -> None:
    """Not by default, not without a fingerprint, and not more than there is room for."""
    with ScriptedServer() as server:
        client = remembering(clients, server.target, **options)
        client.count("a")
        client.count("a")
    assert len(server.calls) == 2


def test_the_fingerprint_of_the_client_is_that_of_its_own_encoding(clients: Clients) -> None:
    with ScriptedServer() as server:
        client = remembering(clients, server.target)
        client.count("a", encoding="f")
        client.count("a", encoding="f")
    assert len(server.calls) == 2


def test_errors_are_not_remembered(clients: Clients) -> None:
    with ScriptedServer(MISMATCH, MISMATCH, ok) as server:
        client = remembering(clients, server.target)
        for _ in range(2):
            with pytest.raises(FingerprintMismatch):
                client.count("a")
        assert client.count("a") == 7
    assert len(server.calls) == 3


def test_an_answer_that_was_changed_is_not_given_again(clients: Clients) -> None:
    with ScriptedServer() as server:
        client = remembering(clients, server.target)
        client.full.count("a").count = 8
        client.full.count("a").count = 9
        assert client.count("a") == 7


def test_a_closed_client_answers_nothing(clients: Clients) -> None:
    with ScriptedServer() as server:
        client = remembering(clients, server.target)
        client.count("a")
        client.close()
        with pytest.raises(ClientClosed):
            client.count("a")


def test_room_is_given_in_bytes(clients: Clients) -> None:
    with pytest.raises(InvalidOption, match=r"^count_cache_bytes: "):
        clients("localhost:1", count_cache_bytes=-1)


def test_real_answers_are_the_same_again(clients: Clients, server: RunningServer) -> None:
    plain = clients(server.target, encoding="cl100k_base")
    fingerprint = plain.get_encoding("cl100k_base").fingerprint
    client = clients(
        server.target,
        encoding="cl100k_base",
        expected_fingerprint=fingerprint,
        count_cache_bytes=MIB,
        max_unary_bytes=1000,
    )
    for text in ("", "a <|endoftext|>", "naïve 🙂 " * 500):  # the last one is streamed
        for limit in (None, 0, 3):
            expected = plain.full.count(text, limit=limit)
            assert [client.full.count(text, limit=limit) for _ in range(2)] == [expected] * 2
    for _ in range(2):
        with pytest.raises(SpecialTokenInText):
            client.count("a <|endoftext|>", disallowed_special="all")


def test_memory_is_bounded_and_the_oldest_go_first() -> None:
    cache = CountCache(MIB)
    answer = tokenizer_pb2.CountResponse(count=7, encoding="o200k_base", fingerprint="f" * 71)
    used, first = urandom(32), urandom(32)
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    cache.put(used, answer)
    cache.put(first, answer)
    for _ in range(20_000):
        cache.put(urandom(32), answer)
        assert cache.get(used) == answer
    taken = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert cache.get(first) is None
    assert MIB / 2 < taken < MIB


def test_threads_share_it() -> None:
    cache = CountCache(20_000)
    keys = [bytes([number]) * 32 for number in range(100)]

    def work(start: int) -> bool:
        right = True
        for number in range(2_000):
            index = (start + number) % len(keys)
            answer = cache.get(keys[index])
            right = right and (answer is None or answer.count == index)
            cache.put(keys[index], tokenizer_pb2.CountResponse(count=index))
        return right

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(4) as threads:
            assert all(threads.map(work, range(0, 100, 25)))
    finally:
        sys.setswitchinterval(interval)
