"""A stream for threaded programs: an iterator, with a thread that reads the source."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from contextvars import copy_context
from typing import Any, Generic, Self, TypeVar, cast

import grpc
from google.protobuf.message import Message

from bytepair_client._call import StreamCall, run
from bytepair_client._status import FailedCall
from bytepair_client._streams.state import BaseStream, StreamState

Response = TypeVar("Response", bound=Message)
Plain = TypeVar("Plain")


class Stream(BaseStream[Response, Plain], Iterator[Plain]):
    """An iterator of the results of a stream. Nothing is sent before the first one is requested.

    A thread reads the source, in a copy of the caller's context, and sends each item when it
    arrives. It waits when it is some ten thousand ids ahead of the results. An exception of the
    source is raised here, after the results of the items before it.

    If the connection breaks, the stream resumes over another one. The call is cancelled when the
    iterator is closed or dropped; the source is not read further.
    """

    _requests: _Requests[Response, Plain]

    def __init__(self, client: Any, call: StreamCall[Response, Plain]) -> None:
        super().__init__(client, call, _Requests(StreamState(call)))

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Plain:
        piece = run(self._next())
        if piece is None:
            raise StopIteration
        return piece

    def close(self) -> None:
        """Cancel the call, unless it is over. The iterator ends."""
        self._source = None
        self._requests.stop(cancel=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    async def _begin(self, source: Iterable[Any]) -> None:
        self._begin_attempt()
        self._read_source(source)

    async def _answer(self, call: Any) -> Response | None:
        try:
            return cast(Response, next(call))
        except StopIteration:
            return None
        except grpc.RpcError as error:
            raise self._client._error(cast(FailedCall, error), self._timeout) from error

    async def _resume(self, seconds: float) -> bool:
        if not self._requests.wait(seconds):
            return False
        source = self._requests.continue_elsewhere()
        self._begin_attempt()
        if source is not None:
            self._read_source(cast(Iterable[Any], source))
        return True

    def _begin_attempt(self) -> None:
        requests = self._requests
        time.sleep(self._attempts.rate_delay())
        sent = requests.of_attempt()
        requests.call = self._client._start(self._method, sent, self._attempts.begin())

    def _read_source(self, source: Iterable[Any]) -> None:
        threading.Thread(
            target=copy_context().run,
            args=(self._requests.fill, source, self._requests.reading),
            name="bytepair-stream",
            daemon=True,  # a source may block for ever
        ).start()


class _Requests(Generic[Response, Plain]):
    """The requests of a stream, between three threads: the source's, gRPC's and the reader's.

    It knows nothing of the Stream, so that one which is dropped is dropped at once.

    Attributes:
        state: The state of the stream; used under `_changed`.
        call: gRPC's; None before the start and after the end.
        reading: The number of the reading of the source, of which the last one counts.
    """

    def __init__(self, state: StreamState[Response, Plain]) -> None:
        self.state = state
        self.call: Any = None
        self.reading = 0
        self._changed = threading.Condition()
        self._attempt = 0

    def fill(self, source: Iterable[Any], reading: int) -> None:
        """Put in all that `source` gives: what the source's thread does."""
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
        except BaseException as error:  # whatever it is, it is the reader's to handle
            failure = error
        with self._changed:
            if is_over():
                return
            state.source_ended = True
            state.failure = failure
            self._changed.notify_all()
            call = self.call if state.has_failed else None
        # Without the lock: gRPC's own thread may hold the call and wait for it.
        if call is not None:
            call.cancel()  # wakes the reader

    def of_attempt(self) -> Iterator[bytes]:
        """The requests of the current attempt: what gRPC's thread asks for."""
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
        """Wait before another attempt. Returns False if the stream was closed meanwhile."""
        with self._changed:
            self._attempt += 1
            self._changed.notify_all()  # the last attempt's thread
            return not self._changed.wait_for(lambda: self.state.over, seconds)

    def continue_elsewhere(self) -> object | None:
        """Prepare for another attempt. Returns the source if it is to be read again."""
        with self._changed:
            source = self.state.continue_elsewhere()
            if source is not None:
                self.reading += 1
            self._changed.notify_all()
        return source

    def read(self, response: Response) -> Plain | None:
        """Note an answer, and let requests go that waited for it to be read."""
        with self._changed:
            piece = self.state.read(response)
            self._changed.notify_all()
        return piece

    def raise_failure(self) -> None:
        """Raise what the source raised, if it is due."""
        with self._changed:
            if self.state.has_failed:
                failure, self.state.failure = self.state.failure, None
                assert failure is not None  # it has failed
                raise failure

    def stop(self, *, cancel: bool) -> None:
        """Let all threads end."""
        with self._changed:
            call, self.call = self.call, None
        if cancel and call is not None:
            # Before gRPC's thread is let go, which would tell the server that the source has
            # ended: a stream that is given up would be answered, and counted as done.
            call.cancel()
        with self._changed:
            self.state.over = True
            self._changed.notify_all()
