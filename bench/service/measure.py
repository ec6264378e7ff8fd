"""What does the service cost beside its own transport, and beside a simple server?

    make bench-service               every shape: some fifteen minutes
    make bench-service QUICK=1       the shapes of the aims, once: a minute
    make bench-service PARTS=clients one part alone: shapes, json, beside, workers, ghz, clients, or
                                     the shapes of one RPC, as Count
    make bench-service OTHER=PYTHON  … and the service of another environment: an older version

The service, an echo (the same gRPC server with an empty handler) and naive peers run on one core,
the load (h2load) on another. All are restarted in each round, and measured one after the other with
each shape. Ratios are those within a round; their medians are shown.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import signal
import statistics
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace

import grpc

from bench.service import beside, clients, ghz
from bench.service.load import (
    LOAD_CORE,
    SERVER_CORE,
    Figures,
    Server,
    Stalled,
    measure,
    other,
    service,
)
from bench.service.shapes import Shape, shapes

SERVERS: dict[str, Callable[[], AbstractContextManager[Server]]] = {
    "service": lambda: service(1, SERVER_CORE, flags=("--transport", "grpcio")),
    "native": lambda: service(1, SERVER_CORE, flags=("--transport", "native")),
    "echo": lambda: other("bench.service.echo", core=SERVER_CORE),
    "grpcio": lambda: other("bench.service.naive", "grpc", core=SERVER_CORE),
    "FastAPI": lambda: other("bench.service.naive", "http", core=SERVER_CORE),
}
PEERS = ("grpcio", "FastAPI")
OTHER = "another version"
#: The service, on each of its transports.
OWN = {"service": "grpcio", "native": "native"}
#: Maximum time for servers to finish the calls that the load left behind.
SETTLE_SECONDS = 10.0
PARTS = ("shapes", "json", "beside", "workers", "ghz", "clients")
RPCS = {"Count", "Encode", "BatchCount", "Decode"}
#: Requests in flight, and connections.
IN_FLIGHT = ((1, 1), (8, 1), (64, 1))
SPREAD_IN_FLIGHT = (64, 64)
#: The shape that is also measured with many connections.
SPREAD_SHAPE = "Count 1,000 B"
JSON_SHAPE, JSON_IN_FLIGHT = "Count 1,000 B", (8, 64)
ROUNDS, SECONDS = 3, 0.7
QUICK = {
    ("Count 200 B", 64),
    ("Count 1,000 B", 1),
    ("Count 1,000 B", 64),
    ("Count 100,000 B", 8),
    ("Encode 1,000 B", 64),
    ("Encode 100,000 B", 8),
    ("Encode 1,000,000 B", 8),
    ("BatchCount 64 × 1,000 B", 8),
}
QUICK_SECONDS = 1.0
#: For several processes: enough connections that each gets about as many.
SPREAD, TWO_IN_FLIGHT = 16, 64
IN_TWO = ("Count 1,000 B", "Count 100,000 B")

#: A shape, the requests in flight, and the connections.
Wanted = tuple[Shape, int, int]
Rows = dict[tuple[str, int, int], list[dict[str, Figures]]]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="bench.service.measure", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the shapes of the aims, once")
    parser.add_argument(
        "--other", metavar="PYTHON", help="also measure the service installed there"
    )
    parser.add_argument("parts", nargs="*", metavar="part", help=", ".join(PARTS))
    given = parser.parse_args()
    if unknown := set(given.parts) - set(PARTS) - RPCS:
        parser.error(f"no such part: {', '.join(unknown)}")
    quick, parts = given.quick, given.parts or PARTS
    if given.other:
        SERVERS[OTHER] = lambda: service(1, SERVER_CORE, python=given.other)
    chosen = RPCS if "shapes" in parts else RPCS & set(parts)
    print(
        f"{time.strftime('%Y-%m-%d')}, Python {platform.python_version()}, "
        f"grpcio {grpc.__version__}, {len(os.sched_getaffinity(0))} cores, "
        f"load average {os.getloadavg()[0]:.1f} at the start"
    )
    wanted = [
        (shape, in_flight, connections)
        for shape in shapes()
        for in_flight, connections in IN_FLIGHT
        + ((SPREAD_IN_FLIGHT,) if shape.name == SPREAD_SHAPE else ())
        if shape.rpc in chosen and (not quick or (shape.name, in_flight) in QUICK)
    ]
    rounds = 1 if quick else ROUNDS
    if chosen:
        show_one_process(wanted, rounds, QUICK_SECONDS if quick else SECONDS)
    if "json" in parts:
        show_json(rounds, QUICK_SECONDS if quick else SECONDS)
    if "beside" in parts:
        beside.show(rounds)
    if "workers" in parts:
        show_two_processes([shape for shape in shapes() if not quick or shape.name in IN_TWO])
    if "ghz" in parts:
        if shutil.which(ghz.PROGRAM) is None:
            print(f"\nLeft out, as {ghz.PROGRAM} is not on PATH: {ghz.WHENCE}")
        else:
            ghz.show()
    if "clients" in parts:
        clients.show(clients.MAX_CALLERS if quick else clients.CALLERS)


def show_one_process(wanted: list[Wanted], rounds: int, seconds: float) -> None:
    """Print the table of shapes."""
    rows: Rows = {}
    for _ in range(rounds):
        with ExitStack() as stack:
            servers = {name: stack.enter_context(start()) for name, start in SERVERS.items()}
            for shape, in_flight, connections in wanted:
                found: dict[str, Figures] = {}
                for name, server in list(servers.items()):
                    if shape.body is None and server.is_http:
                        continue
                    settle(servers)
                    try:
                        found[name] = measure(
                            server,
                            shape,
                            in_flight,
                            seconds,
                            connections=connections,
                            core=LOAD_CORE,
                        )
                    except Stalled:
                        if name not in PEERS:
                            raise
                        # It is overloaded, and would still work while the others are measured.
                        os.kill(server.pid, signal.SIGKILL)
                        servers[name] = stack.enter_context(SERVERS[name]())
                rows.setdefault((shape.name, in_flight, connections), []).append(found)
    print(
        "\nOne process on one core; requests/s as a multiple of the other's, and by CPU time\n"
        "| shape | transport | in flight | requests/s | CPU µs | echo's CPU µs | median µs "
        f"| 99 % µs | of the echo | grpcio + tiktoken | FastAPI + tiktoken | {OTHER} "
        f"| peak MB: {', '.join(SERVERS)} |\n"
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
    )
    for (shape_name, in_flight, connections), measured in rows.items():
        on = f" on {connections}" if connections > 1 else ""
        echo = [found["echo"] for found in measured]
        for own, transport in OWN.items():
            mine = [found[own] for found in measured]
            print(
                f"| {shape_name} | {transport} | {in_flight}{on} "
                f"| {median(mine, lambda f: f.per_second):,.0f} "
                f"| {median(mine, lambda f: f.cpu):,.0f} | {median(echo, lambda f: f.cpu):,.0f} "
                f"| {median(mine, lambda f: f.median):,.0f} "
                f"| {median(mine, lambda f: f.high):,.0f} | {ratio(measured, own, 'echo')} "
                f"| {ratio(measured, own, 'grpcio')} | {ratio(measured, own, 'FastAPI')} "
                f"| {ratio(measured, own, OTHER)} | {peaks(measured)} |"
            )


def show_json(rounds: int, seconds: float) -> None:
    """Measure the service by JSON over HTTP/1.1 beside FastAPI."""
    shape = next(shape for shape in shapes() if shape.name == JSON_SHAPE)
    rows: dict[int, list[dict[str, Figures]]] = {}
    for _ in range(rounds):
        with ExitStack() as stack:
            own = stack.enter_context(SERVERS["native"]())
            servers = {
                "native": replace(own, is_http=True),
                "FastAPI": stack.enter_context(SERVERS["FastAPI"]()),
            }
            for in_flight in JSON_IN_FLIGHT:
                found = {}
                for name, server in servers.items():
                    settle(servers)
                    found[name] = measure(
                        server, shape, in_flight, seconds, connections=in_flight, core=LOAD_CORE
                    )
                rows.setdefault(in_flight, []).append(found)
    print(
        f"\n{JSON_SHAPE} as JSON over HTTP/1.1, a connection for each request in flight\n"
        "| in flight | requests/s | CPU µs | of FastAPI + tiktoken: requests/s, CPU |\n"
        "|---:|---:|---:|---:|"
    )
    for in_flight, measured in rows.items():
        mine = [found["native"] for found in measured]
        print(
            f"| {in_flight} | {median(mine, lambda f: f.per_second):,.0f} "
            f"| {median(mine, lambda f: f.cpu):,.0f} | {ratio(measured, 'native', 'FastAPI')} |"
        )


def settle(servers: dict[str, Server]) -> None:
    """Wait until all servers are idle: they share a core."""
    before, until = -1.0, time.monotonic() + SETTLE_SECONDS
    while time.monotonic() < until:
        now = sum(server.cpu_seconds() for server in servers.values())
        if now == before:
            return
        before = now
        time.sleep(0.1)


def show_two_processes(chosen: list[Shape]) -> None:
    """Measure workers that share the load's cores."""
    ways = {
        "1 worker": (1, ()),
        "2 workers, on no core of their own": (2, ("--pin-workers", "false")),
        "2 workers": (2, ()),
    }
    wanted = [(shape, connections) for shape in chosen for connections in (1, SPREAD)]
    rates: dict[tuple[str, int, str], list[float]] = {}
    for _ in range(ROUNDS):
        for way, (workers, flags) in ways.items():
            with service(workers, None, flags=flags) as server:
                for shape, connections in wanted:
                    figures = measure(
                        server,
                        shape,
                        TWO_IN_FLIGHT,
                        SECONDS,
                        connections=connections,
                        core=LOAD_CORE,
                    )
                    found = rates.setdefault((shape.name, connections, way), [])
                    found.append(figures.per_second)
    print("\nOne and two workers on all cores, beside the load: requests/s")
    print(f"| shape | connections | {' | '.join(ways)} | |\n|---|---:|---:|---:|---:|---:|")
    for shape, connections in wanted:
        seen = [statistics.median(rates[shape.name, connections, way]) for way in ways]
        cells = " | ".join(f"{rate:,.0f}" for rate in seen)
        print(f"| {shape.name} | {connections} | {cells} | {seen[-1] / seen[0]:.2f}× |")


def median(figures: list[Figures], of: Callable[[Figures], float]) -> float:
    """Return the median of one of the figures."""
    return statistics.median(map(of, figures))


def peaks(measured: list[dict[str, Figures]]) -> str:
    """Return the peak memory of each server while it answered a shape."""
    most = (
        max((found[name].peak_kib for found in measured if name in found), default=None)
        for name in SERVERS
    )
    return ", ".join("–" if kib is None else f"{kib * 1024 / 1e6:.0f}" for kib in most)


def ratio(measured: list[dict[str, Figures]], own: str, beside: str) -> str:
    """Return the service's requests per second as a multiple of another's, and the same per second
    of CPU time. The latter matters more if the load generator is the limit."""
    pairs = [(found[own], found[beside]) for found in measured if beside in found]
    if not pairs:
        return "–"
    faster = statistics.median(mine.per_second / its.per_second for mine, its in pairs)
    cheaper = statistics.median(its.cpu / mine.cpu for mine, its in pairs)
    return f"{faster:.2f}×, {cheaper:.2f}×"


if __name__ == "__main__":
    main()
