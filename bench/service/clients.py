"""What the project's own clients do with calls that come together: joined, and each as it is.

Client and server have a core each. Ratios are taken within a round, and medians shown.

    PYTHONPATH=tests:. python -m bench.service.clients
"""

from __future__ import annotations

import asyncio
import os
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from bytepair_client import AsyncTokenizerClient, TokenizerClient

from bench.service.load import Server, service
from bench.service.shapes import ENCODING
from bench.service.text import prose

SERVER_CORE, LOAD_CORE = 0, 1
CALLERS = (1, 4, 16, 64, 256)
MOST_CALLERS = (256,)
ROUNDS, SECONDS = 3, 1.0
TEXT = prose(1_000)


@dataclass(frozen=True)
class Rate:
    """Calls per second; how long they took, in milliseconds."""

    per_second: float
    median: float
    high: float


def show(callers: Sequence[int]) -> None:
    """Measure and print a table."""
    print(
        f"\nThe project's clients, Count of {len(TEXT):,} B, each caller one call after another\n"
        "| client | callers | each as it is: calls/s | median, 99 % ms | joined: calls/s "
        "| median, 99 % ms | |\n|---|---:|---:|---:|---:|---:|---:|"
    )
    own = os.sched_getaffinity(0)
    with service(1, SERVER_CORE) as server:
        os.sched_setaffinity(0, {LOAD_CORE})
        for number in callers:
            for name, measured in (("asyncio", of_tasks), ("threads", of_threads)):
                show_row(name, number, server, measured)
    os.sched_setaffinity(0, own)


def show_row(
    name: str, number: int, server: Server, measured: Callable[[Server, int, bool], Rate]
) -> None:
    """One client with so many callers."""
    rounds = [[measured(server, number, joined) for joined in (False, True)] for _ in range(ROUNDS)]
    plain, joined = ([found[index] for found in rounds] for index in (0, 1))
    ratio = statistics.median(after.per_second / before.per_second for before, after in rounds)
    print(f"| {name} | {number} | {shown(plain)} | {shown(joined)} | {ratio:.2f}× |", flush=True)


def of_tasks(server: Server, number: int, joined: bool) -> Rate:
    """Calls of so many tasks."""

    async def main() -> Rate:
        target = f"127.0.0.1:{server.port}"
        async with AsyncTokenizerClient(target, encoding=ENCODING, coalesce=joined) as client:
            await client.count(TEXT)
            times: list[float] = []
            until = time.perf_counter() + SECONDS

            async def caller() -> None:
                while (began := time.perf_counter()) < until:
                    await client.count(TEXT)
                    times.append(time.perf_counter() - began)

            await asyncio.gather(*(caller() for _ in range(number)))
            return rate(times)

    return asyncio.run(main())


def of_threads(server: Server, number: int, joined: bool) -> Rate:
    """Calls of so many threads."""
    target = f"127.0.0.1:{server.port}"
    with (
        TokenizerClient(target, encoding=ENCODING, coalesce=joined) as client,
        ThreadPoolExecutor(number) as threads,
    ):
        client.count(TEXT)
        times: list[float] = []
        until = time.perf_counter() + SECONDS

        def caller() -> None:
            while (began := time.perf_counter()) < until:
                client.count(TEXT)
                times.append(time.perf_counter() - began)

        for running in [threads.submit(caller) for _ in range(number)]:
            running.result()
        return rate(times)


def rate(seconds: list[float]) -> Rate:
    """What calls that took so long come to."""
    seconds.sort()
    done = len(seconds)
    return Rate(done / SECONDS, seconds[done // 2] * 1e3, seconds[done * 99 // 100] * 1e3)


def shown(rates: Sequence[Rate]) -> str:
    """The medians of some rounds, as cells."""
    per_second, middle, high = (
        statistics.median(getattr(one, name) for one in rates)
        for name in ("per_second", "median", "high")
    )
    return f"{per_second:,.0f} | {middle:.1f}, {high:.1f}"


if __name__ == "__main__":
    show(CALLERS)
