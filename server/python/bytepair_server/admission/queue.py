"""Where calls wait while as many as may be are inside: in a line, before their messages are read.

To refuse a call costs the event loop a third of a millisecond, however small it is. Callers that
try again at once and without end would keep it busy with nothing else, and with them the threads,
which give way to it. A call that waits costs no time, and of memory what has come of its message,
which gRPC's flow control bounds; and mostly its turn comes before its caller would give up.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Callable
from time import monotonic
from typing import Final

from bytepair_server.admission.fair_queue import FairQueue
from bytepair_server.admission.slow_readers import Reading
from bytepair_server.errors import Draining, Overloaded, QuotaExceeded
from bytepair_server.rpc.call import Call
from bytepair_server.transport.priority import let_others_on

#: When a caller that was shed may try again: a few times the usual call, so that what is in
#: flight has a chance to end.
RETRY_SECONDS: Final = 0.25
#: Calls that gave up stand in the queue until they are more than those that wait, and these.
_GIVEN_UP: Final = 64
#: For so long after a call had to wait there is more to do than can be done.
USED_SECONDS: Final = 1.0
#: Thousands of calls that come at once keep the loop busy for tenths of a second. So often, every
#: few calls, it lets gRPC's thread on meanwhile, which brings what else has come, a probe of health
#: among it. Once for each call would do as much for a flood of calls that come to nothing.
LET_ON_SECONDS: Final = 0.0003
#: This part of the places is for flows that hold none up.
OTHERS_PART: Final = 8
_WHAT: Final = "calls in flight"

Answer = asyncio.Future[bool]


class Line:
    """Who may be read, and who waits for that. For one event loop."""

    def __init__(self, free: Callable[[], int], most: int, seconds: float) -> None:
        """Nobody waits yet.

        Args:
            free: How many places there are for calls that are read or being read.
            most: How many calls may wait; of more, the flow that has most waits with fewer. As
                many others may take a pause, which so takes no place of those that have work to
                wait for.
            seconds: For how long; 0: none waits.
        """
        self._free: Final = free
        self._most: Final = most
        self._seconds: Final = seconds
        self._queue: Final[FairQueue[tuple[Answer, Call]]] = FairQueue(_is_waiting)
        #: True for a place, False where the time is over.
        self._waiting: Final[set[Answer]] = set()
        #: Whose they are that wait for a place, and how many of each flow.
        self._in_line: Final[dict[Answer, str]] = {}
        self._of_flow: Final[Counter[str]] = Counter()
        #: How many calls of each flow take a pause, and of all.
        self._pausing: Final[dict[str, int]] = {}
        self._pauses = 0
        self._reading: Final = Reading()
        self._looks_again: asyncio.TimerHandle | None = None
        self._look_due = math.inf
        self._used_until = -math.inf
        self._let_on = -math.inf
        self._closed = False

    @property
    def waiting(self) -> int:
        """How many calls wait, for a place or to be refused."""
        return len(self._waiting)

    @property
    def was_used(self) -> bool:
        """Whether calls wait for a place, or did a moment ago."""
        return monotonic() < self._used_until

    def passes(self, call: Call) -> bool:
        """Whether a call may be read at once; if so, `read` must follow, and `turn` if not."""
        if self._queue or len(self._reading) >= self._places(call.flow):
            return False
        self._reading.begin(call)
        return True

    async def turn(self, call: Call, time_left: float | None) -> None:
        """Wait until a call may be read; `read` must follow. Flows take turns.

        Args:
            call: Which.
            time_left: Seconds until its deadline; None if it has none.
        Raises:
            Overloaded: As many wait as may, of its flow no fewer than of any, or it has waited for
                as long as it may.
            Draining: The server is stopping.
        """
        if self._closed:
            raise Draining
        now = monotonic()
        self._used_until = now + USED_SECONDS
        if now - self._let_on >= LET_ON_SECONDS:
            let_others_on()
            self._let_on = now
        answer: Answer = asyncio.get_running_loop().create_future()
        if len(self._queue) > 2 * len(self._waiting) + _GIVEN_UP:
            self._queue.sweep()
        self._queue.put(call.flow, 1, (answer, call))
        self.advance()
        if answer.done():
            return
        if not self._may_wait(len(self._in_line)) and not self._make_room(call.flow):
            answer.cancel()
            raise Overloaded(RETRY_SECONDS, _WHAT)
        began = monotonic()
        self._in_line[answer] = call.flow
        self._of_flow[call.flow] += 1
        try:
            has_place = await self._hold(answer, time_left)
        finally:
            self._leave_line(answer)
        if not has_place:
            raise Overloaded(_left(RETRY_SECONDS, began), _WHAT)

    async def pause(
        self, error: Overloaded | QuotaExceeded, flow: str, time_left: float | None
    ) -> None:
        """Take the pause that a refusal asks for, before it is told: for a caller that would not
        take it. One who has several calls that are told to pause takes it once for each.

        Args:
            error: What the call will be told: to try again after what is left of the pause.
            flow: That of the call.
            time_left: As of `turn`.
        Raises:
            Draining: The server is stopping.
        """
        if not error.retry_seconds or self._closed or not self._may_wait(self._pauses):
            return
        began, others = monotonic(), self._pausing.get(flow, 0)
        self._pausing[flow] = others + 1
        self._pauses += 1
        try:
            answer = asyncio.get_running_loop().create_future()
            await self._hold(answer, time_left, error.retry_seconds * (others + 1))
        finally:
            self._pauses -= 1
            self._pausing[flow] -= 1
            if not self._pausing[flow]:
                del self._pausing[flow]
            error.retry_seconds = _left(error.retry_seconds, began)

    def read(self, call: Call) -> None:
        """Take note that a call was read. The place that it had meanwhile is to be taken at once,
        or given on by `advance`."""
        self._reading.done(call)
        if self._queue.bring_back(call.flow):
            asyncio.get_running_loop().call_soon(self.advance)  # when its place is taken

    def leave(self, call: Call) -> None:
        """Take note that a call will not be read, if it was not yet."""
        self._reading.gone(call)
        self._queue.bring_back(call.flow)
        self.advance()

    def advance(self) -> None:
        """Give the places that are free to those whose turn it is."""
        if self._reading.may_slow_down or len(self._reading) < self._places_for_all:
            self._queue.bring_all_back()
        taken = 0
        while (first := self._queue.first()) is not None:
            answer, call = first
            places = self._places(call.flow)
            if places <= taken or not self._has_place(places):
                if places == self._free():
                    return
                taken = places
                self._queue.set_aside()  # waits for itself, and nobody else for it
                continue
            self._queue.get()
            answer.set_result(True)
            self._leave_line(answer)
            self._reading.begin(call)

    def dismiss(self) -> None:
        """Tell all who wait that the server is draining."""
        self._closed = True
        for answer in self._waiting:
            if not answer.done():
                answer.set_exception(Draining())

    @property
    def _places_for_all(self) -> int:
        """How many of the places are also for flows that must leave some."""
        free = self._free()
        return free - free // OTHERS_PART

    def _places(self, flow: str) -> int:
        """How many calls may be read or being read when one of a flow is let in."""
        return self._places_for_all if self._reading.leaves_places(flow) else self._free()

    def _has_place(self, places: int) -> bool:
        """Whether of so many places one is free, or can be taken from somebody; if not, it is
        looked again when one can."""
        if len(self._reading) < places:
            return True
        left = self._reading.forget_slow(places)
        if len(self._reading) < places:
            return True
        self._look_again(left)
        return False

    def _make_room(self, flow: str) -> bool:
        """Refuse the last call of the flow that has most in the line, where it has more than this
        flow has and one; whether one was refused. Or whoever calls again at once and never pauses
        would keep it full, and others out."""
        if len(self._of_flow) == len(self._in_line) or not self._may_wait(0):
            return False  # none has two
        crowd, waiting = self._of_flow.most_common(1)[0]
        last = self._queue.last(crowd)
        if last is None or waiting <= self._of_flow[flow] + 1:
            return False
        answer, _ = last
        answer.set_result(False)
        self._leave_line(answer)
        return True

    def _leave_line(self, answer: Answer) -> None:
        """Count one less, as it is answered, or given up before."""
        flow = self._in_line.pop(answer, None)
        if flow is None:
            return
        self._of_flow[flow] -= 1
        if not self._of_flow[flow]:
            del self._of_flow[flow]

    def _may_wait(self, others: int) -> bool:
        return self._seconds > 0 and others < self._most

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

    def _look_again(self, seconds: float) -> None:
        """Advance in so long, if nothing comes before that; infinite: when something comes."""
        due = monotonic() + seconds
        if due < self._look_due:
            if self._looks_again is not None:
                self._looks_again.cancel()
            self._look_due = due
            self._looks_again = asyncio.get_running_loop().call_later(seconds, self._looked)

    def _looked(self) -> None:
        self._looks_again, self._look_due = None, math.inf
        self._queue.bring_all_back()
        self.advance()


def _left(seconds: float, began: float) -> float:
    return max(0.0, seconds - (monotonic() - began))


def _is_waiting(waiting: tuple[Answer, Call]) -> bool:
    answer, _ = waiting
    return not answer.done()


def _over(answer: Answer) -> None:
    if not answer.done():
        answer.set_result(False)
