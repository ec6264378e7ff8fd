"""Calls that find no room wait before they are read: in which order, for how long, how many."""

from __future__ import annotations

import asyncio

import pytest
from bytepair_server.admission.queue import RETRY_SECONDS, Line
from bytepair_server.errors import Draining, Overloaded
from bytepair_server.rpc.call import ANONYMOUS
from support.places import LONG, Places, run


@pytest.mark.parametrize("all_are_one", [False, True])
def test_flows_take_turns_however_many_calls_one_has_there(all_are_one: bool) -> None:
    async def scene() -> None:
        places = Places()

        def come(name: str) -> asyncio.Task[None]:
            return places.call(ANONYMOUS, connection=name) if all_are_one else places.call(name)

        await come("a")
        calls = [come("a") for _ in range(3)]
        await places.waits(3)
        calls.append(come("b"))
        await places.waits(4)
        for _ in range(4):
            places.leave()
            await asyncio.sleep(0.001)
        await asyncio.gather(*calls)
        assert places.order == ["a", "a", "b", "a", "a"]

    run(scene)


def test_who_comes_later_does_not_overtake() -> None:
    async def scene() -> None:
        places = Places()
        await places.call("a")
        first = places.call("b")
        await places.waits(1)
        places.leave()  # b has the place, but has not run
        second = places.call("c")
        await first
        await places.waits(1)
        places.leave()
        await second
        assert places.order == ["a", "b", "c"]

    run(scene)


def test_one_more_than_may_wait_is_refused_at_once() -> None:
    async def scene() -> None:
        places = Places(most=2)
        await places.call("a")
        waiting = [places.call("a") for _ in range(2)]
        await places.waits(2)
        with pytest.raises(Overloaded) as refused:
            await places.call("a")
        assert refused.value.retry_seconds == RETRY_SECONDS
        for _ in waiting:
            places.leave()
        await asyncio.gather(*waiting)

    run(scene)


def test_who_fills_the_line_makes_room_for_others_in_it() -> None:
    """Or whoever calls again at once would keep out all that pause when they are told to."""

    async def scene() -> None:
        places = Places(most=4)
        await places.call("a")
        crowd = [places.call("many") for _ in range(4)]
        await places.waits(4)
        others = [places.call("one"), places.call("one")]
        await asyncio.wait([crowd[2], crowd[3]])
        assert all(isinstance(each.exception(), Overloaded) for each in crowd[2:])
        for caller in ("one", "many"):  # which have as many as each other
            with pytest.raises(Overloaded):
                await places.call(caller)
        for _ in range(4):
            places.leave()
        await asyncio.gather(*crowd[:2], *others)
        assert sorted(places.order) == ["a", "many", "many", "one", "one"]

    run(scene)


def test_who_was_given_a_place_is_in_nobody_s_way_in_the_line() -> None:
    async def scene() -> None:
        places = Places(most=2)
        await places.call("a")
        waiting = [places.call("many") for _ in range(2)]
        await places.waits(2)
        waiting.append(places.call("one"))
        places.leave()  # one of the others has the place, but comes to it only after this one
        await asyncio.sleep(0)
        await places.waits(2)
        for _ in range(2):
            places.leave()
        await asyncio.gather(*waiting)
        assert places.order == ["a", "many", "one", "many"]

    run(scene)


def test_nobody_makes_room_for_who_would_then_have_more() -> None:
    async def scene() -> None:
        places = Places(most=3)
        await places.call("a")
        waiting = [places.call(caller) for caller in ("many", "many", "one")]
        await places.waits(3)
        with pytest.raises(Overloaded):
            await places.call("one")
        for _ in waiting:
            places.leave()
        await asyncio.gather(*waiting)

    run(scene)


def test_who_fills_the_line_keeps_as_much_of_it_as_others_have() -> None:
    async def scene() -> None:
        places = Places(most=4)
        await places.call("a")
        crowd = [places.call("many") for _ in range(4)]
        await places.waits(4)
        others = [places.call(f"n{number}") for number in range(6)]  # in one round of the loop
        await asyncio.wait([*crowd[1:], *others[3:]])
        assert [each.done() for each in crowd] == [False, True, True, True]
        assert [each.done() for each in others] == [False, False, False, True, True, True]
        for _ in range(4):
            places.leave()
        ended = await asyncio.gather(*crowd, *others, return_exceptions=True)
        assert sum(isinstance(each, Overloaded) for each in ended) == 6

    run(scene)


