"""Which stream's message is next, where more have come than can be taken at once."""

from __future__ import annotations

import asyncio

from bytepair_server.streaming.turns import MESSAGE_BYTES, ROUND_BYTES, Turns

#: Messages of no bytes that one round takes.
IN_A_ROUND = ROUND_BYTES // MESSAGE_BYTES


async def take(turns: Turns, caller: str, taken: list[str], size: int = 0) -> None:
    if not turns.passes(size):
        await turns.turn(caller, size)
    taken.append(caller)


async def rounds(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def test_each_round_of_the_loop_takes_few_messages() -> None:
    async def run() -> None:
        turns, taken = Turns(), list[str]()
        work = asyncio.gather(*(take(turns, "one", taken) for _ in range(50 * IN_A_ROUND)))
        seen = 0
        while not work.done():
            await rounds(1)
            assert len(taken) - seen <= IN_A_ROUND
            seen = len(taken)
        assert seen == 50 * IN_A_ROUND

    asyncio.run(run())


def test_callers_take_turns_however_much_the_others_send() -> None:
    async def run() -> None:
        turns, taken = Turns(), list[str]()
        many = asyncio.gather(*(take(turns, "many", taken) for _ in range(100 * IN_A_ROUND)))
        await rounds(3)
        before = len(taken)
        await take(turns, "one", taken)
        assert len(taken) - before <= 3 * IN_A_ROUND
        await many

    asyncio.run(run())


def test_messages_count_by_their_bytes() -> None:
    async def run() -> None:
        turns = Turns()
        assert turns.passes(ROUND_BYTES)
        assert not turns.passes(0)
        await turns.turn("one", ROUND_BYTES)
        assert not turns.passes(0)
        await rounds(2)
        assert turns.passes(0)

    asyncio.run(run())


def test_who_gave_up_turns_owes_nothing_for_them() -> None:
    async def run() -> None:
        turns, taken = Turns(), list[str]()
        others = asyncio.gather(*(take(turns, "many", taken) for _ in range(100 * IN_A_ROUND)))
        gone = [
            asyncio.ensure_future(take(turns, "gone", [], 100 * ROUND_BYTES)) for _ in range(10)
        ]
        await rounds(1)
        for task in gone:
            task.cancel()
        await asyncio.wait(gone)
        await take(turns, "gone", taken)
        assert "gone" in taken[: 50 * IN_A_ROUND]
        await others

    asyncio.run(run())


def test_a_stream_that_is_gone_takes_no_turn() -> None:
    async def run() -> None:
        turns, taken = Turns(), list[str]()
        waiting = [asyncio.ensure_future(take(turns, "one", taken)) for _ in range(10 * IN_A_ROUND)]
        await rounds(1)
        for task in waiting[IN_A_ROUND:-1]:
            task.cancel()
        await asyncio.wait(waiting)
        assert len(taken) == IN_A_ROUND + 1

    asyncio.run(run())
