"""Streams of the asyncio client beside other tasks: cancelled, closed and dropped by them."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import Iterator
from typing import Any

import pytest
from bytepair.v1 import stream_pb2
from bytepair_client import AsyncTokenizerClient, Cancelled
from support.scripted_streams import Open, ScriptedStreams, echo, text


def test_cancelling_the_task_that_reads_cancels_call_and_source() -> None:
    open_stream = Open()
    ended: list[str] = []

    async def model() -> Any:
        try:
            yield 1
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    async def main(target: str) -> None:
        async with AsyncTokenizerClient(target, encoding="e") as client:
            stream = client.decode_stream(model())
            assert await anext(stream) == "first"
            reading = asyncio.ensure_future(anext(stream))
            await asyncio.sleep(0.05)
            reading.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reading
            await asyncio.to_thread(open_stream.over.wait)
            for _ in range(2):  # never a normal end
                with pytest.raises(Cancelled, match="earlier result was cancelled"):
                    await anext(stream)

    with ScriptedStreams(open_stream) as server:
        asyncio.run(main(server.target))
    assert ended == ["cancelled"]


def test_a_wait_of_limited_time_does_not_end_a_stream() -> None:
    async def main(target: str) -> None:
        go_on = asyncio.Event()

        async def model() -> Any:
            yield 1
            await go_on.wait()
            yield 2

        async with AsyncTokenizerClient(target, encoding="e") as client:
            stream = client.decode_stream(model())
            assert await anext(stream) == "1 "
            pending = asyncio.ensure_future(anext(stream))
            assert await asyncio.wait({pending}, timeout=0.01) == (set(), {pending})
            with pytest.raises(RuntimeError, match="only one may read"):
                await anext(stream)
            go_on.set()
            assert await pending == "2 "
            assert [piece async for piece in stream] == []

    with ScriptedStreams(echo) as server:
        asyncio.run(main(server.target))


def test_a_source_that_ignores_its_cancellation_is_not_read_on() -> None:
    ended: list[bool] = []
    read_on: list[bool] = []

    async def model() -> Any:
        yield 1
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(3600)
        await asyncio.sleep(0.01)
        ended.append(True)
        yield 2
        read_on.append(True)

    async def main(target: str) -> None:
        async with AsyncTokenizerClient(target, encoding="e") as client:
            stream = client.decode_stream(model())
            assert await anext(stream) == "1 "
            await stream.aclose()
            assert ended  # before the stream

    with ScriptedStreams(echo) as server:
        asyncio.run(main(server.target))
    assert not read_on


def test_a_stream_may_be_dropped_after_its_loop() -> None:
    async def main(target: str) -> Any:
        async with AsyncTokenizerClient(target, encoding="e") as client:
            stream = client.decode_stream([1])
            assert await anext(stream) == "1 "
        return stream

    with ScriptedStreams(echo) as server:
        asyncio.run(main(server.target))
    gc.collect()  # an error would be a warning of pytest


def test_a_source_that_never_waits_lets_other_tasks_run() -> None:
    turns = 0
    seen: list[int] = []

    def model() -> Iterator[int]:
        for token_id in range(20):
            seen.append(turns)
            yield token_id

    async def take_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def main(target: str) -> None:
        async with AsyncTokenizerClient(target, encoding="e") as client:
            other = asyncio.create_task(take_turns())
            async for _ in client.decode_stream(model()):
                pass
            other.cancel()

    with ScriptedStreams(echo) as server:
        asyncio.run(main(server.target))
    assert seen[0] < seen[-1]


def test_the_cancelled_error_of_a_source_is_raised() -> None:
    async def model() -> Any:
        yield 1
        raise asyncio.CancelledError("of something that it waited for")

    async def main(target: str) -> None:
        async with AsyncTokenizerClient(target, encoding="e") as client:
            stream = client.decode_stream(model())
            assert await anext(stream) == "1 "
            with pytest.raises(asyncio.CancelledError, match="waited"):
                await anext(stream)

    with ScriptedStreams(echo) as server:
        asyncio.run(main(server.target))


def test_a_response_may_arrive_while_another_task_closes_the_stream() -> None:
    async def main(target: str) -> None:
        async with AsyncTokenizerClient(target, encoding="e") as client:
            stream = client.decode_stream([1])
            assert await anext(stream) == "1 "
            await stream.aclose()
            late = stream_pb2.DecodeStreamResponse.FromString(text("2 ", 2))
            assert list(stream._state.read(late)) == ["2 "]

    with ScriptedStreams(echo) as server:
        asyncio.run(main(server.target))


def test_a_stream_that_another_task_closes_ends() -> None:
    async def model() -> Any:
        yield 1
        await asyncio.sleep(3600)

    async def main(target: str) -> None:
        async with AsyncTokenizerClient(target, encoding="e") as client:
            stream = client.decode_stream(model())
            assert await anext(stream) == "1 "
            reader = asyncio.create_task(anext(stream, "the end"))
            await asyncio.sleep(0)  # it waits for a response
            await stream.aclose()
            assert await reader == "the end"

    with ScriptedStreams(echo) as server:
        asyncio.run(main(server.target))
