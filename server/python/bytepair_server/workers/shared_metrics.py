"""Metrics in shared memory: they survive the process that counts them, and add up over processes.

Each process that counts has a *block* of memory that it shares with the supervisor. A number is a
cell of eight bytes. There are no files: nothing fills a disk or is left over from another run.
A worker that replaces a dead one continues in its block. A server of one process has one block.

The kinds of metrics are those of prometheus-client, which also writes the page. Counting costs a
quarter of what it costs there.
"""

from __future__ import annotations

import json
import mmap
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Final, Literal

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

#: Size of the cells, and of their names and labels: some hundred times what six encodings need.
#: Memory that is never touched costs nothing.
_AREA_BYTES: Final = 8 << 20
_CELL_BYTES: Final = 8
#: The part that is reserved for `OTHER`.
_SPARE_BYTES: Final = 64 << 10
#: Replaces further label values once the memory is full, after tens of thousands of callers.
OTHER: Final = "(other)"

Labels = tuple[str, ...]


class Block:
    """The numbers of one process.

    The first half holds the cells. The second half holds one line of JSON for each set of cells:
    [metric, label values, number of cells]. Cell 0 is the number of bytes of lines in use. It
    grows only after a line is complete, so a process may be killed at any moment.
    """

    def __init__(self) -> None:
        memory = mmap.mmap(-1, 2 * _AREA_BYTES)
        self.cells: Final = memoryview(memory)[:_AREA_BYTES].cast("d")
        self._lines: Final = memoryview(memory)[_AREA_BYTES:]
        self._read = 0
        self._next = 1
        self._known: Final[dict[str, dict[Labels, int]]] = {}
        self._lock: Final = threading.RLock()

    def first_cells(self, metric: str) -> dict[Labels, int]:
        """The first cell of each set of cells of a metric, by its label values."""
        if self._read < self.cells[0]:
            with self._lock:
                self._catch_up()
        return self._known.get(metric, {})

    def _catch_up(self) -> None:
        end = int(self.cells[0])
        if self._read < end:
            for line in bytes(self._lines[self._read : end]).splitlines():
                name, labels, count = json.loads(line)
                self._known.setdefault(name, {})[tuple(labels)] = self._next
                self._next += count
            self._read = end

    def reserve(self, metric: str, labels: Labels, count: int) -> int:
        """The first of `count` cells for these label values, or for OTHER once the memory is used
        up; new cells are 0."""
        with self._lock:
            known = self.first_cells(metric).get(labels)
            if known is not None:
                return known
            line = json.dumps([metric, labels, count]).encode() + b"\n"
            start = self._read
            free = min(
                len(self._lines) - start - len(line), _CELL_BYTES * (len(self.cells) - self._next)
            )
            others = (OTHER,) * len(labels)
            if free < _SPARE_BYTES + _CELL_BYTES * count and labels != others:
                return self.reserve(metric, others, count)
            self._lines[start : start + len(line)] = line
            self.cells[0] = start + len(line)
            return self.first_cells(metric)[labels]


class _Family(Collector):
    """One metric over all blocks.

    Attributes:
        name: As documented, without the suffixes of its kind.
        label_names: The names of its labels.
        text: Its help text.
    """

    _CELLS = 1

    def __init__(self, blocks: Sequence[Block], name: str, text: str, labels: Labels) -> None:
        self._blocks: Final = blocks
        self.name: Final = name
        self.text: Final = text
        self.label_names: Final = labels

    def _first_cell(self, values: Iterable[str]) -> int:
        return self._blocks[0].reserve(self.name, tuple(values), self._CELLS)

    def _gathered(self) -> Iterator[tuple[Labels, list[list[float]]]]:
        """For each set of label values, its cells in every block that has them."""
        gathered: dict[Labels, list[list[float]]] = {}
        for block in self._blocks:
            for labels, at in block.first_cells(self.name).copy().items():
                cells: list[float] = list(block.cells[at : at + self._CELLS])
                gathered.setdefault(labels, []).append(cells)
        yield from sorted(gathered.items())


class Cell:
    """One number. Not thread-safe."""

    __slots__ = ("_at", "_cells")

    def __init__(self, block: Block, at: int) -> None:
        self._cells: Final = block.cells
        self._at: Final = at

    def inc(self, amount: float = 1.0) -> None:
        """Add to it."""
        self._cells[self._at] += amount

    def set(self, value: float) -> None:
        """Replace it."""
        self._cells[self._at] = value


class Counter(_Family):
    """A number that only grows."""

    def labels(self, *values: str) -> Cell:
        """The number for these label values."""
        return Cell(self._blocks[0], self._first_cell(values))

    def collect(self) -> Iterator[Metric]:
        family = CounterMetricFamily(self.name, self.text, labels=self.label_names)
        for labels, cells in self._gathered():
            family.add_metric(labels, sum(value for (value,) in cells))
        yield family


class Gauge(_Family):
    """A number that goes up and down: the sum over processes, or the largest of them."""

    def __init__(
        self,
        blocks: Sequence[Block],
        name: str,
        text: str,
        labels: Labels,
        merge: Literal["sum", "max"],
    ) -> None:
        super().__init__(blocks, name, text, labels)
        self._merge: Final[Callable[[Iterable[float]], float]] = sum if merge == "sum" else max
        self._function: Callable[[], float] | None = None
        if not labels:
            self.set(0)

    def labels(self, *values: str) -> Cell:
        """The number for these label values."""
        return Cell(self._blocks[0], self._first_cell(values))

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
        for at in block.first_cells(self.name).values():
            block.cells[at] = 0.0

    def collect(self) -> Iterator[Metric]:
        self.refresh()
        family = GaugeMetricFamily(self.name, self.text, labels=self.label_names)
        for labels, cells in self._gathered():
            family.add_metric(labels, self._merge(value for (value,) in cells))
        yield family


class Distribution:
    """The cells of one histogram: the sum of all values, then how many fell into each bucket."""

    __slots__ = ("_at", "_bounds", "_cells")

    def __init__(self, block: Block, at: int, bounds: Sequence[float]) -> None:
        self._cells: Final = block.cells
        self._at: Final = at
        self._bounds: Final = bounds

    def observe(self, value: float) -> None:
        """Record a value."""
        self._cells[self._at] += value
        self._cells[self._at + 1 + bisect_left(self._bounds, value)] += 1


class Histogram(_Family):
    """A histogram of values."""

    def __init__(
        self,
        blocks: Sequence[Block],
        name: str,
        text: str,
        labels: Labels,
        bounds: Sequence[float],
    ) -> None:
        """Make buckets with these ascending upper bounds, and one above the last."""
        super().__init__(blocks, name, text, labels)
        self._CELLS = 2 + len(bounds)
        self._bounds: Final = tuple(bounds)
        self._shown: Final = [
            floatToGoString(bound)  # type: ignore[no-untyped-call]
            for bound in (*bounds, float("inf"))
        ]

    def labels(self, *values: str) -> Distribution:
        """The distribution for these label values."""
        return Distribution(self._blocks[0], self._first_cell(values), self._bounds)

    def collect(self) -> Iterator[Metric]:
        family = HistogramMetricFamily(self.name, self.text, labels=self.label_names)
        for labels, cells in self._gathered():
            total, *counts = map(sum, zip(*cells, strict=True))
            buckets = list(zip(self._shown, accumulate(counts), strict=True))
            family.add_metric(labels, buckets, total)
        yield family
