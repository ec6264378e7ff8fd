"""Calls whose messages do not come: who loses a place, who is ended, and who waits for that."""

from __future__ import annotations

import asyncio

import pytest
from bytepair_server.admission import slow_readers
from bytepair_server.admission.queue import OTHERS_PART
from bytepair_server.admission.slow_readers import MANY_PART, READ_SECONDS
from support.calls import call_of
from support.places import LONG, Places, run

#: More than twice what a busy machine may stand still for.
SLOW_READ_SECONDS = 1.5


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
    monkeypatch.setattr(slow_readers, "READ_SECONDS", SLOW_READ_SECONDS)


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


class Slow:
    """Callers who hold themselves up."""

    def __init__(self, places: int | Places = 1) -> None:
        self.places = Places(places, most=1000) if isinstance(places, int) else places
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
    monkeypatch.setattr(slow_readers, "MAX_SLOW", 2)
    monkeypatch.setattr(slow_readers, "SLOW_SECONDS", 0.2)

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
    monkeypatch.setattr(slow_readers, "MAX_SLOW", 3)
    monkeypatch.setattr(slow_readers, "SLOW_SECONDS", 0.2)

    async def scene() -> None:
        slow = Slow()
        await slow.come("patient", "many", "many", "many")
        await slow.places.waits(0)
        await slow.places.call("one")
        assert slow.ended == ["many"]
        slow.leave()

    run(scene)


def test_the_first_that_is_ended_is_the_first_of_all_where_none_has_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(slow_readers, "MAX_SLOW", 2 * MANY_PART)
    monkeypatch.setattr(slow_readers, "SLOW_SECONDS", 0.2)

    async def scene() -> None:
        slow = Slow()
        await slow.come("first", "two", "two", *map(str, range(2 * MANY_PART - 3)))
        await slow.places.waits(0)
        await slow.places.call("one")
        assert slow.ended == []
        slow.places.leave()
        await slow.come("last")
        await slow.places.call("one")
        assert slow.ended == ["first"]
        slow.leave()

    run(scene)


@pytest.fixture
def _few_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few may go on without a place, and for longer than a test takes."""
    monkeypatch.setattr(slow_readers, "MAX_SLOW", 3)
    monkeypatch.setattr(slow_readers, "SLOW_SECONDS", 2 * LONG)


@pytest.mark.usefixtures("_few_places")
@pytest.mark.parametrize("flows", ["a", "ab", "abcdefgh"])
def test_who_holds_places_up_leaves_some_to_others(flows: str) -> None:
    """However many they are."""

    async def scene() -> None:
        slow = Slow(2 * OTHERS_PART)
        await slow.come(*[flow for _ in range(OTHERS_PART) for flow in flows] * 4)
        last = [slow.places.call(flow) for flow in flows]
        for _ in range(100):
            await slow.places.call("one")
            slow.places.leave()
        assert slow.ended == []
        assert not any(each.done() for each in last)
        slow.leave()
        await asyncio.gather(*last)

    run(scene)


@pytest.mark.usefixtures("_few_places")
def test_who_holds_none_up_any_more_leaves_none_to_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scene() -> None:
        slow = Slow(2 * OTHERS_PART)
        await slow.come(*["many"] * (4 * OTHERS_PART))
        await slow.places.call("one")  # by now as many go on without a place as may
        slow.places.leave()
        monkeypatch.setattr(slow_readers, "READ_SECONDS", 2 * LONG)  # and no time makes room
        first = call_of("one")
        await slow.places.line.turn(first, None)
        second = slow.places.call("one")
        await slow.places.call("another")
        slow.places.leave()
        assert not second.done()
        slow.places.line.read(first)
        slow.places.free -= 1
        await second  # though nobody leaves
        slow.leave()

    run(scene)


@pytest.mark.usefixtures("_few_places")
def test_a_new_flow_takes_one_of_the_places_that_are_left_to_others() -> None:
    async def scene() -> None:
        slow = Slow(2 * OTHERS_PART)
        await slow.come(*["many"] * (4 * OTHERS_PART))
        await slow.places.call("one")
        slow.places.leave()
        await slow.come(*["new"] * 4)
        for _ in range(100):
            await slow.places.call("one")
            slow.places.leave()
        slow.leave()

    run(scene)


@pytest.mark.usefixtures("_few_places")
def test_who_goes_on_without_a_place_holds_some_up_too() -> None:
    async def scene() -> None:
        slow = Slow(2 * OTHERS_PART)
        await slow.come(*"abc", *["many"] * (4 * OTHERS_PART))
        await slow.places.call("one")  # by now a, b and c go on without a place
        slow.places.leave()
        await slow.come(*"abc")
        for _ in range(100):
            await slow.places.call("one")
            slow.places.leave()
        slow.leave()

    run(scene)


@pytest.mark.usefixtures("_few_places")
def test_places_are_left_to_others_also_where_nobody_waits() -> None:
    async def scene() -> None:
        slow = Slow(2 * OTHERS_PART)
        await slow.come(*["many"] * (2 * OTHERS_PART))
        for _ in range(2 * OTHERS_PART):
            await slow.places.call("one")
            slow.places.leave()
            await slow.come("many")
        slow.leave()

    run(scene)


def test_who_leaves_places_to_others_waits_no_longer_for_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody else is there who could take them."""
    monkeypatch.setattr(slow_readers, "MAX_SLOW", 3)
    monkeypatch.setattr(slow_readers, "SLOW_SECONDS", 0.2)

    async def scene() -> None:
        slow = Slow(2 * OTHERS_PART)
        await slow.come(*["many"] * (4 * OTHERS_PART))
        await slow.places.call("many")
        assert slow.ended
        slow.leave()

    run(scene)


@pytest.mark.usefixtures("_few_places")
def test_who_waits_for_a_place_gets_one_that_another_gives_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scene() -> None:
        slow = Slow(2 * OTHERS_PART)
        await slow.come(*["many"] * (2 * OTHERS_PART + 3))
        await slow.places.call("one")
        slow.places.leave()
        monkeypatch.setattr(slow_readers, "READ_SECONDS", 2 * LONG)  # and no time makes room
        few = Slow(slow.places)
        await few.come("few")  # takes what is left to others
        second = slow.places.call("few")
        await asyncio.sleep(0)
        assert not second.done()
        slow.leave()
        await second
        few.leave()

    run(scene)


@pytest.mark.usefixtures("_few_places")
def test_no_places_are_left_to_others_once_few_are_held_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scene() -> None:
        few = Slow(2 * OTHERS_PART)
        many = Slow(few.places)
        await few.come(*"abc")
        await many.come(*["many"] * (2 * OTHERS_PART - 2))
        await few.places.call("one")  # by now a, b and c go on without a place
        few.places.leave()
        monkeypatch.setattr(slow_readers, "READ_SECONDS", 2 * LONG)  # and no time makes room
        last = few.places.call("many")
        await asyncio.sleep(0)
        assert not last.done()
        few.leave()
        await last
        many.leave()

    run(scene)
