"""Calls that find no room wait before they are read: in which order, for how long, how many."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from bytepair_server import reading
from bytepair_server.call import ANONYMOUS
from bytepair_server.errors import Draining, Overloaded
from bytepair_server.line import OTHERS_PART, RETRY_SECONDS, Line
from bytepair_server.reading import READ_SECONDS
from support.calls import call_of

#: More than a test takes.
LONG = 60.0
#: More than twice what a busy machine may stand still for.
SLOW_READ_SECONDS = 1.5


class Places:
    """What a gate is to its line, and callers who come and go one by one."""

    def __init__(self, places: int = 1, *, most: int = 8, seconds: float = LONG) -> None:
        self.free = places
        self.line = Line(lambda: self.free, most, seconds)
        self.order: list[str] = []

    def call(
        self, caller: str, time_left: float | None = None, connection: str = ""
    ) -> asyncio.Task[None]:
        """A call that comes in if it may."""
        return asyncio.create_task(self._come(caller, time_left, connection))

    async def _come(self, caller: str, time_left: float | None, connection: str) -> None:
        call = call_of(caller, connection)
        try:
            if not self.line.passes(call):
                await self.line.turn(call, time_left)
        except BaseException:
            self.line.leave(call)
            raise
        self.line.read(call)
        self.free -= 1
        self.order.append(connection or caller)

    def leave(self) -> None:
        """One of those inside goes out."""
        self.free += 1
        self.line.advance()

    async def waits(self, number: int) -> None:
        """Until so many wait."""
        while self.line.waiting != number:
            await asyncio.sleep(0)


def run(scene: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(scene(), LONG))


def test_callers_take_turns_however_many_calls_one_has_there() -> None:
    async def scene() -> None:
        places = Places()
        await places.call("a")
        calls = [places.call("a") for _ in range(3)]
        await places.waits(3)
        calls.append(places.call("b"))
        await places.waits(4)
        for _ in range(4):
            places.leave()
            await asyncio.sleep(0.001)
        await asyncio.gather(*calls)
        assert places.order == ["a", "a", "b", "a", "a"]

    run(scene)


def test_connections_take_turns_where_all_callers_are_one() -> None:
    async def scene() -> None:
        places = Places()
        await places.call("")
        calls = [places.call(ANONYMOUS, connection="many") for _ in range(3)]
        await places.waits(3)
        calls.append(places.call(ANONYMOUS, connection="one"))
        await places.waits(4)
        for _ in range(4):
            places.leave()
            await asyncio.sleep(0.001)
        await asyncio.gather(*calls)
        assert places.order == ["", "many", "one", "many", "many"]

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


@pytest.mark.parametrize(("seconds", "time_left"), [(0.01, None), (0.01, LONG), (LONG, 0.02)])
def test_who_has_waited_for_long_enough_is_refused(
    seconds: float, time_left: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the setting, or by half of the time to its deadline."""
    monkeypatch.setattr("bytepair_server.line.RETRY_SECONDS", LONG)

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


def test_who_is_not_read_soon_loses_the_place() -> None:
    """A message that never comes keeps nobody out."""

    async def scene() -> None:
        places, slow = Places(), call_of("")
        assert places.line.passes(slow)
        began = asyncio.get_running_loop().time()
        await places.call("b")
        assert asyncio.get_running_loop().time() - began >= READ_SECONDS / 2
        places.line.leave(slow)  # has no place to give on
        assert places.free == 0

    run(scene)


def test_the_places_of_those_who_are_not_read_are_no_more_than_there_are() -> None:
    async def scene() -> None:
        places = Places(2)
        assert all(places.line.passes(call_of("")) for _ in range(2))
        places.free = 0  # both were thought gone, and others are inside
        last = places.call("b")
        await asyncio.wait([last], timeout=2 * READ_SECONDS)
        assert places.line.waiting == 1
        places.leave()
        await last

    run(scene)


@pytest.fixture
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A caller is only taken to be slow after long, so that a machine that stands still for some
    tenths of a second makes nobody slow."""
    monkeypatch.setattr(reading, "READ_SECONDS", SLOW_READ_SECONDS)


@pytest.mark.usefixtures("_patient")
def test_a_server_that_reads_late_gives_no_places_away() -> None:
    """Or it would have all that wait to do at once, and nothing else would be done meanwhile."""

    async def scene() -> None:
        places = Places(5)
        calls = [call_of("") for _ in range(5)]
        assert all(places.line.passes(call) for call in calls)
        waiting = places.call("b")
        for call in calls[:-1]:
            await asyncio.sleep(SLOW_READ_SECONDS / 3)
            places.line.read(call)
            places.free -= 1
            places.line.advance()
            assert places.line.waiting == 1
        await waiting  # now nothing is being read, and the last call's caller holds it up

    run(scene)


@pytest.mark.usefixtures("_patient")
def test_who_is_overtaken_by_many_holds_itself_up() -> None:
    async def scene() -> None:
        places = Places(2)
        assert places.line.passes(call_of(""))
        await asyncio.sleep(SLOW_READ_SECONDS)
        for _ in range(4):
            call = call_of("")
            assert places.line.passes(call)
            places.line.read(call)
        places.free -= 1
        await asyncio.wait_for(places.call("b"), SLOW_READ_SECONDS / 2)

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


class Slow:
    """Callers who hold themselves up."""

    def __init__(self, places: int = 1) -> None:
        self.places = Places(places)
        self.ended: list[str] = []
        self._tasks: list[asyncio.Task[None]] = []

    async def come(self, *callers: str) -> None:
        """Begin a call of each, without an end."""
        self._tasks += [asyncio.create_task(self._come(caller)) for caller in callers]
        await asyncio.sleep(0)

    async def _come(self, caller: str) -> None:
        call = call_of(caller)

        async def end() -> None:
            self.ended.append(caller)
            self.places.line.leave(call)

        call.end = end
        try:
            if not self.places.line.passes(call):
                await self.places.line.turn(call, None)
            await asyncio.sleep(LONG)
        finally:
            self.places.line.leave(call)

    def leave(self) -> None:
        for each in self._tasks:
            each.cancel()


def test_of_those_who_hold_themselves_up_few_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """What has come of their messages is held."""
    monkeypatch.setattr(reading, "MAX_SLOW", 2)
    monkeypatch.setattr(reading, "SLOW_SECONDS", 0.2)

    async def scene() -> None:
        slow = Slow()
        await slow.come(*"abcd")
        await slow.places.call("")
        assert slow.ended[:1] == ["a"]
        assert len(slow.ended) <= 2
        slow.leave()

    run(scene)


def test_the_first_that_is_ended_is_of_who_has_most_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reading, "MAX_SLOW", 3)
    monkeypatch.setattr(reading, "SLOW_SECONDS", 0.2)

    async def scene() -> None:
        slow = Slow()
        await slow.come("patient", "many", "many", "many")
        await slow.places.waits(0)
        await slow.places.call("one")
        assert slow.ended == ["many"]
        slow.leave()

    run(scene)


def test_who_has_most_of_them_leaves_some_places_to_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reading, "MAX_SLOW", 3)
    monkeypatch.setattr(reading, "SLOW_SECONDS", 2 * LONG)

    async def scene() -> None:
        slow = Slow(OTHERS_PART)
        await slow.come(*["many"] * (OTHERS_PART + 4))
        last = slow.places.call("many")
        for _ in range(100):
            await slow.places.call("one")
            slow.places.leave()
        assert slow.ended == []
        assert not last.done()
        slow.leave()
        await last

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
