"""A stream, for ordinary programs: an iterator, behind which a thread reads the source."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextvars import copy_context
from types import TracebackType
from typing import Any, Generic, Self, TypeVar, cast

import grpc
from google.protobuf.message import Message

from bytepair_client._retries import Attempts
from bytepair_client._call import StreamCall
from bytepair_client._errors import TokenizerError
from bytepair_client._stream_state import Exchange
from bytepair_client._status import FailedCall

Response = TypeVar("Response", bound=Message)
Plain = TypeVar("Plain")


class Stream(Iterator[Plain], Generic[Response, Plain]):
    """What a stream gives, as it comes. Nothing is sent before the first piece is asked for.

    The source is read by a thread of its own, in a copy of the caller's context, so that ids
    are sent when they arrive and not when the next piece is asked for; some ten thousand ids
    ahead of the pieces it has to wait. What it raises is raised here, after the pieces of what
    it had given.

    The call is cancelled when the iterator is closed or dropped. A source that is giving its
    next item at that time is not asked for another one.
    """

    def __init__(
        self,
        call: StreamCall[Response, Plain],
        attempts: Attempts,
        start: Callable[[Iterator[bytes], float | None], Any],
        error: Callable[[FailedCall], TokenizerError],
    ) -> None:
        """Start nothing yet.

        Args:
            call: What is to be carried out.
            attempts: How often it is begun.
            start: Begins the RPC with these requests, and these seconds to end in.
            error: What a failed call is raised as.
        """
        self._source: Iterable[Any] | None = cast(Iterable[Any], call.source)
        self._requests: _Requests[Response, Plain] = _Requests(Exchange(call))
        self._attempts = attempts
        self._start = start
        self._error = error

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Plain:
        requests = self._requests
        try:
            if self._source is not None:
                self._begin()
            while (call := requests.call) is not None:
                piece = self._read(requests, call)
                if piece:
                    return piece
        except BaseException:
            self.close()
            raise
        raise StopIteration

    @property
    def last(self) -> Response:
        """The last answer that was read: the message of `bytepair.v1`, with the encoding and
        its fingerprint. An empty message before the first piece."""
        return self._requests.exchange.last

    def close(self) -> None:
        """Cancel the call, unless it is over. There are no more pieces."""
        self._source = None
        self._requests.stop(cancel=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def _begin(self) -> None:
        source, self._source = self._source, None
        self._begin_attempt()
        threading.Thread(
            target=copy_context().run,
            args=(self._requests.fill, source),
            name="bytepair-stream",
            daemon=True,  # a source may wait for ever
        ).start()

    def _begin_attempt(self) -> None:
        requests = self._requests
        requests.call = self._start(requests.of_attempt(), self._attempts.begin())

    def _read(self, requests: _Requests[Response, Plain], call: Any) -> Plain | None:
        """The piece of the next answer; None at the end, which drops the call, and if the stream
        has begun again."""
        requests.raise_failure()
        try:
            response: Response = next(call)
        except StopIteration:
            requests.stop(cancel=False)
            return None
        except grpc.RpcError as error:
            requests.raise_failure()  # for which the call was cancelled
            failure = self._error(cast(FailedCall, error))
            seconds = self._attempts.wait(failure)
            if seconds is None or not requests.begin_again(seconds):
                raise failure from error
            self._begin_attempt()
            return None
        return requests.read(response)


class _Requests(Generic[Response, Plain]):
    """The requests of a stream, between three threads: the source's, gRPC's and the reader's.

    It knows nothing of the Stream, so that one which is dropped is dropped at once.

    Attributes:
        exchange: The state; whoever uses it holds `_changed`.
        call: gRPC's; None before the start and after the end.
    """

    def __init__(self, exchange: Exchange[Response, Plain]) -> None:
        self.exchange = exchange
        self.call: Any = None
        self._changed = threading.Condition()
        self._attempt = 0

    def fill(self, source: Iterable[Any]) -> None:
        """Put in all that `source` gives: what the source's thread does."""
        exchange = self.exchange
        failure: BaseException | None = None
        try:
            for item in source:
                for part in exchange.outbox.parts(item):
                    with self._changed:
                        self._changed.wait_for(lambda: exchange.over or exchange.can_put)
                        if exchange.over:
                            return
                        exchange.outbox.put(part)
                        self._changed.notify_all()
                if exchange.over:
                    return
        except BaseException as error:  # whatever it is, it is the reader's to handle
            failure = error
        with self._changed:
            exchange.source_ended = True
            exchange.failure = failure
            self._changed.notify_all()
            call = self.call if exchange.has_failed else None
        # Without the lock: gRPC's own thread may hold the call and wait for it.
        if call is not None:
            call.cancel()  # wakes the reader

    def of_attempt(self) -> Iterator[bytes]:
        """The requests of the current attempt: what gRPC's thread asks for."""
        return self._until_after(self._attempt)

    def _until_after(self, attempt: int) -> Iterator[bytes]:
        exchange = self.exchange

        def is_over() -> bool:
            return exchange.over or self._attempt != attempt or exchange.is_complete

        while True:
            with self._changed:
                self._changed.wait_for(lambda: is_over() or exchange.can_take)
                if is_over():
                    return
                request = exchange.take()
                self._changed.notify_all()
            yield request

    def begin_again(self, seconds: float) -> bool:
        """Wait, and prepare for another attempt. Returns False if there can be none."""
        exchange = self.exchange
        with self._changed:
            if not exchange.can_begin_again:
                return False
            self._attempt += 1
            exchange.begin_again()
            self._changed.notify_all()  # the last attempt's thread
            return not self._changed.wait_for(lambda: exchange.over, seconds)

    def read(self, response: Response) -> Plain:
        """Note an answer, and let requests go that waited for it to be read."""
        with self._changed:
            piece = self.exchange.read(response)
            self._changed.notify_all()
        return piece

    def raise_failure(self) -> None:
        """Raise what the source raised, if it is due."""
        with self._changed:
            if self.exchange.has_failed:
                failure, self.exchange.failure = self.exchange.failure, None
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
            self.exchange.over = True
            self._changed.notify_all()
