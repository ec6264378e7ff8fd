"""Metrics in shared memory: they survive the process that counts them, and add up over processes.

Each process that counts has a block that it shares with the supervisor. A worker that replaces a
dead one continues in its block. A server of one process has one block.

The kinds of metrics are those of prometheus-client, which also writes the page. Counting costs a
quarter of what it costs there.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Final, Generic, TypeVar

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from bytepair_server.shared.memory import Block, Cells, Key

#: The part of a block that is reserved for `OTHER`.
_SPARE_BYTES: Final = 64 << 10
#: Replaces further label values once the memory is full, after tens of thousands of callers.
OTHER: Final = "(other)"

Child = TypeVar("Child")


class _Family(Collector, Generic[Child]):
    """One metric over all blocks. Its name is without the suffixes of its kind."""

    def __init__(
        self,
        blocks: Sequence[Block],
        name: str,
        text: str,
        labels: Key,
        child: Callable[[Cells], Child],
        count: int = 1,
    ) -> None:
        """Make the metric. Each set of label values has `count` cells, and `child` makes the object
        that writes to them."""
        self._blocks: Final = blocks
        self.name: Final = name
        self.text: Final = text
        self.label_names: Final = labels
        self._child: Final = child
        self._count: Final = count

    def labels(self, *values: str) -> Child:
        """Return the child for these label values, or for OTHER once the memory is full."""
        reserve, name, count = self._blocks[0].reserve, self.name, self._count
        try:
            return self._child(reserve(name, values, count, _SPARE_BYTES))
        except MemoryError:
            return self._child(reserve(name, (OTHER,) * len(values), count))

    def _gathered(self) -> list[tuple[Key, list[list[float]]]]:
        """For each set of label values, its numbers in every block that has them."""
        gathered: dict[Key, list[list[float]]] = {}
        for block in self._blocks:
            for labels, cells in block.rows(self.name).items():
                gathered.setdefault(labels, []).append(list(cells))
        return sorted(gathered.items())


@dataclass(slots=True)
class Cell:
    """One number. Not thread-safe."""

    cells: Cells

    def inc(self, amount: float = 1.0) -> None:
        """Add to it."""
        self.cells[0] += amount

    def set(self, value: float) -> None:
        """Replace it."""
        self.cells[0] = value


class Counter(_Family[Cell]):
    """A number that only grows."""

    def __init__(self, blocks: Sequence[Block], name: str, text: str, labels: Key) -> None:
        super().__init__(blocks, name, text, labels, Cell)

    def collect(self) -> Iterator[Metric]:
        family = CounterMetricFamily(self.name, self.text, labels=self.label_names)
        for labels, numbers in self._gathered():
            family.add_metric(labels, sum(value for (value,) in numbers))
        yield family


class Gauge(_Family[Cell]):
    """A number that goes up and down."""

    def __init__(
        self,
        blocks: Sequence[Block],
        name: str,
        text: str,
        labels: Key,
        merge: Callable[[Iterable[float]], float],
    ) -> None:
        """Make the gauge. `merge`, such as `sum`, combines the values of all processes."""
        super().__init__(blocks, name, text, labels, Cell)
        self._merge: Final = merge
        self._function: Callable[[], float] | None = None
        if not labels:
            self.set(0)

    def set(self, value: float) -> None:
        """Set a gauge without labels."""
        self.labels().set(value)

    def set_function(self, function: Callable[[], float]) -> None:
        """Call `function` for the value of a gauge without labels at each scrape."""
        self._function = function

    def refresh(self) -> None:
        """Update the value by its function, if it has one."""
        if self._function is not None:
            self.set(self._function())

    def forget(self, block: Block) -> None:
        """Reset the values of a process that has ended."""
        for cells in block.rows(self.name).values():
            cells[0] = 0.0

    def collect(self) -> Iterator[Metric]:
        self.refresh()
        family = GaugeMetricFamily(self.name, self.text, labels=self.label_names)
        for labels, numbers in self._gathered():
            family.add_metric(labels, self._merge(value for (value,) in numbers))
        yield family


@dataclass(slots=True)
class Distribution:
    """The cells of one histogram: the sum of all values, then how many fell into each bucket."""

    cells: Cells
    bounds: Sequence[float]

    def observe(self, value: float) -> None:
        """Record a value."""
        self.cells[0] += value
        self.cells[1 + bisect_left(self.bounds, value)] += 1


class Histogram(_Family[Distribution]):
    """A histogram of values."""

    def __init__(
        self, blocks: Sequence[Block], name: str, text: str, labels: Key, bounds: Sequence[float]
    ) -> None:
        """Make buckets with these ascending upper bounds, and one above the last."""
        child = partial(Distribution, bounds=bounds)
        super().__init__(blocks, name, text, labels, child, 2 + len(bounds))
        self._shown: Final = [
            floatToGoString(bound)  # type: ignore[no-untyped-call]
            for bound in (*bounds, float("inf"))
        ]

    def collect(self) -> Iterator[Metric]:
        family = HistogramMetricFamily(self.name, self.text, labels=self.label_names)
        for labels, numbers in self._gathered():
            total, *counts = map(sum, zip(*numbers, strict=True))
            buckets = list(zip(self._shown, accumulate(counts), strict=True))
            family.add_metric(labels, buckets, total)
        yield family
