"""What waits for its turn, in an order that is fair between callers and between sizes.

Start-time fair queueing (P. Goyal, H. Vin, H. Cheng, "Start-time Fair Queueing", SIGCOMM 1996):
items belong to flows; each has a start tag, where its flow's last item ended, or the present if
that is later; an item ends as many units after its start as it costs; the lowest start goes
first. A flow that asks for little overtakes one that asks for much. Finding the next of n items
costs log n.

There the present is the start of what went last, and stands still for as long as new flows come,
each of which starts there: who makes new ones all the time would never let the second item of
another through. So here it goes on for each item, as in the older scheme that the paper compares
with (A. Demers, S. Keshav, S. Shenker, "Analysis and Simulation of a Fair Queueing Algorithm",
SIGCOMM 1989), by its cost divided by the flows that wait and one more.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

T = TypeVar("T")

#: So many flows are remembered before it is seen who owes nothing any more.
REMEMBERED: Final = 64


class FairQueue(Generic[T]):
    """Items by flow. For one thread at a time."""

    def __init__(self, wanted: Callable[[T], bool]) -> None:
        """Nothing waits yet.

        Args:
            wanted: Whether an item is to be taken at all when its turn comes. One that is not costs
                its flow nothing.
        """
        self._wanted: Final = wanted
        #: Of each flow that has any: when each item came, by the present and by number; its cost.
        self._items: Final[dict[Hashable, deque[tuple[float, int, int, T]]]] = {}
        #: Of those, the ones that are passed over.
        self._aside: Final[set[Hashable]] = set()
        #: Of each of the others, where its first item starts, and which that is.
        self._heap: Final[list[tuple[float, int, Hashable]]] = []
        #: Where the last item ended that was taken of each flow.
        self._ends: Final[dict[Hashable, float]] = {}
        self._remembered = REMEMBERED
        self._now = 0.0
        self._count = 0
        self._size = 0

    def __len__(self) -> int:
        """How many items wait, those that are not wanted among them."""
        return self._size

    def put(self, flow: Hashable, cost: int, item: T) -> None:
        """Add an item.

        Args:
            flow: Whom it belongs to.
            cost: How much it is, at least 1, in one unit for all flows.
            item: Anything.
        """
        self._count += 1  # items of one start go in the order they came
        self._size += 1
        items = self._items.setdefault(flow, deque())
        items.append((self._now, self._count, cost, item))
        if len(items) == 1:
            heapq.heappush(self._heap, self._place(flow))

    def sweep(self) -> None:
        """Take out what is not wanted."""
        for flow, items in list(self._items.items()):
            kept = deque(each for each in items if self._wanted(each[-1]))
            if kept:
                self._items[flow] = kept
            else:
                del self._items[flow]
        self._size = sum(map(len, self._items.values()))
        self._aside.intersection_update(self._items)
        self._heap[:] = map(self._place, self._items.keys() - self._aside)
        heapq.heapify(self._heap)
        self._forgive()

    def last(self, flow: Hashable) -> T | None:
        """The item of a flow that came last, which stays.

        Returns:
            None where it has none.
        """
        items = self._items.get(flow, deque())
        while len(items) > 1 and not self._wanted(items[-1][-1]):
            items.pop()
            self._size -= 1
        return items[-1][-1] if items and self._wanted(items[-1][-1]) else None

    def first(self) -> T | None:
        """The next item, which stays.

        Returns:
            None where there is none, but of flows that were set aside.
        """
        self._drop_unwanted()
        return self._items[self._heap[0][-1]][0][-1] if self._heap else None

    def get(self, *, times: int = 1) -> T:
        """Take the next item; there must be one.

        Args:
            times: So many times what it costs is charged.
        """
        self._drop_unwanted()
        start, _, flow = self._heap[0]
        _, _, cost, item = self._items[flow][0]
        cost *= times
        self._ends[flow] = start + cost
        # One more, for who comes next is to come before the second of any that was there.
        self._now = max(start, self._now + cost / (len(self._items) + 1))
        self._drop_first()
        if len(self._ends) > self._remembered:
            self._forget()
        return item

    def set_aside(self) -> None:
        """Pass over the flow of the next item, which there must be, until it is brought back."""
        _, _, flow = heapq.heappop(self._heap)
        self._aside.add(flow)

    def bring_back(self, flow: Hashable) -> bool:
        """Pass over a flow no more. It is not owed what went past it.

        Returns:
            Whether it was set aside.
        """
        if flow not in self._aside:
            return False
        self._aside.discard(flow)
        self._ends[flow] = max(self._ends.get(flow, 0.0), self._now)
        heapq.heappush(self._heap, self._place(flow))
        return True

    def bring_all_back(self) -> None:
        """Pass over no flow any more."""
        for flow in list(self._aside):
            self.bring_back(flow)

    def _drop_unwanted(self) -> None:
        """See to it that the next item is wanted."""
        while self._heap and not self._wanted(self._items[self._heap[0][-1]][0][-1]):
            self._drop_first()

    def _drop_first(self) -> None:
        flow = self._heap[0][-1]
        items = self._items[flow]
        items.popleft()
        self._size -= 1
        if items:
            heapq.heapreplace(self._heap, self._place(flow))
        else:
            heapq.heappop(self._heap)
            del self._items[flow]
            self._forgive()

    def _forgive(self) -> None:
        """Where nobody waits nobody is owed anything: forget flows that are gone."""
        if not self._items:
            self._ends.clear()
            self._remembered = REMEMBERED

    def _place(self, flow: Hashable) -> tuple[float, int, Hashable]:
        came, number, _, _ = self._items[flow][0]
        return max(came, self._ends.get(flow, 0.0)), number, flow

    def _forget(self) -> None:
        """Forget flows that owe nothing: to come back is as if they were new."""
        for flow in [flow for flow, end in self._ends.items() if end <= self._now]:
            if flow not in self._items:
                del self._ends[flow]
        self._remembered = REMEMBERED + 2 * len(self._ends)
