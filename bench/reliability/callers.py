"""Callers that count as fast as they can (`load.py`), on cores of their own or on any."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from select import select
from typing import Final

from support.serving import RunningServer

#: The priority (nice) of callers that share a core with others.
GIVES_WAY: Final = 10


@contextmanager
def on_cores(cores: Collection[int]) -> Iterator[None]:
    """Start processes on the given cores; on any if none are given."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores or before)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def start_load(
    server: RunningServer,
    text_bytes: int,
    at_once: int,
    seconds: float,
    cores: Collection[int] = (),
) -> subprocess.Popen[str]:
    """Start callers of Count in a process of their own. On given cores they have a low priority, so
    that bystanders wait for the server and not for them."""
    numbers = map(str, (text_bytes, at_once, seconds))
    command = [sys.executable, "-m", "bench.reliability.load", server.target, *numbers]
    with on_cores(cores):
        load = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    if cores:
        os.setpriority(os.PRIO_PROCESS, load.pid, GIVES_WAY)
    return load


def has_printed(load: subprocess.Popen[str]) -> bool:
    """Whether a load has finished."""
    assert load.stdout is not None
    return bool(select([load.stdout], [], [], 0)[0])


def result_of(load: subprocess.Popen[str]) -> tuple[float, float, float]:
    """Wait for a load. Returns its answered, rejected and failed calls per second."""
    printed, _ = load.communicate(timeout=120)
    good, rejected, failed = map(float, printed.split())
    return good, rejected, failed
