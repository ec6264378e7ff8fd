"""A stream, for asyncio: an asynchronous iterator, behind which a task reads the source."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from google.protobuf.message import Message

from bytepair_client._async_duplex import Duplex
from bytepair_client._retries import Attempts
from bytepair_client._call import StreamCall
from bytepair_client._errors import TokenizerError
from bytepair_client._stream_state import Exchange

Response = TypeVar("Response", bound=Message)
Plain = TypeVar("Plain")


class AsyncStream(AsyncIterator[Plain], Generic[Response, Plain]):
    """What a stream gives, as it comes. Nothing is sent before the first piece is asked for.

    The source is read by a task of its own, so that ids are sent when they arrive and not when
    the next piece is asked for; some ten thousand ids ahead of the pieces it has to wait. What
    it raises is raised here, after the pieces of what it had given.

    The call is cancelled when the iterator is closed or dropped, or when the task that waits
    for a piece is cancelled; an asynchronous source is cancelled with it.
    """

    def __init__(
        self,
        call: StreamCall[Response, Plain],
        attempts: Attempts,
        start: Callable[[float | None], Duplex[Response]],
        wait: Callable[[Awaitable[Any]], Awaitable[Any]],
    ) -> None:
        """Start nothing yet.

        Args:
            call: What is to be carried out.
            attempts: How often it is begun.
            start: Begins the RPC, which has these seconds to end in.
            wait: Waits for something of gRPC's, and raises what the client raises.
        """
        self._source: Iterable[Any] | AsyncIterable[Any] | None = call.source
        self._requests: _Requests[Response, Plain] = _Requests(Exchange(call))
        self._attempts = attempts
        self._start = start
        self._wait = wait

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Plain:
        requests = self._requests
        try:
            if self._source is not None:
                source, self._source = self._source, None
                requests.begin(self._start(self._attempts.begin()), source)
            while (call := requests.call) is not None:
                piece = await self._read(requests, call)
                if piece:
                    return piece
        except BaseException:
            requests.stop(cancel=True)
            raise
        raise StopAsyncIteration

    @property
    def last(self) -> Response:
        """The last answer that was read: the message of `bytepair.v1`, with the encoding and
        its fingerprint. An empty message before the first piece."""
        return self._requests.exchange.last

    async def aclose(self) -> None:
        """Cancel the call, unless it is over, and wait until the source has noticed. There are
        no more pieces."""
        self._source = None
        tasks = self._requests.stop(cancel=True)
        await asyncio.gather(*tasks, return_exceptions=True)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    def __del__(self) -> None:
        self._requests.drop()

    async def _read(
        self, requests: _Requests[Response, Plain], call: Duplex[Response]
    ) -> Plain | None:
        """The piece of the next answer; None at the end, which drops the call, and if the stream
        has begun again."""
        requests.raise_failure()
        try:
            response: Response | None = await self._wait(call.read())
        except TokenizerError as failure:
            requests.raise_failure()  # for which the call was cancelled
            seconds = self._attempts.wait(failure)
            if seconds is None or not await requests.wait_to_begin_again(seconds):
                raise
            requests.begin_again(self._start(self._attempts.begin()))
            return None
        except BaseException:
            if not is_being_cancelled():
                requests.raise_failure()  # for which the call was cancelled
            raise
        if response is None:
            requests.stop(cancel=False)
            return None
        return requests.read(response)


class _Requests(Generic[Response, Plain]):
    """The requests of a stream, and the two tasks that make and send them.

    It knows nothing of the AsyncStream, so that one which is dropped is dropped at once.

    Attributes:
        exchange: The state.
        call: gRPC's; None before the start and after the end.
    """

    def __init__(self, exchange: Exchange[Response, Plain]) -> None:
        self.exchange = exchange
        self.call: Duplex[Response] | None = None
        self._to_send = asyncio.Event()
        self._room = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._loop: asyncio.AbstractEventLoop | None = None

    def begin(self, call: Duplex[Response], source: Iterable[Any] | AsyncIterable[Any]) -> None:
        """Read the source, and send what it gives."""
        self.call = call
        self._loop = asyncio.get_running_loop()
        self._tasks = [
            self._loop.create_task(self._fill(source)),
            self._loop.create_task(self._send(call)),
        ]

    async def wait_to_begin_again(self, seconds: float) -> bool:
        """Wait, and prepare for another attempt. Returns False if there can be none."""
        if not self.exchange.can_begin_again:
            return False
        self._tasks.pop().cancel()  # what sends to the last attempt
        self.exchange.begin_again()
        await asyncio.sleep(seconds)
        return not self.exchange.over

    def begin_again(self, call: Duplex[Response]) -> None:
        """Send to another attempt, from the start, what the last one was sent, and go on."""
        assert self._loop is not None  # it has begun
        self.call = call
        self._tasks.append(self._loop.create_task(self._send(call)))

    def read(self, response: Response) -> Plain:
        """Note an answer, and let requests go that waited for it to be read."""
        piece = self.exchange.read(response)
        if self.exchange.over:
            self._tasks[0].cancel()  # the source, but not what is being sent: that ends the call
        self._to_send.set()
        return piece

    def raise_failure(self) -> None:
        """Raise what the source raised, if it is due."""
        if self.exchange.has_failed:
            failure, self.exchange.failure = self.exchange.failure, None
            assert failure is not None  # it has failed
            raise failure

    def stop(self, *, cancel: bool) -> list[asyncio.Task[None]]:
        """End the call and both tasks.

        Args:
            cancel: Whether the call may not be over.
        Returns:
            The tasks, which may need a moment.
        """
        self.exchange.over = True
        call, self.call = self.call, None
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        if cancel and call is not None:
            call.cancel()
        return tasks

    def drop(self) -> None:
        """Do as `stop`, from any thread: nobody says in which garbage is collected."""
        if self.call is not None and self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(lambda: self.stop(cancel=True))

    async def _fill(self, source: Iterable[Any] | AsyncIterable[Any]) -> None:
        try:
            if isinstance(source, AsyncIterable):
                async for item in source:
                    await self._put(item)
            else:
                for item in source:
                    await self._put(item)
                    await asyncio.sleep(0)  # what was sent and answered goes on
        except BaseException as error:  # whatever it is, it is the reader's to handle
            if is_being_cancelled():
                raise  # by the reader itself
            self.exchange.failure = error
        self.exchange.source_ended = True
        self._to_send.set()
        if self.exchange.has_failed and self.call is not None:
            self.call.cancel()  # wakes the reader

    async def _put(self, item: Any) -> None:
        exchange = self.exchange
        for part in exchange.outbox.parts(item):
            while not exchange.can_put:
                self._room.clear()
                await self._room.wait()
            exchange.outbox.put(part)
            self._to_send.set()

    async def _send(self, call: Duplex[Response]) -> None:
        exchange = self.exchange
        while not (exchange.is_complete or exchange.over):
            if exchange.can_take:
                request = exchange.take()
                self._room.set()
                if not await call.write(request):
                    return
            else:
                self._to_send.clear()
                await self._to_send.wait()
        await call.end()


def is_being_cancelled() -> bool:
    """Whether somebody cancelled the task that runs, and not something that it waits for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
