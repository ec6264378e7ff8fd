"""What waits for its turn, in an order that is fair between callers and between sizes.

Start-time fair queueing (P. Goyal, H. Vin, H. Cheng, "Start-time Fair Queueing", SIGCOMM 1996):
items belong to flows; each has a start tag, where its flow's last item ended, or the present if
that is later; an item ends as many units after its start as it costs; the lowest start goes
first, and the present is the start of what went last. A flow that asks for little overtakes one
that asks for much, and no flow is ever passed over for longer than its share takes. Finding the
next of n items costs log n.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

T = TypeVar("T")


class FairQueue(Generic[T]):
    """Items by flow, of which there must be a bounded number: each new one comes before what
    has waited for long. For one thread at a time."""

    def __init__(self) -> None:
        self._heap: Final[list[tuple[int, int, Hashable, T]]] = []
        #: Where the last item of each flow that has any ends.
        self._ends: Final[dict[Hashable, int]] = {}
        self._now = 0
        self._count = 0

    def __len__(self) -> int:
        return len(self._heap)

    def put(self, flow: Hashable, cost: int, item: T) -> None:
        """Add an item.

        Args:
            flow: Whom it belongs to.
            cost: How much it is, at least 1, in one unit for all flows.
            item: Anything.
        """
        start = max(self._now, self._ends.get(flow, 0))
        self._ends[flow] = start + cost
        self._count += 1  # items of one start go in the order they came
        heapq.heappush(self._heap, (start, self._count, flow, item))

    def give_back(self, flow: Hashable, cost: int) -> None:
        """Take note that an item which was put is not wanted any more: its flow owes nothing for
        it. The item stays."""
        if flow in self._ends:
            self._ends[flow] -= cost

    def keep(self, wanted: Callable[[T], bool]) -> None:
        """Take out all other items."""
        self._heap[:] = [entry for entry in self._heap if wanted(entry[3])]
        heapq.heapify(self._heap)

    def first(self) -> T:
        """The next item, which stays; there must be one."""
        return self._heap[0][3]

    def get(self) -> T:
        """Take the next item; there must be one."""
        start, _, _, item = heapq.heappop(self._heap)
        self._now = start
        if not self._heap:
            # Nobody waits, so nobody is owed anything: flows that are gone are forgotten.
            self._ends.clear()
        return item
