"""Where requests are computed, and in which order."""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Awaitable, Callable, Coroutine
from itertools import pairwise
from time import thread_time
from typing import Any, TypeVar

import pytest
from bytepair_server.admission.executor import AFTER_SLOW, MIDDLE_MAX_BYTES, SLOW_SECONDS, Work
from bytepair_server.rpc.call import ANONYMOUS, Call
from support.calls import call_of

T = TypeVar("T")

INLINE, MIDDLE, LARGE = 1_000, 50_000, MIDDLE_MAX_BYTES + 1


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads that give way to all others are waited for longer than a server that stops does."""
    monkeypatch.setattr("bytepair_server.admission.executor.CLOSE_SECONDS", 10.0)


def with_work(threads: int, use: Callable[[Work], Coroutine[Any, Any, T]]) -> T:
    work = Work(threads, INLINE)
    try:
        return asyncio.run(use(work))
    finally:
        assert work.close()


def on_loop() -> bool:
    return threading.current_thread() is threading.main_thread()


def hold() -> None:
    """Compute for longer than the loop should."""
    until = thread_time() + 2 * SLOW_SECONDS
    while thread_time() < until:
        pass


def test_one_thread_is_for_what_is_large_alone() -> None:
    async def use(work: Work) -> list[bool]:
        sizes = (INLINE + 1, MIDDLE, MIDDLE_MAX_BYTES, LARGE)
        return [await work.in_turn(call_of(""), size, on_loop) for size in sizes]

    assert with_work(1, use) == [True, True, True, False]


def test_threads_with_cores_to_themselves_compute_all_that_is_not_small() -> None:
    async def use(work: Work) -> list[bool]:
        return [
            await work.in_turn(call_of(""), size, on_loop) for size in (INLINE + 1, MIDDLE, LARGE)
        ]

    assert with_work(2, use) == [False, False, False]


def test_the_loop_computes_nothing_where_an_encoding_is_slow() -> None:
    async def use(work: Work) -> bool:
        work.always_on_threads()
        assert not work.is_inline(0)
        return await work.in_turn(call_of(""), MIDDLE, on_loop)

    assert with_work(1, use) is False


def test_one_of_them_in_each_round_of_the_loop() -> None:
    async def use(work: Work) -> list[object]:
        order: list[object] = []
        loop = asyncio.get_running_loop()

        def round_of_the_loop() -> None:
            order.append("round")
            if len(order) < 12:
                loop.call_soon(round_of_the_loop)

        jobs = [work.in_turn(call_of(""), MIDDLE, order.append, number) for number in range(4)]
        loop.call_soon(round_of_the_loop)
        await asyncio.gather(*jobs)
        return order

    order = with_work(1, use)
    places = [order.index(number) for number in range(4)]
    assert places == sorted(places)
    assert all(after - before > 1 for before, after in pairwise(places))


@pytest.mark.parametrize(
    ("many", "one"),
    [
        (call_of("many"), call_of("one")),
        (call_of(ANONYMOUS, "many"), call_of(ANONYMOUS, "one")),
    ],
    ids=["callers", "connections"],
)
def test_flows_take_turns_on_the_loop(many: Call, one: Call) -> None:
    async def use(work: Work) -> list[str]:
        order: list[str] = []
        jobs = [work.in_turn(many, MIDDLE, order.append, f"many{i}") for i in range(4)]
        jobs.append(work.in_turn(one, MIDDLE, order.append, "one"))
        await asyncio.gather(*jobs)
        return order

    assert with_work(1, use).index("one") <= 1


def test_who_sends_all_sizes_has_no_more_than_who_sends_one() -> None:
    sizes = [LARGE << (2 * power) for power in range(4)]
    taken: list[tuple[str, int]] = []

    async def run(work: Work) -> None:
        hold = threading.Event()
        first = asyncio.ensure_future(work.on_thread(call_of("first"), LARGE, hold.wait))
        calls = [("one", LARGE)] * 400
        calls += [("all", size) for size in sizes for _ in range(400 * LARGE // size)]
        rest = [
            asyncio.ensure_future(
                work.on_thread(call_of(caller), size, taken.append, (caller, size))
            )
            for caller, size in calls
        ]
        while work.queued < len(calls):
            await asyncio.sleep(0)
        hold.set()
        await asyncio.gather(first, *rest)

    with_work(1, run)
    bytes_of = dict.fromkeys(("one", "all"), 0)
    for caller, size in taken:
        bytes_of[caller] += size
        if bytes_of["one"] == 200 * LARGE:
            break
    assert 0.8 < bytes_of["one"] / bytes_of["all"] < 1.25


def test_what_is_large_takes_its_turn_and_what_comes_after_it_waits() -> None:
    """Or texts that the loop computes, which goes first, would keep a large one waiting."""

    async def use(work: Work) -> list[str]:
        order: list[str] = []
        begun, gone_on = threading.Event(), threading.Event()

        def large() -> None:
            begun.set()
            gone_on.wait(10)
            order.append("large")

        running = asyncio.ensure_future(work.in_turn(call_of(""), LARGE, large))
        while not begun.is_set():
            await asyncio.sleep(0)
        after = [
            asyncio.ensure_future(work.in_turn(call_of(""), MIDDLE, order.append, "after"))
            for _ in range(3)
        ]
        await asyncio.sleep(0.05)
        assert order == []
        assert work.queued == 3
        gone_on.set()
        await asyncio.gather(running, *after)
        assert await work.in_turn(call_of(""), MIDDLE, on_loop)
        return order

    assert with_work(1, use) == ["large", "after", "after", "after"]


def test_what_is_large_does_not_come_to_the_loop_by_overtaking_what_was_meant_for_it() -> None:
    async def use(work: Work) -> bool:
        large: list[asyncio.Future[bool]] = []

        def overtake() -> None:
            large.append(asyncio.ensure_future(work.in_turn(call_of("one"), LARGE, on_loop)))

        await asyncio.gather(*(work.in_turn(call_of("many"), MIDDLE, overtake) for _ in range(2)))
        return any([await each for each in large])

    assert with_work(1, use) is False


def test_what_is_for_the_loop_goes_on_where_what_came_before_it_is_given_up() -> None:
    async def use(work: Work) -> bool:
        with work._changed:  # no thread takes the first meanwhile
            large = asyncio.ensure_future(work.in_turn(call_of(""), LARGE, on_loop))
            await asyncio.sleep(0)
            middle = asyncio.ensure_future(work.in_turn(call_of(""), MIDDLE, on_loop))
            await asyncio.sleep(0)
            large.cancel()
            await asyncio.wait([large])
        return await asyncio.wait_for(middle, 10)

    assert with_work(1, use)


def test_who_held_the_loop_for_long_goes_to_a_thread_for_a_while_and_nobody_else() -> None:
    async def use(work: Work) -> tuple[list[bool], bool]:
        await work.in_turn(call_of("slow"), MIDDLE, hold)
        others = await work.in_turn(call_of("other"), MIDDLE, on_loop)
        mine = [await work.in_turn(call_of("slow"), MIDDLE, on_loop) for _ in range(AFTER_SLOW + 2)]
        return mine, others

    mine, others = with_work(1, use)
    assert others
    assert mine == [False] * AFTER_SLOW + [True, True]


@pytest.mark.parametrize("size", [MIDDLE, LARGE])
def test_what_is_given_up_is_never_called_and_holds_nobody_up(size: int) -> None:
    async def use(work: Work) -> list[str]:
        order: list[str] = []
        gone_on = threading.Event()
        first = asyncio.ensure_future(work.in_turn(call_of(""), LARGE, gone_on.wait, 10))
        await asyncio.sleep(0)
        given_up = [
            asyncio.ensure_future(work.in_turn(call_of(""), size, order.append, "given up"))
            for _ in range(3)
        ]
        last = asyncio.ensure_future(work.in_turn(call_of(""), MIDDLE, order.append, "last"))
        await asyncio.sleep(0)
        assert work.queued >= 4
        for each in given_up:
            each.cancel()
        await asyncio.wait(given_up)  # or a thread may take one first
        gone_on.set()
        await asyncio.gather(first, last)
        assert work.queued == 0
        return order

    assert with_work(1, use) == ["last"]


def test_what_is_given_up_is_forgotten_while_others_run() -> None:
    """And not only when its turn would have come."""

    class Given(Call):
        """A call that can be referred to weakly."""

    async def use(work: Work) -> int:
        gone_on = threading.Event()
        first = asyncio.ensure_future(work.in_turn(call_of(""), LARGE, gone_on.wait, 10))
        await asyncio.sleep(0)
        second = asyncio.ensure_future(work.in_turn(call_of(""), MIDDLE, on_loop))
        calls = weakref.WeakSet[Given]()
        for _ in range(1_000):
            calls.add(call := Given())
            given_up = asyncio.ensure_future(work.in_turn(call, LARGE, on_loop))
            await asyncio.sleep(0)
            given_up.cancel()
            await asyncio.wait([given_up])
        del call, given_up
        remembered = len(calls)
        gone_on.set()
        await asyncio.gather(first, second)
        return remembered

    assert with_work(1, use) < 100


@pytest.mark.parametrize("size", [MIDDLE, LARGE])
def test_what_a_function_raises_is_raised_where_it_is_awaited(size: int) -> None:
    def fail(error: BaseException) -> None:
        raise error

    async def use(work: Work) -> None:
        with pytest.raises(ValueError, match="as it is"):
            await work.in_turn(call_of(""), size, fail, ValueError("as it is"))
        with pytest.raises(RuntimeError, match="no future"):
            await work.in_turn(call_of(""), size, fail, StopIteration("no future"))
        assert await work.in_turn(call_of(""), size, int, "7") == 7

    with_work(1, use)


def test_what_is_for_a_thread_waits_until_one_can_be_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As where a container has as many as it may."""
    start, refused = threading.Thread.start, 3

    def started(thread: threading.Thread) -> None:
        nonlocal refused
        if refused:
            refused -= 1
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr("threading.Thread.start", started)

    async def run(work: Work) -> list[bool]:
        return await asyncio.gather(
            *(work.on_thread(call_of("one"), LARGE, on_loop) for _ in range(2))
        )

    assert with_work(1, run) == [False, False]
    assert not refused


def test_nothing_is_begun_once_it_is_closed() -> None:
    order: list[str] = []

    async def use() -> None:
        work = Work(1, INLINE)
        waiting: Awaitable[None] = asyncio.ensure_future(
            work.in_turn(call_of(""), MIDDLE, order.append, "begun")
        )
        await asyncio.sleep(0)
        assert work.queued == 1
        assert work.close()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(waiting, 0.05)

    asyncio.run(use())
    assert order == []
