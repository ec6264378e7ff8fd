"""CPU time and memory of all processes of the server, for Prometheus."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

from prometheus_client import ProcessCollector
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

_SMALLEST: Final = ("process_start_time_seconds", "process_max_fds")
_CPU: Final = "process_cpu_seconds"
_MEMORY: Final = "process_resident_memory_bytes"


class Processes(Collector):
    """CPU time, memory, open files and start time, on Linux.

    Attributes:
        ids: Returns the process ids at each scrape.
    """

    def __init__(self) -> None:
        """Cover this process."""
        self.ids: Callable[[], Iterable[int]] = lambda: (os.getpid(),)

    def collect(self) -> Iterator[Metric]:
        merged: dict[str, Metric] = {}
        ids = tuple(self.ids())
        for process in ids:
            for family in ProcessCollector(registry=None, pid=partial(int, process)).collect():
                known = merged.setdefault(family.name, family)
                if known is family:
                    continue
                (mine,), (more,) = known.samples, family.samples
                merge = min if family.name in _SMALLEST else _sum
                known.samples = [mine._replace(value=merge(mine.value, more.value))]
        if len(ids) > 1:
            self._correct(merged, ids)
        yield from merged.values()

    def _correct(self, merged: dict[str, Metric], ids: Iterable[int]) -> None:
        if _CPU in merged:
            # Add the use of workers that have ended.
            (sample,) = merged[_CPU].samples
            merged[_CPU].samples = [sample._replace(value=sample.value + _ended_cpu_seconds())]
        if _MEMORY in merged:
            # Count shared pages once.
            shares = [_proportional_bytes(process) for process in ids]
            if all(shares):
                (sample,) = merged[_MEMORY].samples
                merged[_MEMORY].samples = [sample._replace(value=sum(shares))]


def _sum(one: float, other: float) -> float:
    return one + other


def _ended_cpu_seconds() -> float:
    if sys.platform == "win32":
        return 0.0
    import resource

    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _proportional_bytes(process: int) -> int:
    """A process's proportional set size; 0 if the kernel does not say."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
