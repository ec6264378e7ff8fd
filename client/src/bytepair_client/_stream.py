"""The streams of both clients: iterators, and the thread or task that reads the source."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
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
    source is raised here, after the results of the items before it.

    If the connection breaks, the stream resumes over another one. Closing or dropping the iterator
    cancels the call, and the source is not read further.
    """

    def __init__(self, client: Any, call: StreamCall[Response, Plain]) -> None:
        self._state = _ThreadState(client, call)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Plain:
        value = run(self._state.next())
        if value is None:
            raise StopIteration
        return value

    def close(self) -> None:
        """Cancel the call unless it has ended. The iterator ends."""
        self._state.stop(cancel=True)

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

    async def wait(self, seconds: float) -> bool:
        with self.lock:
            self.attempt += 1
            self.changed()
            return not self.lock.wait_for(lambda: self.over, seconds)

    def begin(self, source: Iterable[Any] | None) -> None:
        requests = self.requests(self.attempt)
        self.call = self.client._start(self.method, requests, self.attempts.begin())
        if self.over:  # closed meanwhile, by another thread
            self.stop(cancel=True)
        if source is not None:
            threading.Thread(
                target=copy_context().run,
                args=(self.fill, source, self.readings),
                name="bytepair-stream",
                daemon=True,  # the source may block forever
            ).start()

    async def receive(self, call: Any) -> Response | None:
        return cast(Response | None, next(call, None))

    def changed(self) -> None:
        self.lock.notify_all()

    def fill(self, source: Iterable[Any], reading: int) -> None:
        """Read the source. Runs in the source's thread."""
        failure: BaseException | None = None

        def is_over() -> bool:
            return self.over or self.readings != reading

        try:
            for item in source:
                for part in self.buffer.parts(item):
                    with self.lock:
                        self.lock.wait_for(lambda: is_over() or not self.buffer.is_full)
                        if is_over():
                            return
                        self.buffer.put(part)
                        self.changed()
                if is_over():
                    return
        except BaseException as error:  # raised in the reader's thread
            failure = error
        with self.lock:
            if is_over():
                return
            self.source_ended = True
            self.failure = failure
            self.changed()
            call = self.call if self.has_failed else None
        # Without the lock, for which gRPC's thread may wait while it holds the call.
        if call is not None:
            call.cancel()  # wakes the reader

    def requests(self, attempt: int) -> Iterator[bytes]:
        """The requests of an attempt. gRPC's thread iterates them."""

        def is_over() -> bool:
            return self.over or self.attempt != attempt or self.is_complete

        while True:
            with self.lock:
                self.lock.wait_for(lambda: is_over() or self.can_take)
                if is_over():
                    return
                request = self.take()
            yield request

    def stop(self, *, cancel: bool) -> None:
        with self.lock:
            call, self.call, self._source = self.call, None, None
        if cancel and call is not None:
            # Before gRPC's thread ends the requests: the server would take the cancelled stream for
            # a complete one.
            call.cancel()
        with self.lock:
            self.over = True
            self.changed()


class AsyncStream(BaseStream[Response, Plain], AsyncIterator[Plain]):
    """An asynchronous iterator of the results of a stream: a Stream for asyncio.

    A task reads the source, which may be asynchronous. Cancelling the task that waits for a result
    cancels the call and an asynchronous source too.
    """

    _state: _TaskState[Response, Plain]

    def __init__(self, client: Any, call: StreamCall[Response, Plain]) -> None:
        self._state = _TaskState(client, call)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Plain:
        value = await self._state.next()
        if value is None:
            raise StopAsyncIteration
        return value

    async def aclose(self) -> None:
        """Cancel the call unless it has ended. The iterator ends, after the source."""
        await asyncio.gather(*self._state.stop(cancel=True), return_exceptions=True)

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
        self._loop: asyncio.AbstractEventLoop | None = None

    async def wait(self, seconds: float) -> bool:
        self.attempt += 1
        self.changed()
        await asyncio.sleep(seconds)
        return not self.over

    def begin(self, source: Source | None) -> None:
        requests = self.requests(self.attempt)
        call = self.client._start(self.method, requests, self.attempts.begin())
        self.call = Responses(call)
        self._loop = asyncio.get_running_loop()
        if source is not None:
            if self._filling is not None:
                self._filling.cancel()
            self._filling = self._loop.create_task(self._fill(source))

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

    def changed(self) -> None:
        self._change.set()

    def read(self, response: Response) -> Iterable[Plain]:
        values = super().read(response)
        if self.over and self._filling is not None:
            self._filling.cancel()  # an asynchronous source may wait for long
        return values

    def stop(self, *, cancel: bool) -> list[asyncio.Task[None]]:
        """End the stream, and cancel the call if wanted. Returns the source's task, if it has
        started; it ends soon."""
        call, self.call, self._source = self.call, None, None
        if cancel and call is not None:
            call.cancel()  # before the requests end, as in the threaded stream
        self.over = True
        self.changed()
        filling, self._filling = self._filling, None
        if filling is not None:
            filling.cancel()
        return [] if filling is None else [filling]

    def drop(self) -> None:
        """Stop, from any thread, because any may run the garbage collector."""
        if self.call is not None and self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(lambda: self.stop(cancel=True))

    async def _fill(self, source: Source) -> None:
        try:
            if isinstance(source, AsyncIterable):
                async for item in source:
                    await self._put(item)
            else:
                for item in source:
                    await self._put(item)
                    await asyncio.sleep(0)  # let other tasks run
        except BaseException as error:  # raised by the reader
            if is_being_cancelled():
                raise  # the reader stopped this task
            self.failure = error
        self.source_ended = True
        self.changed()
        if self.has_failed and self.call is not None:
            self.call.cancel()  # wakes the reader

    async def _put(self, item: Any) -> None:
        for part in self.buffer.parts(item):
            while self.buffer.is_full:
                self._change.clear()
                await self._change.wait()
            self.buffer.put(part)
            self.changed()

    async def requests(self, attempt: int) -> AsyncIterator[bytes]:
        """The requests of an attempt. A task of gRPC iterates them."""
        while not (self.over or self.attempt != attempt or self.is_complete):
            if self.can_take:
                yield self.take()
            else:
                self._change.clear()
                await self._change.wait()


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
        finally:
            status.close()


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
