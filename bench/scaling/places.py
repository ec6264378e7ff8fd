"""Cores: the server on one, the load and the peers on another."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.service.load import LOAD_CORE, Server


@contextmanager
def on_core(core: int = LOAD_CORE) -> Iterator[None]:
    """Pin this thread, and the processes that it starts, to a core while the block runs."""
    own = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, own)


@dataclass(frozen=True)
class Memory:
    """Total memory of a server's processes, in bytes.

    Attributes:
        resident: As each process sees it: what they share counts for each.
        proportional: What they share counts once.
    """

    resident: int
    proportional: int


def memory(server: Server) -> Memory:
    """The memory of a server now."""
    found = {"Rss:": 0, "Pss:": 0}
    for pid in server.pids:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            name, *rest = line.split()
            if name in found:
                found[name] += int(rest[0]) * 1024
    return Memory(*found.values())


@dataclass(frozen=True)
class Calls:
    """The times of consecutive calls, in microseconds.

    Attributes:
        median: Of how long they took.
        high: Their 99th percentile.
        cpu: The server's CPU time for each.
    """

    median: float
    high: float
    cpu: float


def calls(server: Server, call: Callable[[], object], seconds: float) -> Calls:
    """Make consecutive calls, at least one.

    Args:
        server: What is called.
        call: Calls it once.
        seconds: How long.
    """
    call()
    times: list[float] = []
    before, until = server.cpu_seconds(), time.perf_counter() + seconds
    while not times or time.perf_counter() < until:
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    used = server.cpu_seconds() - before
    times.sort()
    high = times[min(len(times) - 1, len(times) * 99 // 100)]
    return Calls(statistics.median(times) * 1e6, high * 1e6, used / len(times) * 1e6)
