"""Requests of a middle size: computed on a thread, or in turn on the event loop, always as where
calls wait in the line?

    PYTHONPATH=tests:. python -m bench.server_shape.middle

Server and load as in bench.service.measure. Both servers are started anew in each round; medians.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from bench.service.load import LOAD_CORE, SERVER_CORE, Figures, Server, measure, service
from bench.service.shapes import Shape, shapes

ROUNDS, SECONDS = 5, 0.8
ALONE: Final = (
    "Count 100,000 B",
    "Encode 100,000 B",
    "BatchCount 64 × 1,000 B",
    "Decode 25,000 ids",
)
SMALL, BESIDE = "Count 1,000 B", "Count 100,000 B"
#: Of the middle size, beside small ones.
IN_FLIGHT: Final = (4, 64)
THREAD, TURN = "on a thread", "in turn on the loop"


def serve(where: str, flags: list[str]) -> int:
    """Be the server."""
    from bytepair_server.workers import environment

    environment.prepare()
    from bytepair_server import command
    from bytepair_server.admission import executor

    if where == TURN:
        executor.Work.on_thread = executor.Work.in_turn  # type: ignore[method-assign]
    return command.run(flags)


def figures_of(where: str, by_name: dict[str, Shape]) -> Iterator[float]:
    """One column."""
    command = ("-m", "bench.server_shape.middle", "=", where)
    with service(1, SERVER_CORE, command=command) as server:
        for name in ALONE:
            found = _measured(server, by_name[name], 8)
            yield from (found.per_second, found.cpu)
        yield _measured(server, by_name[SMALL], 64).per_second
        with ThreadPoolExecutor(1) as beside:
            for in_flight in IN_FLIGHT:
                running = beside.submit(_measured, server, by_name[BESIDE], in_flight)
                found = _measured(server, by_name[SMALL], 8)
                yield from (found.median, found.high, running.result().per_second)


def _measured(server: Server, shape: Shape, in_flight: int) -> Figures:
    return measure(server, shape, in_flight, SECONDS, connections=1, core=LOAD_CORE)


def main() -> None:
    """Measure and print a table."""
    by_name = {shape.name: shape for shape in shapes()}
    found: dict[str, list[list[float]]] = {THREAD: [], TURN: []}
    for _ in range(ROUNDS):
        for where, rounds in found.items():
            rounds.append(list(figures_of(where, by_name)))
    rows = [row for name in ALONE for row in (f"{name}, 8 in flight: requests/s", "… CPU µs")]
    rows.append(f"{SMALL}, 64 in flight: requests/s")
    for in_flight in IN_FLIGHT:
        rows.append(f"{SMALL}, 8 in flight beside {in_flight} of {BESIDE}: median µs")
        rows += ["… 99th percentile", f"… {BESIDE}: requests/s"]
    print(f"| | {THREAD} | {TURN} |\n|---|---:|---:|")
    columns = [list(map(statistics.median, zip(*rounds, strict=True))) for rounds in found.values()]
    for row, *cells in zip(rows, *columns, strict=True):
        print(f"| {row} | {' | '.join(f'{cell:,.0f}' for cell in cells)} |")


if __name__ == "__main__":
    if sys.argv[1:2] == ["="]:
        sys.exit(serve(sys.argv[2], sys.argv[3:]))
    main()
