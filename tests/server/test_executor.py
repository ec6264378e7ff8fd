"""Where and in which order requests are computed, and cancellation of requests."""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Callable, Coroutine
from time import thread_time
from typing import Any, TypeVar
from unittest.mock import patch

import pytest
from bytepair_engine import Cancelled, cancel, get_encoding
from bytepair_server.admission.executor import (
    MAX_PAUSED,
    MAX_REMEMBERED,
    TIME_SLICE_SECONDS,
    UNTRIED_SECONDS,
    Executor,
)

T = TypeVar("T")

INLINE, LARGE = 1_000, 50_000
#: Longer than any test takes.
LONG = 60.0


def closed(executor: Executor) -> bool:
    """Close it, with time for its threads, whose priority is low, to end on a busy machine."""
    with patch("bytepair_server.admission.executor.CLOSE_SECONDS", LONG):
        return executor.close()


def with_executor(threads: int, use: Callable[[Executor], Coroutine[Any, Any, T]]) -> T:
    async def started() -> T:
        executor = Executor(threads, INLINE)
        executor.start()
        try:
            return await use(executor)
        finally:
            assert closed(executor)

    return asyncio.run(asyncio.wait_for(started(), LONG))


def on_loop() -> bool:
    return threading.current_thread() is threading.main_thread()


class Blocked:
    """A function that blocks until it is released."""

    def __init__(self, executor: Executor, caller: str = "first") -> None:
        self._gone_on = threading.Event()
        self.begun = threading.Event()
        self.task = asyncio.ensure_future(executor.run(caller, LARGE, self._wait))

    def _wait(self) -> None:
        self.begun.set()
        assert self._gone_on.wait(LONG)

    async def runs(self) -> None:
        while not self.begun.is_set():
            await asyncio.sleep(0)

    async def go_on(self) -> None:
        self._gone_on.set()
        await self.task


def test_small_requests_stay_on_the_loop_unless_an_encoding_is_slow() -> None:
    async def use(executor: Executor) -> bool:
        assert executor.inline_max_bytes == INLINE
        executor.always_on_threads()
        assert executor.inline_max_bytes < 0
        return await executor.run("a", 0, on_loop)

    assert with_executor(1, use) is False


def test_a_medium_request_is_tried_on_an_idle_event_loop() -> None:
    alone, several = Executor(1, INLINE), Executor(2, INLINE)
    medium = alone.tried_max_bytes
    assert medium > INLINE
    assert alone.may_try(medium, now=10.0)
    assert not alone.may_try(medium + 1, now=10.0)
    assert not several.may_try(medium, now=10.0)
    alone.last_small = 10.0
    assert not alone.may_try(medium, now=10.0)
    alone.always_on_threads()
    assert not alone.may_try(0, now=20.0)


def test_a_caller_is_not_tried_again_soon_after_a_long_try() -> None:
    executor = Executor(1, INLINE)
    assert executor.may_try_costly("a", now=1.0)
    executor.remember_long_try("a", now=1.0)
    assert not executor.may_try_costly("a", now=1.0 + UNTRIED_SECONDS / 2)
    assert executor.may_try_costly("b", now=1.0)
    assert executor.may_try_costly("a", now=1.0 + 2 * UNTRIED_SECONDS)
    for number in range(MAX_REMEMBERED):
        executor.remember_long_try(f"other {number}", now=1.0)
    assert executor.may_try_costly("a", now=1.0)


@pytest.mark.parametrize("threads", [1, 3])
def test_each_thread_runs_a_function_at_the_same_time(threads: int) -> None:
    async def use(executor: Executor) -> None:
        together = threading.Barrier(threads)
        await asyncio.gather(
            *(executor.run("a", LARGE, together.wait, LONG) for _ in range(threads))
        )

    with_executor(threads, use)


