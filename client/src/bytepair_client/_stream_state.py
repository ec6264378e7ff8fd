"""The logic of a stream, except for its I/O."""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncIterable, Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any, Final, Generic, cast

import grpc

from bytepair_client._base import Attempts
from bytepair_client._call import Plain, Response, StreamCall
from bytepair_client._errors import (
    Cancelled,
    DeadlineExceeded,
    InternalError,
    TokenizerError,
    Unavailable,
)
from bytepair_client._send_buffers import other_text
from bytepair_client._status import from_call

#: Maximum size of the requests whose responses were not read, in full requests. This bounds how far
#: the source is read ahead, and keeps even a slow connection busy.
MAX_UNREAD_REQUESTS: Final = 4

Source = Iterable[Any] | AsyncIterable[Any]


class StreamState(ABC, Generic[Response, Plain]):
    """The state of one stream, for those that read its source, send its requests and read its
    responses. It does not refer to the iterator, so that a dropped one is collected at once."""

    lock: AbstractContextManager[object]  # guards all but `call`

    def __init__(self, client: Any, call: StreamCall[Response, Plain]) -> None:
        """Send nothing yet."""
        self.client = client
        self.method = call.method
        self.timeout = call.timeout
        self.attempts = Attempts(client, call.timeout)
        self.buffer = call.buffer
        self.call: Any = None  # gRPC's; None before the start and after the end
        self.source_ended = False  # or failed
        self.failure: BaseException | None = None  # of the source, or for an invalid item of it
        self.over = False  # for the reader
        self._is_complete = False  # the last response was read: only the status is missing
        self._woken = client._event()  # set when the stream is closed
        self.attempt = 0  # requests of earlier attempts end
        self.readings = 0  # how often the source was read again; earlier readings stop
        # A source that was started is not kept, so that it ends when its reader is dropped.
        self._source: Source | None = call.source
        self._to_read_again: Source | None = call.source if call.can_read_again else None
        self._consumed = -1  # by a server, at most, over any connection
        self._unread: deque[int] = deque()  # the sizes of requests whose responses were not read
        self._unread_size = 0
        self._first: Any = None  # the first response, over any connection
        self._latest: Any = self.method.parse(b"")
        # The extra response that a server sends before it fails the stream. It is valid only until
        # the stream advances over another connection.
        self._extra: Any = None
        self._ready: deque[Plain] = deque()  # values to return next
        self._error: TokenizerError | None = None  # to raise after the values of `_extra`
        self._reading = threading.Lock()  # held while a thread or task waits for the next value
        self._is_cut_off = False  # a wait for a value was cancelled or interrupted

    @abstractmethod
    def changed(self) -> None:
        """Wake those that wait for a change. Called with the lock."""

    @abstractmethod
    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until a change makes the condition true. Called with the lock."""

    @abstractmethod
    def begin(self, source: Any) -> None:
        """Start an attempt, and start reading the source unless it is None."""

    @abstractmethod
    async def receive(self, call: Any) -> Response | None:
        """The next response of a call; None after the last. Raises gRPC's errors."""

    def stop(self) -> object:
        """End the stream, and cancel the call unless it has ended."""
        with self.lock:
            call, self.call, self._source = self.call, None, None
        if call is not None:
            call.cancel()  # before the requests end, or the server takes the stream for complete
        with self.lock:
            self.over = True
            self.failure = None  # its traceback refers to this state, and to the source
            self._woken.set()
            self.changed()
        return None

    async def fill(self, source: Source, reading: int) -> None:
        """Read the source, in a thread or task of its own."""
        try:
            if isinstance(source, AsyncIterable):
                await self._fill_from(aiter(source), reading)
            else:
                for item in source:
                    if not await self._put(item, reading):
                        return
                    await self.yield_control()
        except BaseException as error:  # raised by the reader
            self._end_source(reading, error)
        else:
            self._end_source(reading, None)

    def _end_source(self, reading: int, failure: BaseException | None) -> None:
        if isinstance(failure, asyncio.CancelledError):
            # As it is, it would look like the cancellation of the reader's task.
            cause, failure = failure, Cancelled("the source of the stream was cancelled")
            failure.__cause__ = cause
        with self.lock:
            if self._has_left(reading):
                return
            self.source_ended = True
            self.failure = failure
            self.changed()
            call = self.call if self.has_failed else None
        # Without the lock, for which gRPC's thread may wait while it holds the call.
        if call is not None:
            call.cancel()  # wakes the reader

    async def _fill_from(self, items: Any, reading: int) -> None:
        """Read an asynchronous source. A generator may cancel this task while an item of it waits
        for room, such as by `asyncio.timeout`: the exception is then raised at its `yield`."""
        is_cancelled = False
        while True:
            try:
                if is_cancelled:
                    item = await items.athrow(asyncio.CancelledError())
                else:
                    item = await anext(items)
            except StopAsyncIteration:
                return
            try:
                is_cancelled = False
                if not await self._put(item, reading):
                    return
            except asyncio.CancelledError:
                is_cancelled = hasattr(items, "athrow")
                if not is_cancelled:
                    raise

    async def _put(self, item: object, reading: int) -> bool:
        """Add an item to the buffer, once there is room. Returns False if no more are needed.
        Raises CancelledError after all of the item was added."""
        is_cancelled = False
        for part in self.buffer.parts(item):
            with self.lock:
                if self.buffer.is_full and not is_cancelled:
                    try:
                        await self.until(lambda: self._has_left(reading) or not self.buffer.is_full)
                    except asyncio.CancelledError:
                        is_cancelled = True
                if self._has_left(reading):
                    return False
                self.buffer.put(part)
                self.changed()
        if is_cancelled:
            raise asyncio.CancelledError
        return not self._has_left(reading)

    def _has_left(self, reading: int) -> bool:
        """Whether nobody needs this reading of the source any more."""
        return self.over or self.readings != reading

    async def yield_control(self) -> None:
        """Let other tasks of the event loop run; nothing in a thread."""

    async def request(self, attempt: int) -> bytes | None:
        """The next request of an attempt; None after the last, and if a later attempt has begun."""

        def has_ended() -> bool:
            is_sent = self.source_ended and self.failure is None and self.buffer.is_empty
            return self.over or self.attempt != attempt or is_sent

        def may_send() -> bool:
            most = MAX_UNREAD_REQUESTS * self.buffer.max_request
            return not self.buffer.is_empty and self._unread_size < most

        with self.lock:
            await self.until(lambda: has_ended() or may_send())
            if has_ended():
                return None
            before = self.buffer.sent
            request = self.buffer.take()
            if self.method.response_per_request:
                self._unread.append(max(1, self.buffer.sent - before))  # or it may be empty
                self._unread_size += self._unread[-1]
            self.changed()
            return request

    @property
    def has_failed(self) -> bool:
        """Whether to raise `failure`: the responses to all input before it were read."""
        if self.failure is None:
            return False
        return not self.method.response_per_request or (self.buffer.is_empty and not self._unread)

    def raise_failure(self) -> None:
        """Raise the exception of the source, if all results before it were returned."""
        with self.lock:
            if self.failure is not None and self.has_failed:
                raise self.failure

    async def next(self) -> Plain | None:
        """The next value; None after the last."""
        if not self._reading.acquire(blocking=False):
            raise RuntimeError(
                "another thread or task is waiting for the next result of this stream: only one "
                "may read it"
            )
        try:
            if self._is_cut_off:
                raise Cancelled(
                    "the wait for an earlier result was cancelled, and the stream with it; "
                    "asyncio.wait limits the time of a wait without cancelling it"
                )
            if self._source is not None:
                source, self._source = self._source, None
                if await self.wait(self.attempts.reserve()):
                    self.begin(source)
            while not self._ready and (call := self.call) is not None:
                self._ready.extend(filter(None, await self._read_from(call)))
            return self._ready.popleft() if self._ready else None
        except BaseException as error:
            self._is_cut_off = self._is_cut_off or not isinstance(error, Exception)
            self.stop()
            raise
        finally:
            self._reading.release()

    async def wait(self, seconds: float) -> bool:
        """Wait before an attempt. Returns False if the stream was closed meanwhile. Raises
        ClientClosed if the client was."""
        self.attempt += 1
        await self.client._sleep(seconds, self._woken)
        return not self.over

    async def _read_from(self, call: Any) -> Iterable[Plain]:
        """Read the next response. Returns its values; none at the end and on resuming."""
        self.raise_failure()
        if self._error is not None:
            raise self._error
        try:
            response = await self.receive(call)
        except grpc.RpcError as error:
            self.raise_failure()  # the cause, if the source failed and the call was cancelled
            if self._is_complete:
                self.stop()
                return ()
            failure = from_call(error, self.client.target, self.timeout, is_stream=True)
            failure.__cause__ = error
            return await self._continue(failure)
        if response is None:
            self.stop()
            return ()
        return self.read(response)

    def read(self, response: Response) -> Iterable[Plain]:
        """Process a response. Returns its plain values, if any. Raises an error if it is the last
        one and not all input was read again or received by the server."""
        with self.lock:
            self.changed()  # more requests may be sent
            is_extra = not self.buffer.read(response)
            consumed = _consumed_by(response)
            if is_extra:
                if self._extra is None or consumed >= _consumed_by(self._extra):
                    self._extra = response
                return ()
            if consumed > self._consumed:
                self._consumed = consumed
                self._extra = None  # its output comes again
                self.attempts.progressed()
            if self._unread:  # the last response has no request
                self._unread_size -= self._unread.popleft()
            if not self.method.response_per_request or getattr(response, "finished", False):
                self.over = self._is_complete = True
                self._check_consumed(response)
            return self._note(response)

    def _note(self, response: Response) -> Iterable[Plain]:
        if self._first is None:
            self._first = type(response)()
            self._first.CopyFrom(response)
        else:  # the first of a later connection has these
            response.ClearField("encoding")
            response.ClearField("fingerprint")
        if _consumed_by(response) >= self._consumed:  # or its input was sent again
            self._latest = response
        return self.method.plain(response)

    def _check_consumed(self, last: Any) -> None:
        # Some types of responses lack one of these fields.
        if getattr(last, "stop_matched", "") or getattr(last, "limit_exceeded", False):
            return  # the server stopped reading on purpose
        if self.buffer.sent < self.buffer.reread:
            raise other_text()
        consumed = _consumed_by(last)
        if consumed != self.buffer.sent:
            raise InternalError(
                f"the server received {consumed} of the {self.buffer.sent} ids or bytes that were "
                "sent: messages of the stream were lost; start it again",
                code=grpc.StatusCode.DATA_LOSS.name,
            )

    async def _continue(self, error: TokenizerError) -> Iterable[Plain]:
        """Resume. If that is impossible, return the values of an extra response, and raise the
        error at the next read."""
        seconds = await self.attempts.wait(error)
        if seconds is not None:
            if (self.buffer.can_rewind or self._to_read_again is not None) and not self.over:
                try:
                    if await self.wait(seconds) and await self.wait(self.attempts.reserve()):
                        self.begin(self._rewind())
                    return ()
                except DeadlineExceeded as late:
                    late.__cause__, error = error, late
            await self.client._explain(error)
        values = () if self._extra is None else self._note(self._extra)
        self.buffer.correct(error)
        if self._first is not None:
            if isinstance(error, Unavailable) and error.reason is None:
                self._name_break(error)
            if not self.buffer.can_rewind:
                error.add_note(
                    "The stream was not resumed at another server: too much of it was pending."
                )
        self._error = error
        return values

    def _rewind(self) -> Source | None:
        """Prepare to resume over another connection. Returns the source if it must be read again
        from its start; None to continue with it."""
        with self.lock:
            self._unread.clear()
            self._unread_size = 0
            self.changed()
            is_kept = self.buffer.can_rewind
            self.buffer.rewind(self._first)
            if is_kept:
                return None
            self.source_ended, self.failure = False, None
            self.readings += 1
            return self._to_read_again

    def _name_break(self, failure: Unavailable) -> None:
        """Say in the message that a server did answer, and how often the stream tried to resume."""
        target, tries = self.client.target, self.attempts.repeated
        cause = failure.message.removeprefix(f"no answer from {target}: ")
        attempts = "1 attempt" if tries == 1 else f"{tries} attempts"
        resumed = f", and no server answered in {attempts} to resume" if tries else ""
        failure.message = f"the connection to {target} broke{resumed}: {cause}"


def _consumed_by(response: Any) -> int:
    """The number of ids or bytes that the server has consumed."""
    of_ids: int | None = getattr(response, "tokens_consumed", None)
    return int(response.bytes_consumed) if of_ids is None else of_ids


class BaseStream(Generic[Response, Plain]):
    """What the iterators of both clients have."""

    _state: StreamState[Response, Plain]

    @property
    def last(self) -> Response:
        """The last response: a message of `bytepair.v1`, with the encoding and its fingerprint. An
        empty message before the first result."""
        state = self._state
        last: Any = state.method.parse(b"")
        last.CopyFrom(state._latest)
        if state._first is not None:
            last.encoding, last.fingerprint = state._first.encoding, state._first.fingerprint
        return cast(Response, last)
