"""A synchronous stream: an iterator, and a thread that reads the source."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextvars import copy_context
from typing import Any, Generic, Self, cast

import grpc

from bytepair_client._call import Plain, Response, StreamCall, run
from bytepair_client._status import FailedCall
from bytepair_client._streams.state import BaseStream, StreamState


class Stream(BaseStream[Response, Plain], Iterator[Plain]):
    """An iterator of the results of a stream. The stream starts when the first one is requested.

    A thread reads the source, in a copy of the caller's context, and sends each item when it
    arrives. It waits when it is tens of thousands of ids ahead of the results. An exception of the
    source is raised here, after the results of the items before it.

    If the connection breaks, the stream resumes over another one. Closing or dropping the iterator
    cancels the call, and the source is not read further.
    """

    _requests: _Requests[Response, Plain]

    def __init__(self, client: Any, call: StreamCall[Response, Plain]) -> None:
        super().__init__(client, call, _Requests(StreamState(call)))

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Plain:
        value = run(self._next())
        if value is None:
            raise StopIteration
        return value

    def close(self) -> None:
        """Cancel the call unless it has ended. The iterator ends."""
        self._source = None
        self._requests.stop(cancel=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    async def _begin(self, source: Iterable[Any]) -> None:
        if self._requests.wait(self._attempts.rate_delay()):
            self._begin_attempt()
            self._read_source(source)

    async def _receive(self, call: Any) -> Response | None:
        try:
            return cast(Response, next(call))
        except StopIteration:
            return None
        except grpc.RpcError as error:
            raise self._client._error(cast(FailedCall, error), self._timeout) from error

    async def _resume(self, seconds: float) -> bool:
        if not self._requests.wait(seconds + self._attempts.rate_delay()):
            return False
        source = self._requests.resume()
        self._begin_attempt()
        if source is not None:
            self._read_source(cast(Iterable[Any], source))
        return True

    def _begin_attempt(self) -> None:
        requests = self._requests
        sent = requests.of_attempt()
        requests.call = self._client._start(self._method, sent, self._attempts.begin())
        if requests.state.over:  # closed meanwhile, by another thread
            requests.stop(cancel=True)

    def _read_source(self, source: Iterable[Any]) -> None:
        threading.Thread(
            target=copy_context().run,
            args=(self._requests.fill, source, self._requests.reading),
            name="bytepair-stream",
            daemon=True,  # the source may block forever
        ).start()


class _Requests(Generic[Response, Plain]):
    """The requests of a stream, shared by three threads: the source's, gRPC's and the reader's.

    It does not refer to the Stream, so that a dropped Stream is collected at once.

    Attributes:
        state: The state of the stream; guarded by `_changed`.
        call: The gRPC call; None before the start and after the end.
        reading: How often the source was read from its start before. Older readings stop.
    """

    def __init__(self, state: StreamState[Response, Plain]) -> None:
        self.state = state
        self.call: Any = None
        self.reading = 0
        self._changed = threading.Condition()
        self._attempt = 0

    def fill(self, source: Iterable[Any], reading: int) -> None:
        """Read the source. Runs in the source's thread."""
        state = self.state
        failure: BaseException | None = None

        def is_over() -> bool:
            return state.over or self.reading != reading

        try:
            for item in source:
                for part in state.buffer.parts(item):
                    with self._changed:
                        self._changed.wait_for(lambda: is_over() or state.can_put)
                        if is_over():
                            return
                        state.buffer.put(part)
                        self._changed.notify_all()
                if is_over():
                    return
        except BaseException as error:  # raised in the reader's thread
            failure = error
        with self._changed:
            if is_over():
                return
            state.source_ended = True
            state.failure = failure
            self._changed.notify_all()
            call = self.call if state.has_failed else None
        # Without the lock, for which gRPC's thread may wait while it holds the call.
        if call is not None:
            call.cancel()  # wakes the reader

    def of_attempt(self) -> Iterator[bytes]:
        """The requests of the current attempt. gRPC's thread iterates them."""
        return self._until_after(self._attempt)

    def _until_after(self, attempt: int) -> Iterator[bytes]:
        state = self.state

        def is_over() -> bool:
            return state.over or self._attempt != attempt or state.is_complete

        while True:
            with self._changed:
                self._changed.wait_for(lambda: is_over() or state.can_take)
                if is_over():
                    return
                request = state.take()
                self._changed.notify_all()
            yield request

    def wait(self, seconds: float) -> bool:
        """Wait before an attempt. Returns False if the stream was closed meanwhile."""
        with self._changed:
            self._attempt += 1
            self._changed.notify_all()  # ends the requests of the last attempt
            return not self._changed.wait_for(lambda: self.state.over, seconds)

    def resume(self) -> object | None:
        """Prepare the next attempt. Returns the source if it must be read again."""
        with self._changed:
            source = self.state.resume()
            if source is not None:
                self.reading += 1
            self._changed.notify_all()
        return source

    def read(self, response: Response) -> Plain | None:
        """Process a response, so that more requests may be sent."""
        with self._changed:
            value = self.state.read(response)
            self._changed.notify_all()
        return value

    def raise_failure(self) -> None:
        """Raise the exception of the source, if all results before it were returned."""
        with self._changed:
            self.state.raise_failure()

    def stop(self, *, cancel: bool) -> None:
        """End all threads."""
        with self._changed:
            call, self.call = self.call, None
        if cancel and call is not None:
            # Before gRPC's thread ends the requests: the server would take the cancelled stream for
            # a complete one.
            call.cancel()
        with self._changed:
            self.state.over = True
            self._changed.notify_all()
