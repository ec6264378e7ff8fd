"""A value that is computed on first use holds no lock meanwhile: a process that another thread
forks would find it locked for ever."""

from __future__ import annotations

import threading
from collections.abc import Callable, ItemsView, Iterable
from dataclasses import fields
from typing import Any

import bytepair_engine.tiktoken as ours
import pytest
from bytepair_engine import Encoding
from bytepair_engine.chat.format import Chat, ChatFormat
from bytepair_engine.chat.layout import Layout
from bytepair_engine.pipeline.definition import Merges, Model
from bytepair_engine.pipeline.derivation import Derivations
from bytepair_engine.toy import toy


class Stop:
    """Stops the first thread that comes by."""

    def __init__(self) -> None:
        self.reached, self.released = threading.Event(), threading.Event()

    def pass_by(self) -> None:
        if not self.reached.is_set():
            self.reached.set()
            assert self.released.wait(60)


def ranks(stop: Stop) -> Callable[[], Any]:
    class Slow(Encoding):
        def token_byte_values(self) -> list[bytes]:
            stop.pass_by()
            return super().token_byte_values()

    slow = Slow(*(getattr(toy(), each.name) for each in fields(Encoding) if each.init))
    encoding = ours.Encoding.of("slow", slow)
    return lambda: encoding._mergeable_ranks


def derivation(stop: Stop) -> Callable[[], Any]:
    class Slow(dict[bytes, int]):
        def items(self) -> ItemsView[bytes, int]:  # type: ignore[override]
            stop.pass_by()
            return super().items()

    rule = Merges.listed([0], [1], [2])
    tokens = Slow({b"a": 0, b"b": 1, b"ab": 2})
    derivations = Derivations(Model(tokens=tokens, rule=rule, units="bytes"))
    return lambda: derivations.of(b"ab")


def fingerprint(stop: Stop) -> Callable[[], Any]:
    class Slow(ChatFormat):
        name, source = "slow", "test"

        def render(self, chat: Chat) -> Layout:
            raise NotImplementedError

        def identity(self) -> Iterable[str]:
            stop.pass_by()
            return super().identity()

    slow = Slow()
    return lambda: slow.fingerprint


@pytest.mark.parametrize("value", [ranks, derivation, fingerprint])
def test_a_second_thread_does_not_wait_for_the_first(
    value: Callable[[Stop], Callable[[], Any]],
) -> None:
    stop, results = Stop(), list[Any]()
    compute = value(stop)
    threads = [threading.Thread(target=lambda: results.append(compute())) for _ in range(2)]
    try:
        threads[0].start()
        assert stop.reached.wait(60)
        threads[1].start()
        threads[1].join(10)
        assert len(results) == 1
    finally:
        stop.released.set()
        for thread in threads:
            thread.join()
    assert results == [compute()] * 2
