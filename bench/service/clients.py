"""What a call costs with the project's own clients, for several numbers of concurrent callers.

Client and server have a core each; medians of the rounds are shown.

    PYTHONPATH=tests:. python -m bench.service.clients
"""

from __future__ import annotations

import asyncio
import os
import statistics
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from bytepair_client import AsyncTokenizerClient, TokenizerClient

from bench.service.load import LOAD_CORE, SERVER_CORE, Server, service
from bench.service.shapes import ENCODING
from bench.service.text import prose

CALLERS = (1, 4, 16, 64, 256)
MAX_CALLERS = (256,)
ROUNDS, SECONDS = 3, 1.0
TEXT = prose(1_000)


@dataclass(frozen=True)
class Rate:
    """The result of one measurement.

    Attributes:
        per_second: Calls.
        median: Of how long they took, in milliseconds.
        client: CPU time for each call here, in microseconds.
        server: The same of the server.
    """

    per_second: float
    median: float
    client: float
    server: float


class Clock:
    """The durations of calls, from its creation on."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._server_before = server.cpu_seconds()
        self._before = time.process_time()
        self._until = time.perf_counter() + SECONDS
        self.times: list[float] = []

    def runs(self, began: float) -> bool:
        """Whether time is left."""
        return began < self._until

    def rate(self) -> Rate:
        """Return the result of the calls."""
        done = len(self.times)
        return Rate(
            done / SECONDS,
            statistics.median(self.times) * 1e3,
            (time.process_time() - self._before) / done * 1e6,
            (self._server.cpu_seconds() - self._server_before) / done * 1e6,
        )


def show(callers: Sequence[int]) -> None:
    """Measure and print a table."""
    print(
        f"\nThe project's clients, Count of {len(TEXT):,} B, each caller one call after another\n"
        "| client | callers | calls/s | median ms | CPU µs of a call, client + server |\n"
        "|---|---:|---:|---:|---:|"
    )
    own = os.sched_getaffinity(0)
    with service(1, SERVER_CORE) as server:
        os.sched_setaffinity(0, {LOAD_CORE})
        for number in callers:
            for name, measured in (("asyncio", of_tasks), ("threads", of_threads)):
                rounds = [measured(server, number) for _ in range(ROUNDS)]
                print(f"| {name} | {number} | {shown(rounds)} |", flush=True)
    os.sched_setaffinity(0, own)


def of_tasks(server: Server, number: int) -> Rate:
    """Run calls in a number of tasks."""

    async def main() -> Rate:
        target = f"127.0.0.1:{server.port}"
        async with AsyncTokenizerClient(target, encoding=ENCODING) as client:
            await client.count(TEXT)
            clock = Clock(server)

            async def caller() -> None:
                while clock.runs(began := time.perf_counter()):
                    await client.count(TEXT)
                    clock.times.append(time.perf_counter() - began)

            await asyncio.gather(*(caller() for _ in range(number)))
            return clock.rate()

    return asyncio.run(main())


def of_threads(server: Server, number: int) -> Rate:
    """Run calls in a number of threads."""
    target = f"127.0.0.1:{server.port}"
    with (
        TokenizerClient(target, encoding=ENCODING) as client,
        ThreadPoolExecutor(number) as threads,
    ):
        client.count(TEXT)
        clock = Clock(server)

        def caller() -> None:
            while clock.runs(began := time.perf_counter()):
                client.count(TEXT)
                clock.times.append(time.perf_counter() - began)

        for running in [threads.submit(caller) for _ in range(number)]:
            running.result()
        return clock.rate()


def shown(rates: Sequence[Rate]) -> str:
    """Return the medians of several rounds as cells."""
    per_second, middle, client, server = (
        statistics.median(getattr(one, name) for one in rates)
        for name in ("per_second", "median", "client", "server")
    )
    return f"{per_second:,.0f} | {middle:.1f} | {client:,.0f} + {server:,.0f}"


if __name__ == "__main__":
    show(CALLERS)
