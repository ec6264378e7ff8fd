"""Which shape should the server have? Measures Count in three shapes, with h2load.

    PYTHONPATH=. python -m bench.server_shape.measure

Needs h2load (Debian: nghttp2-client). Each server is pinned to one core and the load to
another; shapes alternate, and the median of their rounds is shown. Figures of one run may be
compared with each other, not with those of another.
"""

from __future__ import annotations

import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from bytepair.v1 import tokenizer_pb2

from bench.server_shape import streams

ROUNDS = 3
SECONDS = 2
SMALL_BYTES, LARGE_BYTES = 1024, 1 << 20
#: As in bench.service.load: the first core has a system's own work too.
SERVER_CORE, LOAD_CORE = "1", "0"
PROSE = "The river ran high that spring, and 47 of the old boats – naïvely moored – were lost. "
RPC = "/bytepair.v1.TokenizerService/Count"
#: More than any request of this benchmark.
ALWAYS_INLINE = 1 << 30

SHAPES = {
    "sync, 16 threads": ["sync"],
    "asyncio": ["asyncio", "--inline-max-bytes", "16384"],
    "uvloop": ["uvloop", "--inline-max-bytes", "16384"],
    "sync, and uvloop for streams": ["both"],
}
#: Those that can have streams open by the hundred.
WITH_STREAMS = ("uvloop", "sync, and uvloop for streams")
SIZES = (256, 1024, 4096, 16_384, 65_536, 262_144)


def main() -> None:
    """Measure and print the tables."""
    if shutil.which("h2load") is None:
        sys.exit("h2load is missing: apt-get install nghttp2-client")
    print(
        f"{time.strftime('%Y-%m-%d')}, Python {platform.python_version()}, {os.cpu_count()} cores"
    )
    with tempfile.TemporaryDirectory() as folder:
        small = write_request(Path(folder), SMALL_BYTES)
        large = write_request(Path(folder), LARGE_BYTES)
        print("\nCount of 1 KiB: requests/s with 64 in flight, and one at a time (median µs)")
        for shape, figures in alternate(SHAPES, lambda port, _: throughput(port, small)).items():
            print(f"  {shape:30} {figures[0]:8.0f} {figures[1]:8.0f}")
        print("\nCount of 1 KiB, one at a time, while 1 MiB are counted, 4 in flight: µs, p50 p99")
        shapes = {
            **SHAPES,
            "uvloop, all inline": ["uvloop", "--inline-max-bytes", str(ALWAYS_INLINE)],
        }
        mixed = alternate(shapes, lambda port, _: latency_beside(port, small, large))
        for shape, figures in mixed.items():
            print(f"  {shape:30} {figures[0]:8.0f} {figures[1]:8.0f}")
        print(f"\n{streams.OPEN} busy streams: messages/s alone; and beside Count of 1 KiB, one at")
        print("a time: messages/s, its median and 99th percentile in µs; and beside 64 in flight:")
        print("messages/s, requests/s")
        busy = alternate(
            {shape: SHAPES[shape] for shape in WITH_STREAMS},
            lambda port, other: beside_streams(port, other, small),
        )
        for shape, figures in busy.items():
            print(f"  {shape:30} {' '.join(f'{figure:8.0f}' for figure in figures)}")
        print("\nuvloop: requests/s with 8 in flight by size, on the loop and on a thread")
        ways = {
            "loop": ["uvloop", "--inline-max-bytes", str(ALWAYS_INLINE)],
            "thread": ["uvloop", "--inline-max-bytes", "0"],
        }
        requests = [write_request(Path(folder), size) for size in SIZES]
        by_way = alternate(
            ways, lambda port, _: [h2load(port, request, 8)[0] for request in requests]
        )
        for index, size in enumerate(SIZES):
            loop, thread = by_way["loop"][index], by_way["thread"][index]
            print(f"  {size:8} B {loop:8.0f} {thread:8.0f}   thread/loop {thread / loop:.2f}")


def write_request(folder: Path, size: int) -> Path:
    """A gRPC frame that asks to count `size` bytes of prose."""
    text = (PROSE * (size // len(PROSE) + 1)).encode()[:size].decode(errors="ignore")
    message = tokenizer_pb2.CountRequest(encoding="cl100k_base", text=text).SerializeToString()
    path = folder / f"{size}.grpc"
    path.write_bytes(b"\0" + len(message).to_bytes(4, "big") + message)
    return path


def alternate(shapes: dict[str, list[str]], measure: object) -> dict[str, list[float]]:
    """The median figures of each shape, over rounds in which each is started anew."""
    rounds: dict[str, list[list[float]]] = {shape: [] for shape in shapes}
    for _ in range(ROUNDS):
        for shape, arguments in shapes.items():
            with running(arguments) as ports:
                rounds[shape].append(list(measure(*ports)))  # type: ignore[operator]
    return {
        shape: [statistics.median(column) for column in zip(*figures, strict=True)]
        for shape, figures in rounds.items()
    }


@contextmanager
def running(arguments: list[str]) -> Iterator[tuple[int, int]]:
    """A server on its core; its port for calls, and the one for streams."""
    script = Path(__file__).with_name("server.py")
    process = subprocess.Popen(
        ["taskset", "-c", SERVER_CORE, sys.executable, str(script), *arguments],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        calls, for_streams = map(int, process.stdout.readline().split())
        yield calls, for_streams
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def throughput(port: int, request: Path) -> list[float]:
    """Requests per second at 64 in flight, and the median latency of one at a time."""
    return [h2load(port, request, 64)[0], h2load(port, request, 1)[1]]


def latency_beside(port: int, small: Path, large: Path) -> list[float]:
    """Median and 99th percentile of small requests while large ones are sent."""
    command = h2load_command(port, large, 4, SECONDS + 2)
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as noise:
        time.sleep(1)
        _, median, high = h2load(port, small, 1)
        noise.terminate()
    return [median, high]


def beside_streams(port: int, for_streams: int, small: Path) -> list[float]:
    """Busy streams by themselves, beside small requests one at a time, and beside many."""
    figures = [streams.messages_per_second(for_streams, LOAD_CORE, SECONDS, lambda: None)[0]]
    for in_flight in (1, 64):
        messages, (per_second, median, high) = streams.messages_per_second(
            for_streams, LOAD_CORE, SECONDS + 1, partial(h2load, port, small, in_flight)
        )
        figures += [messages, median, high] if in_flight == 1 else [messages, per_second]
    return figures


def h2load(port: int, request: Path, in_flight: int) -> tuple[float, float, float]:
    """Requests per second, median and 99th percentile of latency in µs."""
    with tempfile.NamedTemporaryFile("r") as log:
        command = h2load_command(port, request, in_flight, SECONDS)
        subprocess.run([*command, "--log-file", log.name], check=True, stdout=subprocess.DEVNULL)
        rows = [line.split() for line in log]
    times = sorted(int(row[2]) for row in rows if row[1] == "200")
    return len(times) / SECONDS, statistics.median(times), times[int(len(times) * 0.99)]


def h2load_command(port: int, request: Path, in_flight: int, seconds: int) -> list[str]:
    """h2load on its core, for some seconds."""
    headers = ["-H", "content-type: application/grpc", "-H", "te: trailers"]
    return [
        *("taskset", "-c", LOAD_CORE, "h2load", "-c", "1", "-m", str(in_flight)),
        *("-D", str(seconds), "-d", str(request), *headers, f"http://127.0.0.1:{port}{RPC}"),
    ]


if __name__ == "__main__":
    main()
