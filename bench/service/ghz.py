"""The same load from another generator, beside h2load: ghz, a gRPC client in Go.

    PYTHONPATH=tests:. python -m bench.service.ghz

h2load sends prepared frames and checks only the HTTP status of answers. ghz makes and reads
messages as a client does, and checks the gRPC status. Both measure the service and the echo in each
round. Their figures should differ only by the CPU time that ghz itself takes on the load's core.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from bench.service.load import LOAD_CORE, SERVER_CORE, Figures, Server, measure, other, service
from bench.service.shapes import Shape, shapes

PROGRAM: Final = "ghz"
WHENCE: Final = "go install github.com/bojand/ghz/cmd/ghz@v0.120.0"
PROTO: Final = Path(__file__).resolve().parents[2] / "proto"
MEASURED: Final = (
    ("Count 1,000 B", 1),
    ("Count 1,000 B", 64),
    ("Count 100,000 B", 8),
    ("Encode 1,000 B", 64),
    ("Encode 100,000 B", 8),
    ("BatchCount 64 × 1,000 B", 8),
    ("Decode 25,000 ids", 8),
)
ROUNDS, SECONDS = 3, 1.0


def show() -> None:
    """Measure and print a table."""
    by_name = {shape.name: shape for shape in shapes()}
    generators: dict[str, Callable[[Server, Shape, int], Figures]] = {
        "h2load": by_h2load,
        PROGRAM: by_ghz,
    }
    found: dict[tuple[str, int, str, str], list[Figures]] = {}
    for _ in range(ROUNDS):
        with ExitStack() as stack:
            servers = {
                "service": stack.enter_context(service(1, SERVER_CORE)),
                "echo": stack.enter_context(other("bench.service.echo", core=SERVER_CORE)),
            }
            for name, in_flight in MEASURED:
                for server_name, server in servers.items():
                    for generator, measured in generators.items():
                        figures = measured(server, by_name[name], in_flight)
                        key = (name, in_flight, server_name, generator)
                        found.setdefault(key, []).append(figures)
    print(
        "\nBy h2load and by ghz, one process on one core, one connection: requests/s, CPU µs of\n"
        "the server, median µs\n"
        "| shape | in flight | service, h2load | service, ghz | echo, h2load | echo, ghz "
        "| of the echo, by CPU: h2load | ghz |\n|---|---:|---:|---:|---:|---:|---:|---:|"
    )
    for name, in_flight in MEASURED:
        cells = [
            shown(found[name, in_flight, server, generator])
            for server in ("service", "echo")
            for generator in generators
        ]
        ratios = [
            statistics.median(
                its.cpu / mine.cpu
                for mine, its in zip(
                    found[name, in_flight, "service", generator],
                    found[name, in_flight, "echo", generator],
                    strict=True,
                )
            )
            for generator in generators
        ]
        cells += [f"{ratio:.2f}×" for ratio in ratios]
        print(f"| {name} | {in_flight} | {' | '.join(cells)} |")


def by_h2load(server: Server, shape: Shape, in_flight: int) -> Figures:
    """Measure once with h2load."""
    return measure(server, shape, in_flight, SECONDS, connections=1, core=LOAD_CORE)


def by_ghz(server: Server, shape: Shape, in_flight: int) -> Figures:
    """Measure once with ghz.

    Raises:
        RuntimeError: A call did not end with OK.
    """
    with tempfile.NamedTemporaryFile() as request:
        Path(request.name).write_bytes(shape.message)
        command = [
            *("taskset", "-c", str(LOAD_CORE), PROGRAM, "--insecure", "--format", "json"),
            *("--import-paths", str(PROTO), "--proto", str(PROTO / "bytepair/v1/tokenizer.proto")),
            *("--call", f"bytepair.v1.TokenizerService.{shape.rpc}", "--binary-file", request.name),
            *("--connections", "1", "--concurrency", str(in_flight)),
            *("--duration", f"{SECONDS}s", "--duration-stop", "wait"),
            f"127.0.0.1:{server.port}",
        ]
        server.forget_peak()
        before = server.cpu_seconds()
        ended = subprocess.run(
            command, check=True, capture_output=True, env={**os.environ, "GOMAXPROCS": "1"}
        )
        used, peak = server.cpu_seconds() - before, server.peak_kib()
    report: dict[str, Any] = json.loads(ended.stdout)
    if set(report["statusCodeDistribution"]) != {"OK"}:
        raise RuntimeError(f"{shape.name}: {report['statusCodeDistribution']}")
    latency = {each["percentage"]: each["latency"] / 1e3 for each in report["latencyDistribution"]}
    return Figures(report["rps"], used / report["count"] * 1e6, latency[50], latency[99], peak)


def shown(measured: list[Figures]) -> str:
    """Return the medians of several rounds as a cell."""
    per_second, cpu, middle = (
        statistics.median(getattr(one, name) for one in measured)
        for name in ("per_second", "cpu", "median")
    )
    return f"{per_second:,.0f}, {cpu:,.0f}, {middle:,.0f}"


if __name__ == "__main__":
    show()
