"""A synchronous stream: an iterator, and a thread that reads the source."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextvars import copy_context
from typing import Any, Self, cast

import grpc

from bytepair_client._call import Plain, Response, StreamCall, run
from bytepair_client._stream_state import BaseStream, StreamState


class Stream(BaseStream[Response, Plain], Iterator[Plain]):
    """An iterator of the results of a stream. The stream starts when the first one is requested.

    A thread reads the source, in a copy of the caller's context, and sends each item when it
    arrives. It waits when it is tens of thousands of ids ahead of the results. An exception of the
    source is raised here, after the results of the items before it.

    If the connection breaks, the stream resumes over another one. Closing or dropping the iterator
    cancels the call, and the source is not read further.
    """

    _state: _SharedState[Response, Plain]

    def __init__(self, client: Any, call: StreamCall[Response, Plain]) -> None:
        super().__init__(client, call, _SharedState(call))

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
        self._state.stop(cancel=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    async def _wait(self, seconds: float) -> bool:
        state = self._state
        with state.lock:
            state.attempt += 1
            state.changed()
            return not state.lock.wait_for(lambda: state.over, seconds)

    def _begin(self, source: Iterable[Any] | None) -> None:
        state = self._state
        requests = state.requests(state.attempt)
        state.call = self._client._start(self._method, requests, self._attempts.begin())
        if state.over:  # closed meanwhile, by another thread
            state.stop(cancel=True)
        if source is not None:
            threading.Thread(
                target=copy_context().run,
                args=(state.fill, source, state.readings),
                name="bytepair-stream",
                daemon=True,  # the source may block forever
            ).start()

    async def _receive(self, call: Any) -> Response | None:
        try:
            return cast(Response, next(call))
        except StopIteration:
            return None
        except grpc.RpcError as error:
            raise self._client._error(error, self._timeout) from error


class _SharedState(StreamState[Response, Plain]):
    """The state, shared by three threads: the source's, gRPC's and the reader's."""

    lock: threading.Condition

    def __init__(self, call: StreamCall[Response, Plain]) -> None:
        super().__init__(call)
        self.lock = threading.Condition()

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
            call, self.call = self.call, None
        if cancel and call is not None:
            # Before gRPC's thread ends the requests: the server would take the cancelled stream for
            # a complete one.
            call.cancel()
        with self.lock:
            self.over = True
            self.changed()
