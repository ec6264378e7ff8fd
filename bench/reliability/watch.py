"""Ordinary callers (bystanders), and the effect of a fault on them."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter, sleep
from typing import Final

import bytepair_engine
from bytepair_client import TokenizerClient

ENCODING: Final = "cl100k_base"
TEXT: Final = "The river ran high that spring, and 47 of the old boats were lost. " * 15
COUNT: Final = bytepair_engine.get_encoding(ENCODING).count(TEXT)
#: Pause between two calls of a bystander.
PAUSE_SECONDS: Final = 0.01


@dataclass
class Seen:
    """The latencies and failures of the bystanders.

    Attributes:
        calls: Calls that were answered.
        failed: Calls that failed although they were tried again, and why.
        wrong: Answers that were not right.
        latencies: Seconds of each call.
        peak_bytes: The most memory of all processes of the server together.
    """

    calls: int = 0
    failed: list[str] = field(default_factory=list)
    wrong: int = 0
    latencies: list[float] = field(default_factory=list)
    peak_bytes: int = 0

    @property
    def worst_ms(self) -> float:
        return 1000 * max(self.latencies, default=0.0)

    def percentile_ms(self, percent: float) -> float:
        """A percentile of the calls so far; 0 before the first."""
        ordered = sorted(self.latencies)
        return 1000 * ordered[int(percent / 100 * (len(ordered) - 1))] if ordered else 0.0


def tree(pid: int) -> list[int]:
    """The ids of a process and its children."""
    with suppress(OSError):
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [pid, *(each for child in children for each in tree(int(child)))]
    return []


def memory_of(pid: int) -> int:
    """Resident bytes of a server's processes; shared memory is counted once (PSS).

    Code and tables in files are left out: some 10 to 20 MiB, of which the share of these
    processes changes with what else runs on the machine.
    """
    total = 0
    for each in tree(pid):
        with suppress(OSError):
            for line in Path(f"/proc/{each}/smaps_rollup").read_text().splitlines():
                if line.startswith(("Pss_Anon:", "Pss_Shmem:")):
                    total += int(line.split()[1]) * 1024
    return total


def threads_of(pid: int) -> int:
    total = 0
    for each in tree(pid):
        with suppress(OSError):
            total += len(list(Path(f"/proc/{each}/task").iterdir()))
    return total


def descriptors_of(pid: int) -> int:
    total = 0
    for each in tree(pid):
        with suppress(OSError):
            total += len(list(Path(f"/proc/{each}/fd").iterdir()))
    return total


@contextmanager
def bystanders(target: str, pids: list[int], number: int = 2) -> Iterator[Seen]:
    """Run callers that count 1 KiB in a loop while the block runs.

    Args:
        target: Where they call.
        pids: The servers whose memory is watched; may change meanwhile.
        number: How many.
    """
    seen, over, lock = Seen(), threading.Event(), threading.Lock()

    def call() -> None:
        with TokenizerClient(target, encoding=ENCODING) as client:
            while not over.is_set():
                began = perf_counter()
                try:
                    right = client.count(TEXT) == COUNT
                except Exception as error:
                    with lock:
                        seen.failed.append(repr(error))
                else:
                    with lock:
                        seen.calls += 1
                        seen.wrong += not right
                        seen.latencies.append(perf_counter() - began)
                sleep(PAUSE_SECONDS)

    def watch() -> None:
        while not over.is_set():
            seen.peak_bytes = max(seen.peak_bytes, sum(memory_of(pid) for pid in list(pids)))
            sleep(0.1)

    threads = [threading.Thread(target=call) for _ in range(number)]
    threads.append(threading.Thread(target=watch))
    for thread in threads:
        thread.start()
    try:
        yield seen
    finally:
        over.set()
        for thread in threads:
            thread.join(60)


def free_port() -> str:
    """A loopback address with a free port."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return f"127.0.0.1:{probe.getsockname()[1]}"
