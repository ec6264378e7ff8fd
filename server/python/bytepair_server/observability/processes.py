"""CPU time and memory of all processes of the server, for Prometheus."""

from __future__ import annotations

import os
import resource
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
        ids = tuple(self.ids())
        families: dict[str, Metric] = {}
        values: dict[str, list[float]] = {}
        for process in ids:
            for family in ProcessCollector(registry=None, pid=partial(int, process)).collect():
                families.setdefault(family.name, family)
                values.setdefault(family.name, []).append(family.samples[0].value)
        for name, family in families.items():
            value = (min if name in _SMALLEST else sum)(values[name])
            if name == _CPU and len(ids) > 1:
                value += _ended_cpu_seconds()  # of workers that have ended
            elif name == _MEMORY and len(ids) > 1:
                # Count shared pages once.
                shares = [_proportional_bytes(process) for process in ids]
                value = sum(shares) if all(shares) else value
            family.samples = [family.samples[0]._replace(value=value)]
            yield family


def _ended_cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _proportional_bytes(process: int) -> int:
    """A process's proportional set size; 0 if the kernel does not say."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