@pytest.mark.parametrize(("seconds", "time_left"), [(0.01, None), (0.01, LONG), (LONG, 0.02)])
def test_who_has_waited_for_long_enough_is_refused(
    seconds: float, time_left: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the setting, or by half of the time to its deadline."""
    monkeypatch.setattr("bytepair_server.admission.queue.RETRY_SECONDS", LONG)

    async def scene() -> None:
        places = Places(seconds=seconds)
        await places.call("a")
        with pytest.raises(Overloaded) as refused:
            await places.call("a", time_left)
        # A caller that waits before it tries again has done a part of that here.
        assert 0 < refused.value.retry_seconds < LONG
        assert places.line.waiting == 0
        places.leave()
        await places.call("b")
        assert places.order == ["a", "b"]

    run(scene)


def test_nobody_waits_where_the_time_is_zero() -> None:
    async def scene() -> None:
        places = Places(seconds=0)
        await places.call("a")
        with pytest.raises(Overloaded):
            await places.call("a")

    run(scene)


def test_a_place_goes_past_who_has_given_up() -> None:
    async def scene() -> None:
        places = Places(most=4096)
        await places.call("a")
        for _ in range(1000):
            gone = places.call("a")
            await places.waits(1)
            gone.cancel()
            await asyncio.wait([gone])
        last = places.call("a")
        await places.waits(1)
        assert len(places.line._queue) < 100, "those that gave up are kept"
        places.leave()
        await last

    run(scene)


def test_who_is_given_a_place_and_cancelled_at_once_gives_it_on() -> None:
    async def scene() -> None:
        places = Places()
        await places.call("a")
        gone, last = places.call("b"), places.call("c")
        await places.waits(2)
        places.leave()
        gone.cancel()
        await asyncio.wait([gone])
        await last
        assert places.order == ["a", "c"]

    run(scene)


def test_who_waits_is_told_of_draining_and_so_is_who_comes_later() -> None:
    async def scene() -> None:
        places = Places()
        await places.call("a")
        waiting = places.call("b")
        held = asyncio.create_task(places.line.pause(Overloaded(RETRY_SECONDS, "bytes"), "a", None))
        await places.waits(2)
        places.line.dismiss()
        for each in (waiting, held, places.call("c")):
            with pytest.raises(Draining):
                await each

    run(scene)


def paused(line: Line, caller: str, retry_seconds: float) -> tuple[Overloaded, asyncio.Task[None]]:
    error = Overloaded(retry_seconds, "bytes")
    return error, asyncio.create_task(line.pause(error, caller, None))


def test_the_pause_that_a_refusal_asks_for_is_taken_before_it_is_told() -> None:
    async def scene() -> None:
        line = Places().line
        error, pause = paused(line, "a", 0.01)
        await pause
        assert error.retry_seconds == 0
        shorter = Places(seconds=0.01).line
        error, pause = paused(shorter, "a", LONG)
        await pause
        assert 0 < error.retry_seconds < LONG
        full = Places(most=0).line
        error, pause = paused(full, "a", LONG)
        await pause
        assert error.retry_seconds == LONG

    run(scene)


def test_pauses_take_no_place_of_those_that_have_work_to_wait_for() -> None:
    async def scene() -> None:
        places = Places(most=1)
        await places.call("a")
        long = paused(places.line, "b", LONG)[1]
        await places.waits(1)
        waiting = places.call("c")
        await places.waits(2)
        error, pause = paused(places.line, "b", LONG)  # as many as may are pausing
        await pause
        assert error.retry_seconds == LONG
        places.leave()
        await waiting
        long.cancel()

    run(scene)


def test_a_caller_takes_a_pause_for_each_of_its_calls_that_wait() -> None:
    told: list[str] = []

    async def scene() -> None:
        line = Places().line
        pauses = [paused(line, caller, 0.03)[1] for caller in ("a", "a", "a", "b")]
        for name, each in zip(("a1", "a2", "a3", "b1"), pauses, strict=True):
            each.set_name(name)
            each.add_done_callback(lambda done: told.append(done.get_name()))
        await asyncio.gather(*pauses)
        assert told.index("b1") < told.index("a2") < told.index("a3")
        assert line.waiting == 0

    run(scene)
