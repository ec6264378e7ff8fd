"""The faults of the matrix: each causes one beside ordinary callers and returns its row."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import sleep

from support.hostile import ATTACKS

from bench.reliability.caller_faults import (
    cancelled_work,
    hostile,
    large_inputs,
    overload,
    short_connections,
)
from bench.reliability.process_faults import killed_replicas, killed_workers, rolling
from bench.reliability.resource_faults import full_disk, no_descriptors
from bench.reliability.rows import SECONDS, TWO, Row, served


def nothing() -> Row:
    """Cause no fault: the baseline of the other rows."""
    with served(*TWO) as (_, seen):
        sleep(SECONDS)
    return Row("none", "–", seen)


def all_faults() -> list[tuple[str, Callable[[], Row]]]:
    """Return every fault by name."""

    def named(*faults: Callable[[], Row]) -> list[tuple[str, Callable[[], Row]]]:
        return [(each.__name__, each) for each in faults]

    return [
        *named(nothing, rolling, killed_replicas, killed_workers, short_connections),
        *((f"overload {size}", partial(overload, size)) for size in (1_000, 100_000)),
        *named(large_inputs, cancelled_work, no_descriptors, full_disk),
        *((name, partial(hostile, name)) for name in ATTACKS),
    ]
