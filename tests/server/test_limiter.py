"""The limits on calls in flight, and the order in which queued calls are admitted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from bytepair_server.admission.limiter import Limiter, Slot
from bytepair_server.call import ANONYMOUS, Call
from bytepair_server.config.settings import Settings
from bytepair_server.errors import Draining, Overloaded

#: Longer than any test takes.
LONG = 60.0

Scene = Callable[[], Coroutine[Any, Any, None]]


def limiter_of(**settings: Any) -> Limiter:
    usual = {
        "max_in_flight": 1,
        "max_in_flight_bytes": 1 << 20,
        "max_queued": 8,
        "max_queue_seconds": LONG,
        "max_open_streams": 8,
        "max_streams_bytes": 8,
    }
    limiter = Limiter(Settings.model_construct(None, **(usual | settings)))
    limiter.open()
    return limiter


def call_of(caller: str, connection: str = "") -> Call:
    call = Call(connection)
    call.caller = caller
    return call


def admitted(
    limiter: Limiter, caller: str, size: int = 1, time_remaining: float | None = None
) -> asyncio.Task[Slot]:
    return asyncio.ensure_future(limiter.admit(call_of(caller), size, time_remaining))


def run(scene: Scene) -> None:
    asyncio.run(asyncio.wait_for(scene(), LONG))


async def queued(limiter: Limiter, number: int) -> None:
    while limiter.queued != number:
        await asyncio.sleep(0)


def test_slots_are_limited_and_a_released_slot_goes_to_the_next_call() -> None:
    async def scene() -> None:
        limiter = limiter_of(max_in_flight=2)
        slots = [await admitted(limiter, "a") for _ in range(2)]
        waiting = admitted(limiter, "a")
        await queued(limiter, 1)
        assert not waiting.done()
        slots.pop().close()
        slots.append(await waiting)
        assert (limiter.in_flight, limiter.queued) == (2, 0)
        for slot in slots:
            slot.close()
        assert limiter.in_flight == 0

    run(scene)


def test_bytes_are_bounded_inclusively_and_a_single_call_is_always_admitted() -> None:
    async def scene() -> None:
        limiter = limiter_of(max_in_flight=9, max_in_flight_bytes=8)
        large = await admitted(limiter, "a", 9)
        small = admitted(limiter, "b", 1)
        await queued(limiter, 1)
        large.close()
        first = await small
        second = await admitted(limiter, "a", 7)
        third = admitted(limiter, "a", 1)
        await queued(limiter, 1)
        first.close()
        (await third).close()
        second.close()

    run(scene)


def test_a_message_larger_than_announced_counts_in_full() -> None:
    async def scene() -> None:
        async def message() -> bytes:
            return bytes(8)

        limiter = limiter_of(max_in_flight=9, max_in_flight_bytes=8)
        slot = await admitted(limiter, "a", 2)
        assert await slot.read(message()) == bytes(8)
        other = admitted(limiter, "a", 1)
        await queued(limiter, 1)
        slot.close()
        (await other).close()
        assert limiter.held_bytes == 0

    run(scene)


def test_a_message_smaller_than_announced_makes_room_for_a_queued_call() -> None:
    async def scene() -> None:
        async def message() -> bytes:
            return bytes(2)

        limiter = limiter_of(max_in_flight=9, max_in_flight_bytes=8)
        slot = await admitted(limiter, "a", 8)
        other = admitted(limiter, "b", 6)
        await queued(limiter, 1)
        await slot.read(message())
        (await other).close()
        slot.close()
        assert limiter.held_bytes == 0

    run(scene)


@pytest.mark.parametrize(
    ("many", "one"),
    [
        (call_of("many"), call_of("one")),
        (call_of(ANONYMOUS, "many"), call_of(ANONYMOUS, "one")),
    ],
    ids=["callers", "connections"],
)
def test_callers_take_turns(many: Call, one: Call) -> None:
    async def scene() -> None:
        limiter, order = limiter_of(), list[Call]()

        async def come(call: Call) -> None:
            slot = await limiter.admit(call, 1, None)
            order.append(call)
            slot.close()

        first = await admitted(limiter, "first")
        tasks = [asyncio.ensure_future(come(call)) for call in (many, many, many, one)]
        await queued(limiter, 4)
        first.close()
        await asyncio.gather(*tasks)
        assert order.index(one) == 1

    run(scene)


def test_a_full_queue_rejects_the_newest_of_the_busiest_caller() -> None:
    async def scene() -> None:
        limiter = limiter_of(max_queued=3)
        slot = await admitted(limiter, "first")
        busy = [admitted(limiter, "busy") for _ in range(3)]
        await queued(limiter, 3)
        with pytest.raises(Overloaded, match="max_queued"):
            await admitted(limiter, "busy")
        other = admitted(limiter, "other")
        await asyncio.sleep(0)
        with pytest.raises(Overloaded, match="max_queued"):
            await busy.pop()
        slot.close()
        for task in asyncio.as_completed((*busy, other)):
            (await task).close()
        assert limiter.in_flight == limiter.queued == 0

    run(scene)


def test_a_call_is_queued_for_the_maximum_time_at_most() -> None:
    async def scene() -> None:
        slot = await admitted(limiter := limiter_of(max_queue_seconds=0.01), "a")
        with pytest.raises(Overloaded, match="max_in_flight"):
            await admitted(limiter, "a")
        slot.close()
        slot = await admitted(limiter := limiter_of(), "a")
        with pytest.raises(Overloaded):
            await admitted(limiter, "a", time_remaining=0.02)
        assert limiter.queued == 0
        slot.close()
        limiter = limiter_of(max_queue_seconds=0)
        slot = await admitted(limiter, "a")
        with pytest.raises(Overloaded):
            await admitted(limiter, "a")
        slot.close()

    run(scene)


def test_cancelled_calls_leave_the_queue_and_leak_no_slot() -> None:
    async def scene() -> None:
        limiter = limiter_of()
        slot = await admitted(limiter, "a")
        tasks = [admitted(limiter, "a") for _ in range(3)]
        await queued(limiter, 3)
        tasks[0].cancel()
        await queued(limiter, 2)
        slot.close()  # grants the slot to a cancelled call that does not know it yet
        tasks[1].cancel()
        (await tasks[2]).close()
        await asyncio.wait(tasks)
        assert limiter.in_flight == limiter.queued == 0

    run(scene)


def test_a_call_that_leaves_the_queue_admits_a_smaller_one_behind_it() -> None:
    async def scene() -> None:
        limiter = limiter_of(max_in_flight=9, max_in_flight_bytes=8)
        slot = await admitted(limiter, "a", 4)
        large = admitted(limiter, "b", 8)
        await queued(limiter, 1)
        small = admitted(limiter, "c", 4)
        await queued(limiter, 2)
        large.cancel()
        (await small).close()
        slot.close()

    run(scene)


def test_a_queued_call_cancelled_while_it_gets_a_slot_leaks_no_slot() -> None:
    async def scene() -> None:
        limiter = limiter_of()
        slot = await admitted(limiter, "a")
        gone, waiting = admitted(limiter, "b"), admitted(limiter, "c")
        await queued(limiter, 2)
        gone.cancel()  # its task has not run yet
        slot.close()
        (await waiting).close()
        with pytest.raises(asyncio.CancelledError):
            await gone
        assert (limiter.in_flight, limiter.queued) == (0, 0)
        (await admitted(limiter, "d", 1 << 20)).close()  # and no bytes

    run(scene)


def test_a_slow_message_is_rejected_only_if_other_calls_are_queued(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bytepair_server.admission.limiter.SLOW_MESSAGE_SECONDS", 0.02)

    async def scene() -> None:
        limiter, never = limiter_of(), asyncio.Event()

        async def slow() -> None:
            slot = await limiter.admit(call_of("slow"), 1, None)
            try:
                await slot.read(never_read())
            finally:
                slot.close()

        async def never_read() -> bytes:
            await never.wait()
            raise AssertionError("it never comes")

        reading = asyncio.ensure_future(slow())
        await asyncio.sleep(0.1)
        assert not reading.done()
        other = admitted(limiter, "other")
        with pytest.raises(Overloaded, match="arrive slowly"):
            await reading
        (await other).close()
        # Also a message that begins while other calls are queued.
        slot = await admitted(limiter, "first")
        second, third = asyncio.ensure_future(slow()), admitted(limiter, "third")
        await queued(limiter, 2)
        slot.close()
        with pytest.raises(Overloaded, match="arrive slowly"):
            await second
        (await third).close()

    run(scene)


def hold(limiter: Limiter) -> None:
    limiter.add_stream_bytes(1)
    limiter.check_stream_bytes()


Step = Callable[[Limiter], None]
BOUNDS: dict[str, tuple[Step, Step]] = {
    "open streams": (Limiter.enter_stream, Limiter.leave_stream),
    "bytes held by streams": (hold, lambda limiter: limiter.add_stream_bytes(-1)),
}


@pytest.mark.parametrize("bound", BOUNDS)
def test_the_stream_limit_is_inclusive_and_a_closed_stream_frees_its_slot(bound: str) -> None:
    limiter = limiter_of()
    come, go = BOUNDS[bound]
    for _ in range(8):
        come(limiter)
    with pytest.raises(Overloaded, match=bound):
        come(limiter)
    if come is hold:
        go(limiter)  # an open stream counts even before it is polled
    go(limiter)
    come(limiter)
    with pytest.raises(Overloaded):
        come(limiter)


def test_a_drain_rejects_new_and_queued_calls_and_waits_for_running_ones() -> None:
    async def scene() -> None:
        limiter = limiter_of()
        slot = await admitted(limiter, "a")
        waiting = admitted(limiter, "a")
        await queued(limiter, 1)
        draining = asyncio.ensure_future(limiter.drain(LONG, LONG))
        with pytest.raises(Draining):
            await waiting
        with pytest.raises(Draining):
            await admitted(limiter, "a")
        with pytest.raises(Draining):
            limiter.enter_stream()
        assert not draining.done()
        slot.close()
        assert await draining == (0, 0)

    run(scene)


def test_calls_and_streams_have_separate_grace_times() -> None:
    async def scene() -> None:
        limiter = limiter_of()
        ended: list[str] = []
        finish = asyncio.Event()

        async def call() -> None:
            slot = await limiter.admit(call_of("a"), 1, None)
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(f"call {limiter.is_cutting_off}")
                slot.close()

        async def stream() -> None:
            limiter.enter_stream()
            task = limiter.track(is_stream=True)
            try:
                await finish.wait()
            finally:
                ended.append(f"stream {limiter.is_cutting_off}")
                limiter.untrack(task)
                limiter.leave_stream()

        running = [asyncio.ensure_future(call()), asyncio.ensure_future(stream())]
        await asyncio.sleep(0)
        draining = asyncio.ensure_future(limiter.drain(0, LONG))
        await asyncio.wait(running[:1])
        assert ended == ["call True"]
        assert not draining.done()
        finish.set()
        assert await draining == (1, 0)
        assert ended == ["call True", "stream False"]

    run(scene)


def test_a_drain_cancels_calls_that_exceed_the_grace_time() -> None:
    async def scene() -> None:
        limiter = limiter_of()

        async def call() -> None:
            slot = await limiter.admit(call_of("a"), 1, None)
            try:
                await asyncio.Event().wait()
            finally:
                assert limiter.is_cutting_off
                slot.close()

        running = asyncio.ensure_future(call())
        await asyncio.sleep(0)
        draining = asyncio.ensure_future(limiter.drain(LONG, LONG))
        await asyncio.sleep(0)
        limiter.end_grace()
        assert await draining == (1, 0)
        assert running.cancelled()
        assert limiter.in_flight == 0

    run(scene)
