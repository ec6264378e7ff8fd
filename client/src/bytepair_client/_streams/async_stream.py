"""A stream for asyncio: an asynchronous iterator, with a task that reads the source."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Iterable
from typing import Any, Generic, Self, TypeVar

from google.protobuf.message import Message

from bytepair_client._call import StreamCall
from bytepair_client._streams.duplex import Duplex
from bytepair_client._streams.state import BaseStream, StreamState

Response = TypeVar("Response", bound=Message)
Plain = TypeVar("Plain")


class AsyncStream(BaseStream[Response, Plain], AsyncIterator[Plain]):
    """An asynchronous iterator of the results of a stream. Nothing is sent before the first one is
    requested.

    A task reads the source and sends each item when it arrives. It waits when it is some ten
    thousand ids ahead of the results. An exception of the source is raised here, after the results
    of the items before it.

    If the connection breaks, the stream resumes over another one. The call is cancelled when the
    iterator is closed or dropped, or when the task that waits for a result is cancelled; an
    asynchronous source is cancelled with it.
    """

    _requests: _Requests[Response, Plain]

    def __init__(self, client: Any, call: StreamCall[Response, Plain]) -> None:
        super().__init__(client, call, _Requests(StreamState(call)))

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Plain:
        piece = await self._next()
        if piece is None:
            raise StopAsyncIteration
        return piece

    async def aclose(self) -> None:
        """Cancel the call, unless it is over, and wait until the source has ended. The iterator
        ends."""
        self._source = None
        tasks = self._requests.stop(cancel=True)
        await asyncio.gather(*tasks, return_exceptions=True)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()

    def __del__(self) -> None:
        self._requests.drop()

    async def _begin(self, source: Iterable[Any] | AsyncIterable[Any]) -> None:
        await asyncio.sleep(self._attempts.rate_delay())
        self._requests.begin(self._start(), source)

    async def _answer(self, call: Duplex[Response]) -> Response | None:
        try:
            answer: Response | None = await self._client._wait(call.read(), self._timeout)
        except asyncio.CancelledError:
            if not is_being_cancelled():
                self._requests.raise_failure()  # for which the call was cancelled
            raise
        return answer

    async def _resume(self, seconds: float) -> bool:
        self._requests.stop_sending()
        await asyncio.sleep(seconds + self._attempts.rate_delay())
        if self._requests.state.over:
            return False
        self._requests.continue_elsewhere(self._start())
        return True

    def _start(self) -> Duplex[Response]:
        """Begin the RPC."""
        rpc = self._client._rpc(self._method)
        return Duplex(rpc(timeout=self._attempts.begin(), metadata=self._client._metadata))


class _Requests(Generic[Response, Plain]):
    """The requests of a stream, and the two tasks that make and send them.

    It knows nothing of the AsyncStream, so that one which is dropped is dropped at once.

    Attributes:
        state: The state.
        call: gRPC's; None before the start and after the end.
    """

    def __init__(self, state: StreamState[Response, Plain]) -> None:
        self.state = state
        self.call: Duplex[Response] | None = None
        self._to_send = asyncio.Event()
        self._room = asyncio.Event()
        self._filling: Any = None  # the task that reads the source
        self._sending: Any = None  # the task that sends what it gives
        self._loop: asyncio.AbstractEventLoop | None = None

    def begin(self, call: Duplex[Response], source: Iterable[Any] | AsyncIterable[Any]) -> None:
        """Read the source, and send what it gives."""
        self.call = call
        self._loop = asyncio.get_running_loop()
        self._filling = self._loop.create_task(self._fill(source))
        self._sending = self._loop.create_task(self._send(call))

    def stop_sending(self) -> None:
        """Send no more to the connection that broke."""
        self._sending.cancel()

    def continue_elsewhere(self, call: Duplex[Response]) -> None:
        """Send to another connection what the last one did not settle, and go on."""
        assert self._loop is not None  # it has begun
        self.call = call
        source = self.state.continue_elsewhere()
        if source is not None:
            self._filling.cancel()
            self._filling = self._loop.create_task(self._fill(source))
        self._room.set()
        self._sending = self._loop.create_task(self._send(call))

    def read(self, response: Response) -> Plain | None:
        """Note an answer, and let requests go that waited for it to be read."""
        piece = self.state.read(response)
        if self.state.over:
            self._filling.cancel()  # but not what is being sent: that ends the call
        self._to_send.set()
        return piece

    def raise_failure(self) -> None:
        """Raise what the source raised, if it is due."""
        if self.state.has_failed:
            failure, self.state.failure = self.state.failure, None
            assert failure is not None  # it has failed
            raise failure

    def stop(self, *, cancel: bool) -> list[asyncio.Task[None]]:
        """End the call, which may not be over if it is to be cancelled, and both tasks. Returns
        the tasks, which may need a moment."""
        self.state.over = True
        call, self.call = self.call, None
        tasks = [task for task in (self._filling, self._sending) if task is not None]
        self._filling = self._sending = None
        for task in tasks:
            task.cancel()
        if cancel and call is not None:
            call.cancel()
        return tasks

    def drop(self) -> None:
        """As `stop`, from any thread: garbage may be collected in each."""
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
            self.state.failure = error
        self.state.source_ended = True
        self._to_send.set()
        if self.state.has_failed and self.call is not None:
            self.call.cancel()  # wakes the reader

    async def _put(self, item: Any) -> None:
        state = self.state
        for part in state.buffer.parts(item):
            while not state.can_put:
                self._room.clear()
                await self._room.wait()
            state.buffer.put(part)
            self._to_send.set()

    async def _send(self, call: Duplex[Response]) -> None:
        state = self.state
        while not (state.is_complete or state.over):
            if state.can_take:
                request = state.take()
                self._room.set()
                if not await call.write(request):
                    return
            else:
                self._to_send.clear()
                await self._to_send.wait()
        await call.end()


def is_being_cancelled() -> bool:
    """Whether the running task was cancelled, and not something that it waits for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
