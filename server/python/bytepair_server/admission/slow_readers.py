"""Calls that are being read, and which of them are held up by their own callers.

A call has a place while its message is read. What came with it is read in far less than
READ_SECONDS, and who sends no message must not keep others out: then its place is somebody
else's. But a server that is behind reads late as well; if it gave away the places of calls that
only wait for it, it would have ever more to do at once, and be ever later.

What has come of a message is held, so few may go on without a place. The first of more is ended: of
the flow that has most of them, where one has many. And flows that hold any up leave some places to
those that hold none.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from time import monotonic
from typing import Final

from bytepair_server.rpc.call import Call

#: For so long a call that is being read has a place at least.
READ_SECONDS: Final = 0.1
#: Calls that are read without a place.
MAX_SLOW: Final = 64
#: Of who has more than this part of them the first is ended, and not the first of all.
MANY_PART: Final = 8
#: For so long from its beginning none of them is ended.
SLOW_SECONDS: Final = 1.0


class Reading:
    """The calls that have a place while they are read, the longest first."""

    def __init__(self) -> None:
        #: Since when each is read, and how many others had been read by then.
        self._calls: Final[dict[Call, tuple[float, int]]] = {}
        #: Those that have lost their places, and since when each is read.
        self._slow: Final[dict[Call, float]] = {}
        #: How many there are of both, of each flow that has any.
        self._of_flow: Final[Counter[str]] = Counter()
        self._ending: Final[set[asyncio.Future[None]]] = set()
        self._read = 0
        self._last_read = -math.inf

    def __len__(self) -> int:
        return len(self._calls)

    def begin(self, call: Call) -> None:
        """Give a call a place."""
        self._calls[call] = (monotonic(), self._read)
        self._of_flow[call.flow] += 1

    def done(self, call: Call) -> None:
        """Take note that a call was read."""
        self.gone(call)
        self._read += 1
        self._last_read = monotonic()

    def gone(self, call: Call) -> None:
        """Take note that a call will not be read, if it was not yet."""
        if self._slow.pop(call, None) is None and self._calls.pop(call, None) is None:
            return
        self._of_flow[call.flow] -= 1
        if not self._of_flow[call.flow]:
            del self._of_flow[call.flow]

    @property
    def may_slow_down(self) -> bool:
        """Whether a further call may go on without a place."""
        return len(self._slow) < MAX_SLOW

    def leaves_places(self, flow: str) -> bool:
        """Whether a flow must leave some places to others: it has a call that is not read yet, and
        more than half of those that may go on without a place do, so places are few."""
        return len(self._slow) > MAX_SLOW / 2 and flow in self._of_flow

    def forget_slow(self, places: int) -> float:
        """Take the places of those whose callers hold them up, until one of so many is free.

        That is told by others that came later and were read, as messages that are there are read
        in the order in which they were asked for; or by nothing being read at all.

        Returns:
            Seconds until the next may be; infinite for nobody.
        """
        now, most = monotonic(), 2 * len(self._calls)
        while 0 < places <= len(self._calls):
            call, (since, read_before) = next(iter(self._calls.items()))
            if since + READ_SECONDS > now:
                return since + READ_SECONDS - now
            if self._read - read_before < most and self._last_read + READ_SECONDS > now:
                return self._last_read + READ_SECONDS - now
            if not self.may_slow_down:
                first = self._first_slow()
                due = self._slow[first] + SLOW_SECONDS
                if due > now:
                    return due - now
                self._end(first)
            del self._calls[call]
            self._slow[call] = since
        return math.inf

    def _first_slow(self) -> Call:
        crowd, slow = Counter(call.flow for call in self._slow).most_common(1)[0]
        has_many = slow > MAX_SLOW / MANY_PART
        return next(call for call in self._slow if call.flow == crowd or not has_many)

    def _end(self, call: Call) -> None:
        if call.end is not None:
            self._ending.add(ending := asyncio.ensure_future(call.end()))
            ending.add_done_callback(self._ending.discard)
        self.gone(call)
