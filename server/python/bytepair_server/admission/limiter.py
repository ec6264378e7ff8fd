"""Which calls get in: nobody before the encodings are loaded, a bounded number at once, and
nobody new once the server drains."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable
from contextlib import suppress
from typing import Any, Final, TypeVar

from bytepair_server.admission.queue import OTHERS_PART, RETRY_SECONDS, Line
from bytepair_server.errors import Draining, Overloaded

#: Answers that are being sent may have so many times the bytes of the requests that are inside: ids
#: take up to some four times their text.
ANSWERS_TO_REQUESTS: Final = 4
#: Time for the calls that are cut off to tell their callers.
CUT_OFF_SECONDS: Final = 1.0

T = TypeVar("T")


class Gate:
    """Admission of calls. For one event loop only.

    Attributes:
        line: Where unary calls wait that find no room, before they are read.
        in_flight: Unary calls that are inside.
        open_streams: Streaming calls that are inside. They do not count as in flight: most
            of the time they wait for their callers.
        draining: New calls are refused.
        cut_off: The time to finish is over; calls still inside are being cancelled.
    """

    def __init__(
        self,
        *,
        max_in_flight: int,
        max_in_flight_bytes: int,
        max_open_streams: int,
        max_streams_bytes: int,
        max_waiting: int,
        max_wait_seconds: float,
    ) -> None:
        self.line: Final = Line(self._free, max_waiting, max_wait_seconds)
        self._max: Final = max_in_flight
        self._max_bytes: Final = max_in_flight_bytes
        self._bytes = 0
        self._answers_bytes = 0
        #: Of these, by flow.
        self._answers: Final[Counter[str]] = Counter()
        self._max_streams: Final = max_open_streams
        self._max_streams_bytes: Final = max_streams_bytes
        self._streams_bytes = 0
        self._opened: Final = asyncio.Event()
        self._drained: Final = asyncio.Event()
        self._waiting: Final[set[asyncio.Task[Any]]] = set()
        self.in_flight = 0
        self.open_streams = 0
        self.is_open = False
        self.draining = False
        self.cut_off = False

    def open(self) -> None:
        """Let in the calls that came early, and all that follow."""
        self.is_open = True
        self._opened.set()

    @property
    def is_clear(self) -> bool:
        """Whether a call that is computed at once need not wait for anything."""
        return (
            self.is_open
            and not self.draining
            and self.in_flight < self._max
            and not self.line.waiting
        )

    def enter(self) -> None:
        """Come in; `leave` must follow.

        Raises:
            Draining: The server is stopping.
            Overloaded: As many calls as may be are inside.
        """
        if self.draining:
            raise Draining
        if self.in_flight >= self._max:
            raise Overloaded(RETRY_SECONDS, "calls in flight")
        self.in_flight += 1

    def _free(self) -> int:
        return self._max - self.in_flight

    def leave(self) -> None:
        """Go out."""
        self.in_flight -= 1
        self.line.advance()
        self._left()

    def take_in(self, size: int) -> None:
        """Take in the bytes of a call that is inside; `give_back` must follow.

        One call is always taken, whatever its size, or the largest could never be answered.

        Raises:
            Overloaded: The calls inside have as many as they may, together.
        """
        if self._bytes and self._bytes + size > self._max_bytes:
            raise Overloaded(RETRY_SECONDS, "bytes of calls in flight")
        self._bytes += size

    def give_back(self, size: int) -> None:
        """The bytes of a call are no longer needed."""
        self._bytes -= size

    def send(self, flow: str, size: int) -> None:
        """Take note that an answer of so many bytes is about to be sent; `sent` must follow.

        One is always taken, whatever its size. Who has more than half of them leaves a part of the
        room to others.

        Raises:
            Overloaded: Those that are being sent, or are not taken by who asked, have as many as
                they may.
        """
        most = ANSWERS_TO_REQUESTS * self._max_bytes
        if 2 * (self._answers[flow] + size) > most:
            most -= most // OTHERS_PART
        if self._answers_bytes and self._answers_bytes + size > most:
            raise Overloaded(RETRY_SECONDS, "bytes of answers that are being sent")
        self._answers_bytes += size
        self._answers[flow] += size

    def sent(self, flow: str, size: int) -> None:
        """An answer was sent, or nobody is there to take it."""
        self._answers_bytes -= size
        self._answers[flow] -= size
        if not self._answers[flow]:
            del self._answers[flow]

    def enter_stream(self) -> None:
        """Come in with a stream; `leave_stream` must follow.

        Raises:
            Draining: The server is stopping.
            Overloaded: As many streams as may be are inside.
        """
        if self.draining:
            raise Draining
        if self.open_streams >= self._max_streams:
            raise Overloaded(RETRY_SECONDS, "streams open")
        self.open_streams += 1

    def leave_stream(self) -> None:
        """Go out with a stream."""
        self.open_streams -= 1
        self._left()

    def hold(self, change: int) -> None:
        """Count bytes that streams hold more than before, or less where negative."""
        self._streams_bytes += change

    def check_held(self) -> None:
        """Raises Overloaded if all streams together hold more than they may."""
        if self._streams_bytes > self._max_streams_bytes:
            raise Overloaded(RETRY_SECONDS, "bytes of streams in hand")

    def _left(self) -> None:
        if self.draining and not self._inside:
            self._drained.set()

    @property
    def _inside(self) -> int:
        return self.in_flight + self.open_streams

    async def opened(self) -> None:
        """Wait until `open`. A server that has just started answers late, not with an error."""
        await self._opened.wait()

    async def waiting(self, work: Awaitable[T]) -> T:
        """Await something on behalf of a call, which `drain` may have to cut off."""
        task = self.may_cut_off()
        try:
            return await work
        finally:
            self.must_not_cut_off(task)

    def may_cut_off(self) -> asyncio.Task[Any]:
        """Let `drain` cancel the current task, until it is given to `must_not_cut_off`."""
        task = asyncio.current_task()
        assert task is not None  # a coroutine runs in a task
        self._waiting.add(task)
        return task

    def must_not_cut_off(self, task: asyncio.Task[Any]) -> None:
        """Take back what `may_cut_off` allowed."""
        self._waiting.discard(task)

    def hurry(self) -> None:
        """End the grace time of `drain` now."""
        self._drained.set()

    async def drain(self, grace_seconds: float) -> int:
        """Refuse new calls, let those inside finish, and cancel them when time is over.

        Returns:
            How many were cancelled.
        """
        self.draining = True
        self.line.dismiss()
        if self._inside:
            # Before the gate has opened, calls inside wait for what will never come.
            with suppress(TimeoutError):
                await asyncio.wait_for(self._drained.wait(), grace_seconds if self.is_open else 0)
        if not self._inside:
            return 0
        self.cut_off = True
        tasks = list(self._waiting)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=CUT_OFF_SECONDS)
        return len(tasks)
