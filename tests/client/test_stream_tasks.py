"""Streams of the asyncio client beside other tasks: cancelled, closed and dropped by them."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import Iterator
from typing import Any, Self

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


def test_a_source_that_is_cancelled_does_not_look_like_the_cancellation_of_its_reader() -> None:
    async def model() -> Any:
        yield 1
        raise asyncio.CancelledError("of something that it waited for")

    async def main(target: str) -> None:
        async with AsyncTokenizerClient(target, encoding="e") as client:
            stream = client.decode_stream(model())
            assert await anext(stream) == "1 "
            with pytest.raises(Cancelled, match="source of the stream") as caught:
                await anext(stream)
            assert isinstance(caught.value.__cause__, asyncio.CancelledError)

    with ScriptedStreams(echo) as server:
        asyncio.run(main(server.target))


class Model:
    """A source that counts, and the task that reads it."""

    task: Any
    given = 0

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> int:
        self.task = asyncio.current_task()
        self.given += 1
        return self.given

    async def until_it_waits(self) -> None:
        """Return once the buffer of the stream is full."""
        before = 0
        while before < self.given:
            before = self.given
            await asyncio.sleep(0.05)


async def read_into(pieces: list[str], stream: Any) -> None:
    async for piece in stream:
        pieces.append(piece)  # noqa: PERF401  # what came before an error counts


def test_a_source_whose_task_is_cancelled_while_an_item_waits_fails_after_that_item() -> None:
    model = Model()
    pieces: list[str] = []

    async def main(target: str) -> None:
        async with AsyncTokenizerClient(target, encoding="e", max_unary_bytes=4) as client:
            stream = client.decode_stream(model)
            pieces.append(await anext(stream))
            await model.until_it_waits()
            model.task.cancel()
            with pytest.raises(Cancelled, match="source of the stream"):
                await read_into(pieces, stream)

    with ScriptedStreams(echo) as server:
        asyncio.run(main(server.target))
    assert "".join(pieces) == "".join(f"{number} " for number in range(1, model.given + 1))


@pytest.mark.parametrize("is_handled", [False, True])
def test_a_timeout_in_a_source_expires_while_an_item_waits(is_handled: bool) -> None:
    counter = Model()
    pieces: list[str] = []

    async def model(limit: asyncio.Timeout) -> Any:
        try:
            async with limit:
                async for number in counter:
                    yield number
        except TimeoutError:
            if not is_handled:
                raise
            yield await anext(counter)

    async def main(target: str) -> None:
        async with AsyncTokenizerClient(target, encoding="e", max_unary_bytes=4) as client:
            limit = asyncio.timeout(None)
            stream = client.decode_stream(model(limit))
            pieces.append(await anext(stream))
            await counter.until_it_waits()
            limit.reschedule(0)
            with contextlib.nullcontext() if is_handled else pytest.raises(TimeoutError):
                await read_into(pieces, stream)

    with ScriptedStreams(echo) as server:
        asyncio.run(main(server.target))
    assert "".join(pieces) == "".join(f"{number} " for number in range(1, counter.given + 1))


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