def test_callers_take_turns_by_bytes() -> None:
    async def use(executor: Executor) -> list[str]:
        held, order = Blocked(executor), list[str]()
        await held.runs()
        jobs = [
            asyncio.ensure_future(executor.run(caller, size, order.append, caller))
            for caller, size in [("many", LARGE)] * 4 + [("small", LARGE // 4)] * 4
        ]
        while executor.queued < len(jobs) - 1:  # one is handed to the threads in advance
            await asyncio.sleep(0)
        await held.go_on()
        await asyncio.gather(*jobs)
        return order

    order = with_executor(1, use)
    assert sorted(order) == ["many"] * 4 + ["small"] * 4
    assert order.index("small") <= 2
    assert order[6:] == ["many", "many"]


def test_a_cancelled_function_is_never_called_and_is_freed_at_once() -> None:
    class Request:
        """A large object that can be weakly referenced."""

    async def use(executor: Executor) -> tuple[list[object], int]:
        held, called = Blocked(executor), list[object]()
        await held.runs()
        requests = weakref.WeakSet[Request]()
        given_up = []
        for _ in range(100):
            requests.add(request := Request())
            given_up.append(asyncio.ensure_future(executor.run("a", 1, called.append, request)))
        del request
        last = asyncio.ensure_future(executor.run("a", 1, called.append, "last"))
        while executor.queued < 100:
            await asyncio.sleep(0)
        for each in given_up:
            each.cancel()
        await asyncio.wait(given_up)
        del each
        given_up.clear()
        remembered = len(requests)
        await held.go_on()
        await last
        assert executor.queued == 0
        return called, remembered

    called, remembered = with_executor(1, use)
    assert called == ["last"]
    assert remembered <= 1  # the one that was handed to the threads in advance


class Endless:
    """A function that checks for cancellation until `stopped` is set."""

    def __init__(self, executor: Executor, caller: str, size: int = LARGE) -> None:
        self.stopped, self.begun = threading.Event(), threading.Event()
        self.task = asyncio.ensure_future(executor.run(caller, size, self._run))
        self.seconds = 0.0  # of CPU time

    def _run(self) -> str:
        self.begun.set()
        began = thread_time()
        while not self.stopped.is_set():
            cancel.check()
        self.seconds = thread_time() - began
        return "stopped"

    async def begins(self) -> None:
        while not self.begun.is_set():
            await asyncio.sleep(0)


def test_long_work_takes_turns_with_the_work_of_others() -> None:
    async def use(executor: Executor) -> None:
        several = [Endless(executor, caller) for caller in "abc"]
        for each in several:
            await each.begins()  # one thread, yet all have begun
        assert await executor.run("d", LARGE, int, "7") == 7
        for each in several:
            each.stopped.set()
            assert await each.task == "stopped"
        assert executor.queued == 0

    with_executor(1, use)


def test_long_work_does_not_delay_the_next_of_its_caller() -> None:
    async def use(executor: Executor) -> None:
        long = Endless(executor, "a")
        await long.begins()
        assert await executor.run("a", 1, int, "7") == 7
        long.stopped.set()
        assert await long.task == "stopped"

    with_executor(1, use)


def test_turns_are_shared_by_time_and_not_by_the_size_of_requests() -> None:
    def work() -> int:
        began = thread_time()
        while thread_time() - began < 5 * TIME_SLICE_SECONDS:
            cancel.check()
        return 7

    async def use(executor: Executor) -> None:
        small = Endless(executor, "a", size=1)
        await small.begins()
        assert await executor.run("b", 1 << 30, work) == 7
        small.stopped.set()
        await small.task
        assert small.seconds < 10 * 5 * TIME_SLICE_SECONDS  # of which it needs one or two

    with_executor(1, use)


def test_paused_work_is_bounded_and_its_threads_end() -> None:
    async def use(executor: Executor) -> None:
        several = [Endless(executor, str(number)) for number in range(MAX_PAUSED + 1)]
        for each in several:
            await each.begins()
        late = Endless(executor, "late")
        await asyncio.sleep(3 * TIME_SLICE_SECONDS)
        assert not late.begun.is_set()
        assert executor.queued == MAX_PAUSED + 1
        for each in (*several, late):
            each.stopped.set()
        assert await asyncio.gather(*(each.task for each in (*several, late)))
        while computing() > 1:
            await asyncio.sleep(TIME_SLICE_SECONDS)

    def computing() -> int:
        return sum(each.name.startswith("compute_") for each in threading.enumerate())

    with_executor(1, use)


def test_work_that_waits_for_its_turn_can_be_cancelled() -> None:
    async def use(executor: Executor) -> None:
        waiting, other = Endless(executor, "a"), Endless(executor, "b")
        await other.begins()  # while the first waits
        waiting.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting.task
        other.stopped.set()
        assert await other.task == "stopped"
        left = Endless(executor, "a"), Endless(executor, "b")
        await left[1].begins()
        assert closed(executor)
        for each in left:
            with pytest.raises(Cancelled):
                await each.task

    with_executor(1, use)


def test_work_that_is_cancelled_at_the_end_of_its_slice_does_not_wait_for_the_loop() -> None:
    """A stop blocks the loop until the work has ended."""

    async def use(executor: Executor) -> None:
        held = Blocked(executor)
        await held.runs()
        following = asyncio.ensure_future(executor.run("b", LARGE, int, "7"))
        while not executor.queued:
            await asyncio.sleep(0)
        (job,) = executor._given
        job.cancel()
        thread = threading.Thread(target=executor._yield_thread, args=(job,), daemon=True)
        thread.start()
        thread.join(LONG / 6)
        assert not thread.is_alive()
        await held.go_on()
        assert await following == 7

    with_executor(1, use)


def test_without_another_thread_long_work_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    async def use(executor: Executor) -> None:
        def fail(thread: threading.Thread) -> None:
            raise RuntimeError("can't start new thread")

        monkeypatch.setattr("threading.Thread.start", fail)
        first, second = Endless(executor, "a"), Endless(executor, "b")
        await first.begins()
        await asyncio.sleep(3 * TIME_SLICE_SECONDS)
        assert not second.begun.is_set()
        for each in (first, second):
            each.stopped.set()
            assert await each.task == "stopped"

    with_executor(1, use)


def test_abandoned_work_is_cancelled() -> None:
    async def use(executor: Executor) -> BaseException:
        encoding, begun, errors = get_encoding("cl100k_base"), threading.Event(), []
        ended = threading.Event()

        def count() -> None:
            begun.set()
            try:
                while True:
                    encoding.count("hello world " * 100_000)
            except BaseException as error:
                errors.append(error)
            finally:
                ended.set()

        running = asyncio.ensure_future(executor.run("a", LARGE, count))
        while not begun.is_set():
            await asyncio.sleep(0)
        running.cancel()
        assert await asyncio.to_thread(ended.wait, LONG)
        return errors[0]

    assert isinstance(with_executor(1, use), Cancelled)


def test_closing_cancels_running_work_and_starts_no_more() -> None:
    async def use(executor: Executor) -> None:
        encoding, begun, late = get_encoding("cl100k_base"), threading.Event(), list[object]()

        def count() -> None:
            begun.set()
            while True:
                encoding.count("hello world " * 100_000)

        running = asyncio.ensure_future(executor.run("a", LARGE, count))
        while not begun.is_set():
            await asyncio.sleep(0)
        waiting = asyncio.ensure_future(executor.run("a", 1, late.append, None))
        while not executor.queued:
            await asyncio.sleep(0)
        executor.close()
        with pytest.raises(Cancelled):
            await running
        await asyncio.sleep(0)
        assert not late
        waiting.cancel()

    with_executor(1, use)


def test_closing_does_not_wait_for_work_that_cannot_be_cancelled() -> None:
    async def use(executor: Executor) -> None:
        held = Blocked(executor)
        await held.runs()
        assert not executor.close()
        await held.go_on()

    with_executor(1, use)


def test_an_exception_of_a_function_is_raised_to_the_awaiter() -> None:
    def fail(error: BaseException) -> None:
        raise error

    async def use(executor: Executor) -> None:
        with pytest.raises(ValueError, match="as it is"):
            await executor.run("a", LARGE, fail, ValueError("as it is"))
        with pytest.raises(RuntimeError, match="no future"):
            await executor.run("a", LARGE, fail, StopIteration("no future"))
        assert await executor.run("a", LARGE, int, "7") == 7

    with_executor(1, use)


def test_threads_that_cannot_be_started_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    start, left = threading.Thread.start, 1

    def started(thread: threading.Thread) -> None:
        nonlocal left
        if not left:
            raise RuntimeError("can't start new thread")
        left -= 1
        start(thread)

    monkeypatch.setattr("threading.Thread.start", started)
    executor = Executor(2, INLINE)
    with pytest.raises(RuntimeError, match="can't start"):
        executor.start()
    assert closed(executor)
