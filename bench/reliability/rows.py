"""A row of the matrix, and the server and ordinary callers beside which its fault is caused."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from time import sleep
from typing import Final

from support.serving import RunningServer

from bench.reliability.callers import on_cores
from bench.reliability.watch import ENCODING, Seen, bystanders

SECONDS: Final = 6.0
ONE: Final = ("--builtin-encodings", ENCODING, "--log-level", "info")
TWO: Final = (*ONE, "--workers", "2")


@dataclass
class Row:
    """One row of the table.

    Attributes:
        fault: What happened.
        sent: How much of it.
        seen: What the bystanders saw.
        note: What else was found.
        lost: Deltas of streams, or counts of metrics, that are missing; slots not given back.
    """

    fault: str
    sent: str
    seen: Seen
    note: str = ""
    lost: int = 0


@contextmanager
def served(*flags: str, cores: Collection[int] = ()) -> Iterator[tuple[RunningServer, Seen]]:
    """A server on given cores, and bystanders on any."""
    with ExitStack() as stack:
        with on_cores(cores):
            server = stack.enter_context(RunningServer(*flags))
        seen = stack.enter_context(bystanders(server.target, [server.pid]))
        sleep(0.5)
        seen.latencies.clear()  # of connecting
        yield server, seen
