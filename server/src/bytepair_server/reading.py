"""Calls that are being read, and which of them are held up by their own callers.

A call has a place while its message is read. What came with it is read in far less than
READ_SECONDS, and who sends no message must not keep others out: then its place is somebody
else's. But a server that is behind reads late as well; if it gave away the places of calls that
only wait for it, it would have ever more to do at once, and be ever later.

What has come of a message is held, so few may go on without a place. The first of more is ended: of
the flow that has most of them, where one has.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from time import monotonic
from typing import Final

from bytepair_server.call import Call

#: For so long a call that is being read has a place at least.
READ_SECONDS: Final = 0.1
#: Calls that are read without a place.
MAX_SLOW: Final = 64
#: For so long from its beginning none of them is ended.
SLOW_SECONDS: Final = 1.0


class Reading:
    """The calls that have a place while they are read, the longest first."""

    def __init__(self) -> None:
        #: Since when each is read, and how many others had been read by then.
        self._calls: Final[dict[Call, tuple[float, int]]] = {}
        #: Those that have lost their places, and since when each is read.
        self._slow: Final[dict[Call, float]] = {}
        self._ending: Final[set[asyncio.Future[None]]] = set()
        self._read = 0
        self._last_read = -math.inf

    def __len__(self) -> int:
        return len(self._calls)

    def begin(self, call: Call) -> None:
        """Give a call a place."""
        self._calls[call] = (monotonic(), self._read)

    def done(self, call: Call) -> None:
        """Take note that a call was read."""
        self.gone(call)
        self._read += 1
        self._last_read = monotonic()

    def gone(self, call: Call) -> None:
        """Take note that a call will not be read, if it was not yet."""
        self._slow.pop(call, None)
        self._calls.pop(call, None)

    @property
    def hoarder(self) -> str | None:
        """The flow that has more than half of those that may go on without a place; None where none
        has."""
        if len(self._slow) <= MAX_SLOW / 2:
            return None
        flow, held = Counter(call.flow for call in self._slow).most_common(1)[0]
        return flow if held > MAX_SLOW / 2 else None

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
            if len(self._slow) >= MAX_SLOW:
                first = self._first_slow()
                due = self._slow[first] + SLOW_SECONDS
                if due > now:
                    return due - now
                self._end(first)
            del self._calls[call]
            self._slow[call] = since
        return math.inf

    def _first_slow(self) -> Call:
        hoarder = self.hoarder
        return next(call for call in self._slow if hoarder is None or call.flow == hoarder)

    def _end(self, call: Call) -> None:
        if call.end is not None:
            self._ending.add(ending := asyncio.ensure_future(call.end()))
            ending.add_done_callback(self._ending.discard)
        del self._slow[call]
