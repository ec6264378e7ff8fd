"""What moves the limit? The service as it is, beside the same with one thing done differently.

    PYTHONPATH=tests:. python -m bench.service.variants [NAME …]

Server and load as in bench.service.measure. Each variant is started anew in each round, and its
requests per second are shown as a multiple of those of the same round's service as it is, which
stands in the table twice: what the second says of the first is what chance does.
"""

from __future__ import annotations

import gc
import os
import statistics
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench.service.load import LOAD_CORE, SERVER_CORE, Figures, measure, service
from bench.service.shapes import shapes

ROUNDS, SECONDS = 5, 0.7
MEASURED: Final = (
    ("Count 1,000 B", 1),
    ("Count 1,000 B", 64),
    ("Count 1,000,000 B", 8),
    ("Encode 1,000,000 B", 8),
)
AS_IT_IS: Final = "as it is"
#: Debian: apt-get install libjemalloc2.
JEMALLOC: Final = Path("/usr/lib/x86_64-linux-gnu/libjemalloc.so.2")


@dataclass(frozen=True)
class Variant:
    """What is done differently.

    Attributes:
        environment: Variables of the server.
        flags: Of `bytepair-server`, after its others.
        options: Arguments of the gRPC server, after its others.
        before: Called before anything else.
    """

    environment: dict[str, str] | None = None
    flags: tuple[str, ...] = ()
    options: tuple[tuple[str, int], ...] = ()
    before: Callable[[], None] | None = None


VARIANTS: Final = {
    AS_IT_IS: Variant(),
    "as it is, again": Variant(),
    "a Unix socket": Variant(flags=("--grpc-address", "unix:{folder}/socket")),
    "gRPC's own experiments": Variant({"GRPC_EXPERIMENTS": ""}),
    "no probes for the window": Variant(options=(("grpc.http2.bdp_probe", 0),)),
    "a window of 8 MiB from the start": Variant(
        options=(("grpc.http2.bdp_probe", 0), ("grpc.http2.lookahead_bytes", 8 << 20))
    ),
    "frames of 1 MiB": Variant(options=(("grpc.http2.max_frame_size", 1 << 20),)),
    "as many heaps as glibc likes": Variant({"MALLOC_ARENA_MAX": "16"}),
    "thresholds of glibc's heap": Variant(
        {"MALLOC_MMAP_THRESHOLD_": str(64 << 20), "MALLOC_TRIM_THRESHOLD_": str(256 << 20)}
    ),
    "jemalloc": Variant({"LD_PRELOAD": str(JEMALLOC)}),
    "malloc for Python's objects": Variant({"PYTHONMALLOC": "malloc"}),
    "python -OO": Variant({"PYTHONOPTIMIZE": "2"}),
    "no collector": Variant(before=gc.disable),
    "a switch interval of 0.5 ms": Variant(before=lambda: sys.setswitchinterval(0.0005)),
    "a switch interval of 50 ms": Variant(before=lambda: sys.setswitchinterval(0.05)),
}


def main(names: list[str]) -> None:
    """Measure and print."""
    by_name = {shape.name: shape for shape in shapes()}
    chosen = [AS_IT_IS, *(names or [name for name in VARIANTS if name != AS_IT_IS])]
    if not JEMALLOC.exists() and "jemalloc" in chosen:
        print(f"left out: jemalloc, as there is no {JEMALLOC}")
        chosen.remove("jemalloc")
    found: dict[str, dict[tuple[str, int], list[Figures]]] = {name: {} for name in chosen}
    for _ in range(ROUNDS):
        for name, of_variant in found.items():
            with service(1, SERVER_CORE, command=("-m", "bench.service.variants", "=", name)) as it:
                for shape, in_flight in MEASURED:
                    figures = measure(
                        it, by_name[shape], in_flight, SECONDS, connections=1, core=LOAD_CORE
                    )
                    of_variant.setdefault((shape, in_flight), []).append(figures)
    heads = " | ".join(f"{shape}, {in_flight} in flight" for shape, in_flight in MEASURED)
    print(f"requests/s beside the service as it is, CPU µs\n| | {heads} | peak MB |")
    print("|---" * (len(MEASURED) + 2) + "|")
    for name, of_variant in found.items():
        cells = []
        for key, series in of_variant.items():
            pairs = zip(series, found[AS_IT_IS][key], strict=True)
            ratio = statistics.median(its.per_second / mine.per_second for its, mine in pairs)
            cells.append(f"{ratio:.2f}×, {statistics.median(one.cpu for one in series):,.0f}")
        peak = max(one.peak_kib for series in of_variant.values() for one in series)
        print(f"| {name} | {' | '.join(cells)} | {peak * 1024 / 1e6:.0f} |")


def serve(name: str, flags: list[str]) -> int:
    """Be the server, as a variant of it."""
    variant = VARIANTS[name]
    if variant.environment is not None:
        command = [sys.executable, "-m", "bytepair_server.cli", *flags]
        os.execve(sys.executable, command, {**os.environ, **variant.environment})
    if variant.before is not None:
        variant.before()
    from bytepair_server.workers import environment

    environment.prepare()
    from bytepair_server import command as start
    from bytepair_server import server as lifecycle
    from bytepair_server.transport import options

    ordinary, more = options.grpc_options, list(variant.options)
    patched: Any = lifecycle
    patched.grpc_options = lambda *given, **named: ordinary(*given, **named) + more
    with tempfile.TemporaryDirectory() as folder:
        own = [flag.format(folder=folder) for flag in variant.flags]
        return start.run([*flags, *own])


if __name__ == "__main__":
    if sys.argv[1:2] == ["="]:
        sys.exit(serve(sys.argv[2], sys.argv[3:]))
    main(sys.argv[1:])
