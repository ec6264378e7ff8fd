"""Where calls wait while as many as may be are inside: in a line, before their messages are read.

To refuse a call costs the event loop a third of a millisecond, however small it is. Callers that
try again at once and without end would keep it busy with nothing else, and with them the threads,
which give way to it. A call that waits costs no time, and of memory what has come of its message,
which gRPC's flow control bounds; and mostly its turn comes before its caller would give up.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from time import monotonic
from typing import Final

from bytepair_server.call import Call
from bytepair_server.errors import Draining, Overloaded, QuotaExceeded
from bytepair_server.fair_queue import FairQueue

#: When a caller that was shed may try again: a few times the usual call, so that what is in
#: flight has a chance to end.
RETRY_SECONDS: Final = 0.25
#: For so long a call that is being read has a place; then it may be somebody else's. What came
#: with the call is read in far less, and who sends no message must not keep others out.
READ_SECONDS: Final = 0.1
#: Calls that gave up stand in the queue until they are more than those that wait, and these.
_GIVEN_UP: Final = 64
_WHAT: Final = "calls in flight"

Answer = asyncio.Future[bool]


class Line:
    """Who may be read, and who waits for that. For one event loop."""

    def __init__(self, free: Callable[[], int], most: int, seconds: float) -> None:
        """Nobody waits yet.

        Args:
            free: How many places there are for calls that are read or being read.
            most: How many calls may wait.
            seconds: For how long; 0: none waits.
        """
        self._free: Final = free
        self._most: Final = most
        self._seconds: Final = seconds
        self._queue: Final[FairQueue[tuple[Answer, Call]]] = FairQueue()
        #: True for a place, False where the time is over.
        self._waiting: Final[set[Answer]] = set()
        #: How many calls of each caller take a pause.
        self._pausing: Final[dict[str, int]] = {}
        #: Since when, the longest first.
        self._reading: Final[dict[Call, float]] = {}
        self._looks_again: asyncio.TimerHandle | None = None
        self._closed = False

    @property
    def waiting(self) -> int:
        """How many calls wait, for a place or to be refused."""
        return len(self._waiting)

    def passes(self, call: Call) -> bool:
        """Whether a call may be read at once; if so, `read` must follow, and `turn` if not."""
        if self._queue or len(self._reading) >= self._free():
            return False
        self._reading[call] = monotonic()
        return True

    async def turn(self, call: Call, time_left: float | None) -> None:
        """Wait until a call may be read; `read` must follow. Callers take turns.

        Args:
            call: Which.
            time_left: Seconds until its deadline; None if it has none.
        Raises:
            Overloaded: As many wait as may, or it has waited for as long as it may.
            Draining: The server is stopping.
        """
        if self._closed:
            raise Draining
        answer: Answer = asyncio.get_running_loop().create_future()
        if len(self._queue) > 2 * len(self._waiting) + _GIVEN_UP:
            self._queue.keep(lambda waiting: not waiting[0].done())
        self._queue.put(call.caller, 1, (answer, call))
        self.advance()
        if answer.done():
            return
        if not self._may_wait:
            answer.cancel()
            raise Overloaded(RETRY_SECONDS, _WHAT)
        began = monotonic()
        if not await self._hold(answer, time_left):
            raise Overloaded(_left(RETRY_SECONDS, began), _WHAT)

    async def pause(
        self, error: Overloaded | QuotaExceeded, caller: str, time_left: float | None
    ) -> None:
        """Take the pause that a refusal asks for, before it is told: for a caller that would not
        take it. One who has several calls that are told to pause takes it once for each.

        Args:
            error: What the call will be told: to try again after what is left of the pause.
            caller: Whose call it is.
            time_left: As of `turn`.
        Raises:
            Draining: The server is stopping.
        """
        if not error.retry_seconds or self._closed or not self._may_wait:
            return
        began, others = monotonic(), self._pausing.get(caller, 0)
        self._pausing[caller] = others + 1
        try:
            answer = asyncio.get_running_loop().create_future()
            await self._hold(answer, time_left, error.retry_seconds * (others + 1))
        finally:
            self._pausing[caller] -= 1
            if not self._pausing[caller]:
                del self._pausing[caller]
            error.retry_seconds = _left(error.retry_seconds, began)

    def read(self, call: Call) -> None:
        """Take note that a call was read. The place that it had meanwhile is to be taken at once,
        or given on by `advance`."""
        self._reading.pop(call, None)

    def leave(self, call: Call) -> None:
        """Take note that a call will not be read, if it was not yet."""
        if self._reading.pop(call, None) is not None:
            self.advance()

    def advance(self) -> None:
        """Give the places that are free to those whose turn it is."""
        while self._queue:
            while len(self._reading) >= self._free():
                if not self._forget_slowest():
                    return
            answer, call = self._queue.get()
            if not answer.done():
                answer.set_result(True)
                self._reading[call] = monotonic()

    def dismiss(self) -> None:
        """Tell all who wait that the server is draining."""
        self._closed = True
        for answer in self._waiting:
            if not answer.done():
                answer.set_exception(Draining())

    @property
    def _may_wait(self) -> bool:
        return self._seconds > 0 and len(self._waiting) < self._most

    async def _hold(self, answer: Answer, time_left: float | None, most: float = math.inf) -> bool:
        """Wait for an answer. Not so long that its caller would not hear it: half of the time
        that the call has left is for another attempt."""
        left = math.inf if time_left is None else time_left / 2
        seconds = min(self._seconds, left, most)
        timer = asyncio.get_running_loop().call_later(seconds, _over, answer)
        self._waiting.add(answer)
        try:
            return await answer
        finally:
            timer.cancel()
            self._waiting.discard(answer)

    def _forget_slowest(self) -> bool:
        """Free the place of the call that is being read for longest, if that is too long."""
        if not self._reading:
            return False
        call, since = next(iter(self._reading.items()))
        left = since + READ_SECONDS - monotonic()
        if left > 0:
            if self._looks_again is None:
                loop = asyncio.get_running_loop()
                self._looks_again = loop.call_later(left, self._look_again)
            return False
        del self._reading[call]
        return True

    def _look_again(self) -> None:
        self._looks_again = None
        self.advance()


def _left(seconds: float, began: float) -> float:
    return max(0.0, seconds - (monotonic() - began))


def _over(answer: Answer) -> None:
    if not answer.done():
        answer.set_result(False)
