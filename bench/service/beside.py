"""Small calls beside large texts: how long the small ones wait, on both transports.

    make bench-service PARTS=beside

Each server runs on one core, the load on another: Count of 1,000 B on one connection, and at the
same time Count of larger texts on a second one.
"""

from __future__ import annotations

import statistics
from contextlib import ExitStack, nullcontext
from time import perf_counter

from bench.service.load import LOAD_CORE, SERVER_CORE, Figures, loaded, measure, service
from bench.service.shapes import shapes

SMALL, SMALL_IN_FLIGHT = "Count 1,000 B", 8
LARGE, LARGE_IN_FLIGHT = ("", "Count 100,000 B", "Count 1,000,000 B"), 4
TRANSPORTS = ("grpcio", "native")
SECONDS = 1.5


def _none_answered() -> int:
    return 0


def show(rounds: int) -> None:
    """Measure, and print a table of medians over several starts."""
    by_name = {shape.name: shape for shape in shapes()}
    found: dict[tuple[str, str], list[tuple[Figures, float]]] = {}
    for _ in range(rounds):
        for transport in TRANSPORTS:
            with service(1, SERVER_CORE, flags=("--transport", transport)) as server:
                for large in LARGE:
                    with ExitStack() as stack:
                        answered = stack.enter_context(
                            loaded(server, by_name[large], LARGE_IN_FLIGHT, LOAD_CORE)
                            if large
                            else nullcontext(_none_answered)
                        )
                        before, began = answered(), perf_counter()
                        small = measure(
                            server,
                            by_name[SMALL],
                            SMALL_IN_FLIGHT,
                            SECONDS,
                            connections=1,
                            core=LOAD_CORE,
                        )
                        rate = (answered() - before) / (perf_counter() - began)
                    found.setdefault((transport, large), []).append((small, rate))
    print(
        f"\n{SMALL}, {SMALL_IN_FLIGHT} in flight, beside {LARGE_IN_FLIGHT} large ones\n"
        "| beside | transport | small/s | median ms | 99 % ms | large/s |\n"
        "|---|---|---:|---:|---:|---:|"
    )
    for large in LARGE:
        for transport in TRANSPORTS:
            seen = found[transport, large]
            calls = [figures for figures, _ in seen]
            print(
                f"| {large or 'nothing'} | {transport} "
                f"| {statistics.median(each.per_second for each in calls):,.0f} "
                f"| {statistics.median(each.median for each in calls) / 1e3:.2f} "
                f"| {statistics.median(each.high for each in calls) / 1e3:.2f} "
                f"| {statistics.median(rate for _, rate in seen):,.0f} |"
            )
