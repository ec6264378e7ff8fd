"""Rounds that other processes did not disturb, for measurements of elapsed time on all cores."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

#: Maximum share of all cores that other processes may use in a quiet round.
MAX_BY_OTHERS = 0.03
MAX_ROUNDS = 60


def quiet_rounds(measure: Callable[[], T], wanted: int) -> tuple[list[T], int]:
    """Measure until enough rounds were quiet.

    Args:
        measure: One round, of a few tenths of a second at least: the system counts hundredths.
        wanted: How many quiet rounds are enough.
    Returns:
        The results of the quiet rounds, and the number of all rounds. Fewer than wanted, or none,
        if 60 rounds were not enough. On systems other than Linux every round counts as quiet.
    """
    kept: list[T] = []
    made = 0
    while made < MAX_ROUNDS and len(kept) < wanted:
        made += 1
        busy, own, start = _busy_seconds(), time.process_time(), time.perf_counter()
        figure = measure()
        elapsed = time.perf_counter() - start
        by_others = _busy_seconds() - busy - (time.process_time() - own)
        if by_others <= MAX_BY_OTHERS * elapsed * (os.cpu_count() or 1):
            kept.append(figure)
    return kept, made


def _busy_seconds() -> float:
    """Return the seconds that all cores have worked since the system started, including those that
    the host took away."""
    try:
        line = Path("/proc/stat").read_text(encoding="ascii").partition("\n")[0]
    except OSError:
        return 0.0
    user, nice, system, _, _, irq, softirq, steal = map(int, line.split()[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")
