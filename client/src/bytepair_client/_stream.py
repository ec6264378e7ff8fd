"""The streams of both clients: iterators, and the thread or task that reads the source."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from contextlib import nullcontext
from contextvars import copy_context
from typing import Any, Generic, Self, cast

import grpc

from bytepair_client._call import Plain, Response, StreamCall, run
from bytepair_client._stream_state import BaseStream, Source, StreamState

#: The status arrives with the last response, or right after it.
STATUS_WITHIN_S = 5.0


class Stream(BaseStream[Response, Plain], Iterator[Plain]):
    """An iterator of the results of a stream. The stream starts when the first one is requested.

    A thread reads the source, in a copy of the caller's context, and sends each item when it
    arrives. It waits when it is tens of thousands of ids ahead of the results. An exception of the
    source is raised here, after the results of the items before it, except text that may begin a
    stop string or is not final.

    If the connection breaks, the stream resumes over another one. Closing or dropping the iterator
    cancels the call, and the source is not read further. Only one thread may wait for a result;
    another gets RuntimeError.
    """

    def __init__(self, client: Any, call: StreamCall[Response, Plain]) -> None:
        self._state = _ThreadState(client, call)

    def __next__(self) -> Plain:
        value = run(self._state.next())
        if value is None:
            raise StopIteration
        return value

    def close(self) -> None:
        """Cancel the call unless it has ended. The iterator ends."""
        self._state.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()


class _ThreadState(StreamState[Response, Plain]):
    """The state, shared by three threads: the source's, gRPC's and the reader's."""

    lock: threading.Condition

    def __init__(self, client: Any, call: StreamCall[Response, Plain]) -> None:
        super().__init__(client, call)
        self.lock = threading.Condition()

    def changed(self) -> None:
        self.lock.notify_all()

    async def until(self, condition: Callable[[], bool]) -> None:
        self.lock.wait_for(condition)

    def begin(self, source: Source | None) -> None:
        attempt = self.attempt
        requests = iter(lambda: run(self.request(attempt)), None)  # gRPC's thread iterates them
        self.call = self.client._start(self.method, requests, self.attempts.begin())
        if self.over:  # closed meanwhile, by another thread
            self.stop()
        if source is not None:
            threading.Thread(
                target=copy_context().run,
                args=(run, self.fill(source, self.readings)),
                name="bytepair-stream",
                daemon=True,  # the source may block forever
            ).start()

    async def receive(self, call: Any) -> Response | None:
        return cast(Response | None, next(call, None))


class AsyncStream(BaseStream[Response, Plain], AsyncIterator[Plain]):
    """An asynchronous iterator of the results of a stream: a Stream for asyncio.

    A task reads the source, which may be asynchronous. Cancelling the task that waits for a result
    cancels the call and an asynchronous source too: later results raise Cancelled. For a wait of
    limited time, use `asyncio.wait` with a task of `anext`, and wait for that task again.
    """

    _state: _TaskState[Response, Plain]

    def __init__(self, client: Any, call: StreamCall[Response, Plain]) -> None:
        self._state = _TaskState(client, call)

    async def __anext__(self) -> Plain:
        value = await self._state.next()
        if value is None:
            raise StopAsyncIteration
        return value

    async def aclose(self) -> None:
        """Cancel the call unless it has ended. The iterator ends, after the source."""
        await asyncio.gather(*self._state.stop(), return_exceptions=True)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()

    def __del__(self) -> None:
        self._state.drop()


class _TaskState(StreamState[Response, Plain]):
    """The state, shared by three tasks: the source's, gRPC's and the reader's."""

    def __init__(self, client: Any, call: StreamCall[Response, Plain]) -> None:
        super().__init__(client, call)
        self.lock = nullcontext()
        self._change = asyncio.Event()
        self._filling: Any = None  # the task that reads the source
        self._loop: Any = None  # that of the call

    def changed(self) -> None:
        self._change.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self._change.clear()
            await self._change.wait()

    def yield_control(self) -> Coroutine[Any, Any, None]:
        return asyncio.sleep(0)

    def begin(self, source: Source | None) -> None:
        requests = self._requests(self.attempt)
        call = self.client._start(self.method, requests, self.attempts.begin())
        self.call = Responses(call)
        self._loop = asyncio.get_running_loop()
        if source is not None:
            self._filling = self._loop.create_task(self.fill(source, self.readings))

    async def _requests(self, attempt: int) -> AsyncIterator[bytes]:
        while (request := await self.request(attempt)) is not None:
            yield request

    async def receive(self, call: Responses[Response]) -> Response | None:
        try:
            response: Response | None = await self.client._wait(call.read())
        except asyncio.CancelledError:
            if is_being_cancelled():
                raise
            self.raise_failure()  # the source failed and cancelled the call
            if not self.over:
                raise
            return None  # another task closed the stream
        return response

    def read(self, response: Response) -> Iterable[Plain]:
        values = super().read(response)
        if self.over and self._filling is not None:
            self._filling.cancel()  # an asynchronous source may wait for long
        return values

    def stop(self) -> list[asyncio.Task[None]]:
        """Returns the source's task, if it has started; it ends soon."""
        super().stop()
        filling, self._filling = self._filling, None
        if filling is None:
            return []
        filling.cancel()
        return [filling]

    def drop(self) -> None:
        """Stop, from any thread, because any may run the garbage collector."""
        if self.call is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.stop)


class Responses(Generic[Response]):
    """The responses of a bidirectional call of grpc.aio, and the server's status.

    A write after the end of the call fails. This is normal: the server matched a stop string, or
    failed the stream. grpc.aio then replaces the status by INTERNAL, even if it has arrived, and
    its `read` skips the remaining responses (https://github.com/grpc/grpc/issues/36066). Here the
    status is recorded when it arrives, and responses are read by iteration, which skips none.
    """

    def __init__(self, call: Any) -> None:
        """Wrap a grpc.aio.StreamStreamCall that has just started."""
        self._call = call
        self._answers = aiter(call)
        self._has_status = asyncio.Event()
        self._failure: grpc.aio.AioRpcError | None = None  # the server's status; None for OK
        call.add_done_callback(self._note)

    async def read(self) -> Response | None:
        """The next response; None after the last. Raises AioRpcError after the last response of a
        failed call."""
        try:
            response: Response = await anext(self._answers)
            return response
        except StopAsyncIteration:
            return None
        except grpc.aio.AioRpcError as error:
            if not _is_of_a_write(error):
                raise
            try:
                await asyncio.wait_for(self._has_status.wait(), STATUS_WITHIN_S)
            except TimeoutError:
                raise error from None
            if self._failure is not None:
                raise self._failure from None
            return None

    def cancel(self) -> None:
        """Cancel the call, unless it has ended."""
        self._call.cancel()

    def _note(self, call: Any) -> None:
        """Record the status of the call. grpc.aio calls this whenever it sets one."""
        # The only public way to the complete status. The call has one, so this does not suspend.
        status = call.wait_for_connection()
        try:
            status.send(None)
        except StopIteration:
            self._has_status.set()
        except grpc.aio.AioRpcError as error:
            if not _is_of_a_write(error):
                self._failure = error
                self._has_status.set()
        except asyncio.CancelledError:
            pass  # the reader is cancelled too


def _is_of_a_write(error: grpc.aio.AioRpcError) -> bool:
    """Whether grpc.aio made this status from a failed write."""
    return (
        error.code() is grpc.StatusCode.INTERNAL
        and "execute_batch" in (error.debug_error_string() or "")
        and not error.trailing_metadata()
    )


def is_being_cancelled() -> bool:
    """Whether the current task was cancelled, and not only what it waits for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
