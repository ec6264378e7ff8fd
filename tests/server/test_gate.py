"""Who is let in, at each bound: one less, at it, one more."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from bytepair_server.admission.limiter import ANSWERS_TO_REQUESTS, Gate
from bytepair_server.errors import Draining, Overloaded

LIMIT = 8

#: What comes in, and goes out again, one unit at a time, by the bound that it meets.
Step = Callable[[Gate], None]


def gate_of(limit: int) -> Gate:
    return Gate(
        max_in_flight=limit,
        max_in_flight_bytes=limit,
        max_open_streams=limit,
        max_streams_bytes=limit,
        max_waiting=0,
        max_wait_seconds=0,
    )


def hold(gate: Gate) -> None:
    gate.hold(1)
    gate.check_held()


def let_go(gate: Gate) -> None:
    gate.hold(-1)


#: Who is sent something, each of it a flow of its own.
SENT: list[str] = []


def send(gate: Gate) -> None:
    gate.send(flow := str(len(SENT)), ANSWERS_TO_REQUESTS)
    SENT.append(flow)


def sent(gate: Gate) -> None:
    gate.sent(SENT.pop(), ANSWERS_TO_REQUESTS)


BOUNDS: dict[str, tuple[Step, Step]] = {
    "calls in flight": (Gate.enter, Gate.leave),
    "bytes of calls in flight": (lambda g: g.take_in(1), lambda g: g.give_back(1)),
    "streams open": (Gate.enter_stream, Gate.leave_stream),
    "bytes of streams in hand": (hold, let_go),
    "bytes of answers": (send, sent),
}


@pytest.mark.parametrize("bound", BOUNDS)
def test_a_bound_is_inclusive_and_what_goes_out_makes_room(bound: str) -> None:
    gate = gate_of(LIMIT)
    come, go = BOUNDS[bound]
    for _ in range(LIMIT):
        come(gate)
    with pytest.raises(Overloaded, match=bound):
        come(gate)
    if come is hold:
        go(gate)  # what is held is counted before it is looked at
    go(gate)
    come(gate)
    with pytest.raises(Overloaded):
        come(gate)


def test_one_call_is_taken_whatever_its_size() -> None:
    gate = gate_of(LIMIT)
    gate.take_in(LIMIT + 1)
    with pytest.raises(Overloaded):
        gate.take_in(1)
    gate.give_back(LIMIT + 1)
    gate.take_in(LIMIT)


@pytest.mark.parametrize("enter", [Gate.enter, Gate.enter_stream])
def test_nobody_new_comes_in_while_it_drains(enter: Step) -> None:
    gate = gate_of(LIMIT)
    enter(gate)

    async def drain() -> None:
        gate.open()
        draining = asyncio.ensure_future(gate.drain(60))
        await asyncio.sleep(0)
        with pytest.raises(Draining):
            enter(gate)
        assert gate.in_flight + gate.open_streams == 1
        gate.hurry()
        assert await draining == 0  # it waited for nothing that could be cut off

    asyncio.run(drain())
