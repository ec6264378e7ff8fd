"""The concurrency limiter with its admission queue.

Small requests do not pass it: they are answered as soon as they are read. A larger one holds a slot
from before its message is read until it is answered, so the server's memory is bounded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from typing import Any, Final

from bytepair_server.admission.queue import FairQueue
from bytepair_server.call import Call
from bytepair_server.config.settings import Settings
from bytepair_server.errors import RETRY_SECONDS, Draining, Overloaded

#: Time for a message to arrive while other calls are queued.
SLOW_MESSAGE_SECONDS: Final = 1.0
#: Time for calls that a drain cancels to send their status.
CANCEL_SECONDS: Final = 1.0


class Limiter:
    """Admits calls and streams. Not thread-safe.

    Attributes:
        in_flight: Number of unary calls that hold a slot.
        held_bytes: Bytes that these calls hold.
        reading: The slots whose messages are being read.
        open_streams: Number of open streams. They hold no slot: mostly they wait for their callers.
        is_open: Whether the encodings are loaded.
        draining: Whether new calls are rejected.
    """

    def __init__(self, settings: Settings) -> None:
        """Make a limiter that admits nothing until `open`."""
        self._settings: Final = settings
        self.held_bytes = 0
        self._streams_bytes = 0
        self._queue: Final[FairQueue[Slot]] = FairQueue()
        self.reading: Final[set[Slot]] = set()
        self._calls: Final[set[asyncio.Task[Any]]] = set()
        self._streams: Final[set[asyncio.Task[Any]]] = set()
        self._cut_off: Final[set[asyncio.Task[Any]]] = set()
        self._opened: Final = asyncio.Event()
        self._calls_ended: Final = asyncio.Event()
        self._streams_ended: Final = asyncio.Event()
        self.in_flight = 0
        self.open_streams = 0
        self.is_open = False
        self.draining = False

    @property
    def queued(self) -> int:
        """Number of calls in the admission queue."""
        return len(self._queue)

    @property
    def accepts(self) -> bool:
        """Whether a small request may be answered at once."""
        return self.is_open and not self.draining

    def open(self) -> None:
        """Admit waiting and later calls."""
        self.is_open = True
        self._opened.set()

    async def wait_until_open(self) -> None:
        """Wait for `open`, so that a call during the start is delayed and not rejected."""
        await self._opened.wait()

    async def admit(self, call: Call, size: int, time_remaining: float | None) -> Slot:
        """Wait for a slot; `Slot.close` must follow.

        Args:
            call: The call. Callers get slots fairly.
            size: Size of its message in bytes. While no call holds bytes, a call of any size is
                admitted.
            time_remaining: Seconds until its deadline; None for none. It is queued for at most half
                of that, so that its caller can try again elsewhere.
        Raises:
            Draining: The server is stopping.
            Overloaded: The queue is full, or the call was queued for too long.
        """
        if self.draining:
            raise Draining
        slot = Slot(self, call.fairness_key, size)
        if not self._queue and self._has_room(size):
            self._enter(slot)
            slot.begin()
            return slot
        self._make_room(slot.caller)
        self._queue.put(slot.caller, max(1, size), slot)
        for reading in self.reading:
            reading.limit_reading()
        seconds = self._settings.max_queue_seconds
        if time_remaining is not None:
            seconds = min(seconds, time_remaining / 2)
        timer = asyncio.get_running_loop().call_later(seconds, self._reject, slot)
        try:
            await slot.admitted
        except asyncio.CancelledError:
            if self._queue.discard(slot.caller, slot):
                self.advance()  # the call behind it may fit
            elif _is_granted(slot):
                slot.close()
            raise
        finally:
            timer.cancel()
        slot.begin()
        return slot

    def enter_stream(self) -> None:
        """Open a stream; `leave_stream` must follow.

        Raises:
            Draining: The server is stopping.
            Overloaded: Too many streams are open.
        """
        if self.draining:
            raise Draining
        if self.open_streams >= self._settings.max_open_streams:
            raise Overloaded(RETRY_SECONDS, "open streams", "max_open_streams")
        self.open_streams += 1

    def leave_stream(self) -> None:
        """Count the end of a stream."""
        self.open_streams -= 1
        self._check_drained()

    def add_stream_bytes(self, change: int) -> None:
        """Add to the bytes that all streams hold; negative to release some."""
        self._streams_bytes += change

    def check_stream_bytes(self) -> None:
        """Raise Overloaded if all streams together hold more than `max_streams_bytes`."""
        if self._streams_bytes > self._settings.max_streams_bytes:
            raise Overloaded(RETRY_SECONDS, "bytes held by streams", "max_streams_bytes")

    def track(self, *, is_stream: bool = False) -> asyncio.Task[Any]:
        """Let `drain` cancel the current task until `untrack`."""
        task = asyncio.current_task()
        assert task is not None  # a coroutine runs in a task
        (self._streams if is_stream else self._calls).add(task)
        return task

    def untrack(self, task: asyncio.Task[Any]) -> None:
        """Undo `track`."""
        self._calls.discard(task)
        self._streams.discard(task)

    @property
    def is_cutting_off(self) -> bool:
        """Whether `drain` has cancelled the current task."""
        return asyncio.current_task() in self._cut_off

    def end_grace(self) -> None:
        """End the grace time of `drain` now."""
        self._calls_ended.set()
        self._streams_ended.set()

    async def drain(self, grace_seconds: float, stream_grace_seconds: float) -> tuple[int, int]:
        """Reject new calls, let those in flight finish, and cancel them when time is over. Returns
        the number of calls and of streams that were cancelled."""
        self.draining = True
        while self._queue:
            _refuse(self._queue.pop(), Draining())
        self._check_drained()
        calls, streams = await asyncio.gather(
            self._end(self._calls, self._calls_ended, grace_seconds),
            self._end(self._streams, self._streams_ended, stream_grace_seconds),
        )
        return calls, streams

    async def _end(
        self, tasks: set[asyncio.Task[Any]], ended: asyncio.Event, grace_seconds: float
    ) -> int:
        """Wait for calls of one kind, then cancel the rest. Returns the number of these."""
        # Before `open`, calls wait for encodings that will not be loaded.
        with suppress(TimeoutError):
            await asyncio.wait_for(ended.wait(), grace_seconds if self.is_open else 0)
        late = [*tasks]
        self._cut_off.update(late)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late, timeout=CANCEL_SECONDS)
        return len(late)

    def advance(self) -> None:
        """Give free slots to queued calls."""
        while (slot := self._queue.first()) is not None:
            if slot.admitted.done():  # cancelled, and its task has not run since
                self._queue.discard(slot.caller, slot)
            elif self._has_room(slot.size):
                self._queue.pop()
                self._enter(slot)
                slot.admitted.set_result(None)
            else:
                return

    def release(self) -> None:
        """Count the end of a call in flight."""
        self.in_flight -= 1
        self.advance()
        self._check_drained()

    def _check_drained(self) -> None:
        if self.draining and not self.in_flight:
            self._calls_ended.set()
        if self.draining and not self.open_streams:
            self._streams_ended.set()

    def _has_room(self, size: int) -> bool:
        fits = not self.held_bytes or self.held_bytes + size <= self._settings.max_in_flight_bytes
        return self.in_flight < self._settings.max_in_flight and fits

    def _enter(self, slot: Slot) -> None:
        self.in_flight += 1
        self.held_bytes += slot.size

    def _make_room(self, caller: str) -> None:
        """Make room in the queue for a call. Raises Overloaded if this caller has the most."""
        if not self._settings.max_queue_seconds:
            raise self._full()
        if len(self._queue) < self._settings.max_queued:
            return
        rejection = Overloaded(RETRY_SECONDS, "queued calls", "max_queued")
        newest = self._queue.pop_newest_of_busiest(caller)
        if newest is None:
            raise rejection
        _refuse(newest, rejection)

    def _full(self, *, was_queued: bool = False) -> Overloaded:
        """The error of a call that found no free slot."""
        what, setting = "bytes of calls in flight", "max_in_flight_bytes"
        if self.in_flight >= self._settings.max_in_flight:
            what, setting = "calls in flight", "max_in_flight"
        return Overloaded(RETRY_SECONDS, what, setting, was_queued)

    def _reject(self, slot: Slot) -> None:
        if self._queue.discard(slot.caller, slot):
            _refuse(slot, self._full(was_queued=True))
            self.advance()  # the call behind it may fit


class Slot:
    """A slot: the right of one call to be in flight.

    Attributes:
        caller: The caller of its call.
        size: Bytes that it counts.
        admitted: Done once it is granted; fails with the error if it is not.
        reading: The timeout for reading its message.
    """

    __slots__ = ("_limiter", "_task", "admitted", "caller", "reading", "size")

    def __init__(self, limiter: Limiter, caller: str, size: int) -> None:
        self._limiter: Final = limiter
        self._task: asyncio.Task[Any] | None = None
        self.caller: Final = caller
        self.size = size
        self.admitted: Final[asyncio.Future[None]] = asyncio.get_running_loop().create_future()
        self.reading: asyncio.Timeout | None = None

    def begin(self) -> None:
        """Start the admitted call, which `Limiter.drain` may cancel."""
        self._task = self._limiter.track()

    async def read(self, message: Awaitable[bytes | None]) -> bytes | None:
        """Await the message of the call.

        Raises:
            Overloaded: It did not arrive in time, and other calls are queued.
        """
        try:
            async with asyncio.timeout(None) as self.reading:
                self._limiter.reading.add(self)
                if self._limiter.queued:
                    self.limit_reading()
                raw = await message
        except TimeoutError:
            raise Overloaded(RETRY_SECONDS, "messages that arrive slowly") from None
        finally:
            self._limiter.reading.discard(self)
            self.reading = None  # refers to the task
        size = 0 if raw is None else len(raw)
        self._limiter.held_bytes += size - self.size
        self.size = size
        self._limiter.advance()  # it may have been announced larger
        return raw

    def limit_reading(self) -> None:
        """Limit the time for the message to arrive, because other calls are queued."""
        if self.reading is not None and self.reading.when() is None:
            self.reading.reschedule(asyncio.get_running_loop().time() + SLOW_MESSAGE_SECONDS)

    def close(self) -> None:
        """Release the slot."""
        if self._task is not None:
            self._limiter.untrack(self._task)
            self._task = None  # may refer to an error that refers to this slot
        self._limiter.held_bytes -= self.size
        self._limiter.release()


def _refuse(slot: Slot, rejection: Exception) -> None:
    if not slot.admitted.done():
        slot.admitted.set_exception(rejection)


def _is_granted(slot: Slot) -> bool:
    admitted = slot.admitted
    return admitted.done() and not admitted.cancelled() and admitted.exception() is None
