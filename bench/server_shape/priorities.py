"""Who should go first: the event loop, gRPC's thread or the threads for large texts?

    PYTHONPATH=tests:. python -m bench.server_shape.priorities

Server and load as in bench.service.measure. The priorities of a server that runs are set from
outside, which takes root; medians of starts in turns.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bytepair_server.transport.priority import TRANSPORT, WORK

from bench.service.load import LOAD_CORE, SERVER_CORE, Figures, Server, measure, service
from bench.service.shapes import Shape, shapes

ROUNDS, SECONDS = 3, 0.8
SMALL, LARGE = "Count 1,000 B", "Count 1,000,000 B"
#: Large texts under way beside small ones.
LARGE_IN_FLIGHT: Final = 4


@dataclass(frozen=True)
class Order:
    """Who goes first.

    Attributes:
        transport: `nice` of gRPC's thread; None for SCHED_BATCH and `nice` 0.
        work: `nice` of the threads for large texts; None for SCHED_IDLE.
    """

    transport: int | None
    work: int | None

    def __str__(self) -> str:
        transport = "SCHED_BATCH" if self.transport is None else f"{self.transport}"
        return f"{transport}, {'SCHED_IDLE' if self.work is None else self.work}"

    def impose(self, server: Server) -> None:
        """Set the priorities of a server that has answered small and large requests."""
        own = os.getpriority(os.PRIO_PROCESS, server.pid)
        for task in Path(f"/proc/{server.pid}/task").iterdir():
            thread = int(task.name)
            nice = os.getpriority(os.PRIO_PROCESS, thread) - own
            if nice == TRANSPORT:
                _set(thread, self.transport, os.SCHED_BATCH)
            elif nice == WORK:
                _set(thread, self.work, os.SCHED_IDLE)


ORDERS: Final = (
    Order(0, 10),
    Order(5, 10),
    Order(10, 10),
    Order(TRANSPORT, WORK),
    Order(19, 19),
    Order(None, 10),
    Order(None, None),
)


def _set(thread: int, nice: int | None, policy: int) -> None:
    os.setpriority(os.PRIO_PROCESS, thread, nice or 0)
    if nice is None:
        os.sched_setscheduler(thread, policy, os.sched_param(0))


def figures_of(order: Order, small: Shape, large: Shape) -> Iterator[float]:
    """One row: of small requests alone, then beside large ones."""
    with service(1, SERVER_CORE) as server:
        _measured(server, large, 2)
        _measured(server, small, 64)
        order.impose(server)
        many = _measured(server, small, 64)
        yield from (many.per_second, many.cpu, _measured(server, small, 1).median)
        with ThreadPoolExecutor(1) as beside:
            for in_flight in (8, 64):
                running = beside.submit(_measured, server, large, LARGE_IN_FLIGHT)
                found = _measured(server, small, in_flight)
                if in_flight == 8:
                    yield from (found.median, found.high)
                else:
                    yield from (found.per_second, running.result().per_second)
                running.result()


def _measured(server: Server, shape: Shape, in_flight: int) -> Figures:
    return measure(server, shape, in_flight, SECONDS, connections=1, core=LOAD_CORE)


def main() -> None:
    """Measure and print a table."""
    by_name = {shape.name: shape for shape in shapes()}
    rows: dict[Order, list[list[float]]] = {order: [] for order in ORDERS}
    for _ in range(ROUNDS):
        for order, row in rows.items():
            row.append(list(figures_of(order, by_name[SMALL], by_name[LARGE])))
    print(
        "| gRPC's thread, threads for large texts | 64 in flight: requests/s, CPU µs "
        "| one in flight: median µs | beside large texts, 8 in flight: median, 99 % ms "
        "| 64 in flight beside large texts: small, large/s |\n|---|---:|---:|---:|---:|"
    )
    for order, row in rows.items():
        rate, cpu, one, median, high, small, large = map(statistics.median, zip(*row, strict=True))
        print(
            f"| {order} | {rate:,.0f}, {cpu:.0f} | {one:.0f} "
            f"| {median / 1e3:.2f}, {high / 1e3:.2f} | {small:,.0f}, {large:.0f} |"
        )


if __name__ == "__main__":
    main()
