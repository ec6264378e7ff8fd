"""A queue that is fair between callers.

Start-time fair queueing (P. Goyal, H. Vin, H. Cheng, "Start-time Fair Queueing", SIGCOMM 1996):
an item's start tag is its caller's last finish tag, or the virtual time if that is later; its
finish tag is the start tag plus its cost. The lowest start tag goes first. So a caller with little
work overtakes one with much. Every operation costs log n.

In the paper, virtual time stands still while new callers keep arriving, so they could starve
another caller's second item. Here each item advances it by its cost / (waiting callers + 1), as in
A. Demers, S. Keshav, S. Shenker, "Analysis and Simulation of a Fair Queueing Algorithm", SIGCOMM
1989.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from typing import Final, Generic, NamedTuple, TypeVar

T = TypeVar("T")

#: If more callers are remembered, those without queued items and without a debt are dropped.
REMEMBERED: Final = 64


class _Ticket(NamedTuple):
    arrived: float
    number: int
    cost: int


class FairQueue(Generic[T]):
    """A queue of items by caller. Items are hashable and unique. Not thread-safe."""

    def __init__(self) -> None:
        self._items: Final[dict[str, OrderedDict[T, _Ticket]]] = {}
        #: Start tag, number and caller of each caller's first item; stale where it has changed.
        self._heap: Final[list[tuple[float, int, str]]] = []
        #: The last finish tag of a caller.
        self._ends: Final[dict[str, float]] = {}
        self._remembered = REMEMBERED
        self._virtual_time = 0.0
        self._count = 0
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def put(self, caller: str, cost: int, item: T) -> None:
        """Add an item that is not in the queue. Its `cost` is at least 1, in one unit for all
        callers."""
        self._count += 1  # items with the same start tag leave in the order in which they came
        self._size += 1
        items = self._items.setdefault(caller, OrderedDict())
        items[item] = _Ticket(self._virtual_time, self._count, cost)
        if len(items) == 1:
            self._push(caller)

    def first(self) -> T | None:
        """The next item, which stays in the queue; None if it is empty."""
        caller = self._first_caller()
        return None if caller is None else next(iter(self._items[caller]))

    def pop(self) -> T:
        """Remove the next item.

        Raises:
            IndexError: The queue is empty.
        """
        caller = self._first_caller()
        if caller is None:
            raise IndexError("the queue is empty")
        start, _, _ = heapq.heappop(self._heap)
        callers = len(self._items)
        item, ticket = self._items[caller].popitem(last=False)
        self._size -= 1
        self._ends[caller] = start + ticket.cost
        self._virtual_time = max(start, self._virtual_time + ticket.cost / (callers + 1))
        if self._items[caller]:
            self._push(caller)
        else:
            self._drop(caller)
        return item

    def discard(self, caller: str, item: T) -> bool:
        """Remove an item. Returns whether it was in the queue."""
        items = self._items.get(caller)
        if items is None or items.pop(item, None) is None:
            return False
        self._size -= 1
        if not items:
            self._drop(caller)
        return True

    def pop_newest_of_busiest(self, caller: str) -> T | None:
        """Remove the newest item of the caller with the most items, and return it; None unless it
        has at least two items more than `caller`, which adds one."""
        if len(self._items) == self._size:
            return None  # no caller has two
        busiest = max(self._items, key=lambda each: len(self._items[each]))
        items = self._items[busiest]
        if len(items) <= len(self._items.get(caller, ())) + 1:
            return None
        item, _ = items.popitem()
        self._size -= 1
        return item

    def _push(self, caller: str) -> None:
        ticket = next(iter(self._items[caller].values()))
        start = max(ticket.arrived, self._ends.get(caller, 0.0))
        heapq.heappush(self._heap, (start, ticket.number, caller))

    def _first_caller(self) -> str | None:
        """The caller of the next item, whose entry is then on top of the heap."""
        while self._heap:
            _, number, caller = self._heap[0]
            items = self._items.get(caller)
            if items is None:
                heapq.heappop(self._heap)
                continue
            first = next(iter(items.values())).number
            if first == number:
                return caller
            heapq.heappop(self._heap)
            if first > number:  # the item that stood here was discarded
                self._push(caller)
        return None

    def _drop(self, caller: str) -> None:
        """Forget a caller without items, unless it has a debt."""
        del self._items[caller]
        if not self._items:
            self._ends.clear()
            self._heap.clear()
            self._remembered = REMEMBERED
        elif len(self._ends) > self._remembered:
            for each in [each for each, end in self._ends.items() if end <= self._virtual_time]:
                if each not in self._items:
                    del self._ends[each]
            self._remembered = REMEMBERED + 2 * len(self._ends)
