"""What do streams cost, on both transports, beside an empty echo by `grpc.aio`?

    make bench-streams

The three servers run at the same time and are measured alternately; medians of the rounds are
shown. They are pinned to one core and the load to another, unless a line says otherwise. Compare
figures only within one run.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

import bytepair_engine
import grpc
from bytepair.v1 import stream_pb2, tokenizer_pb2, tokenizer_pb2_grpc

from bench.service.load import LOAD_CORE, SERVER_CORE, Server, other, service
from bench.streams.http2 import Connection
from bench.texts import english

T = TypeVar("T")

PATH = "/bytepair.v1.TokenizerService/DecodeStream"
NAMES = ("echo", "grpcio", "native")
STREAMS = ("--max-concurrent-streams", str(1 << 20))
ENCODING = "cl100k_base"
PROSE = "The river ran high that spring, and 47 of the old boats – naïvely moored – were lost. "

ROUNDS, SECONDS = 7, 1.0
#: Streams, and messages in flight on each.
SHAPES = ((1, 1), (1, 16), (100, 1))

PACED_PER_SECOND, PACED_SECONDS = 200, 3.0
COUNT_BYTES, COUNTS_IN_FLIGHT = 100_000, 2

IDLE = 1000  # streams, or connections
TEXT_BYTES, PIECE_BYTES, COUNT_ROUNDS = 100_000_000, 1 << 18, 5

CONFIG = stream_pb2.DecodeStreamRequest(
    config=stream_pb2.DecodeStreamConfig(encoding=ENCODING)
).SerializeToString()


def main() -> None:
    """Measure and print."""
    cores = os.sched_getaffinity(0)
    print(
        f"{time.strftime('%Y-%m-%d')}, Python {platform.python_version()}, "
        f"grpcio {grpc.__version__}, {len(cores)} cores"
    )
    show_count(cores)  # first: threads that start after the next line stay on that core
    os.sched_setaffinity(0, {LOAD_CORE})
    ids = bytepair_engine.get_encoding(ENCODING).encode_ordinary(PROSE)
    messages = [stream_pb2.DecodeStreamRequest(ids=[i]).SerializeToString() for i in ids]
    show_throughput(messages)
    show_latency(messages, cores)
    show_memory()


@contextmanager
def server(name: str, core: int | None = SERVER_CORE) -> Iterator[Server]:
    """Start one of the servers, on this core or on all."""
    if name == "echo":
        with other("bench.streams.echo", core=core) as running:
            yield running
    else:
        with service(1, core, flags=("--transport", name, *STREAMS)) as running:
            yield running


@contextmanager
def servers(core: int | None = SERVER_CORE) -> Iterator[dict[str, Server]]:
    """Start all of them."""
    with ExitStack() as stack:
        yield {name: stack.enter_context(server(name, core)) for name in NAMES}


def show_throughput(messages: list[bytes]) -> None:
    """Measure streams with one id in each message."""
    print("\nMessages a second, one id in each; µs of the server's CPU for each")
    print(
        f"{'streams':>8}{'under way':>11}",
        *(f"{name:>22}" for name in NAMES),
        "  native beside grpcio, echo",
    )
    with servers() as running:
        for streams, window in SHAPES:
            rounds = alternate(
                lambda name, n=streams, w=window: exchange(running[name], messages, n, w)  # type: ignore[misc]
            )
            rates = {name: median(row[0] for row in rows) for name, rows in rounds.items()}
            costs = {name: median(row[1] for row in rows) for name, rows in rounds.items()}
            ratios = [
                median(
                    ours[0] / theirs[0]
                    for ours, theirs in zip(rounds["native"], rounds[peer], strict=True)
                )
                for peer in ("grpcio", "echo")
            ]
            cells = (f"{rates[name]:12,.0f} {costs[name]:6.1f} µs" for name in NAMES)
            print(f"{streams:8}{window:11}", *cells, *(f"{ratio:9.2f}" for ratio in ratios))


def exchange(
    server: Server, messages: list[bytes], streams: int, window: int
) -> tuple[float, float]:
    """Send on each stream as soon as it has an answer. Returns the messages per second, and the CPU
    time of each."""
    connection = Connection(server.port)
    opened = open_streams(connection, streams)
    position = 0
    for stream in opened * window:
        connection.send(stream, messages[position % len(messages)])
        position += 1
    cpu, started = server.cpu_seconds(), time.perf_counter()
    done, elapsed = 0, 0.0
    while elapsed < SECONDS:
        for stream, _ in connection.receive():
            done += 1
            connection.send(stream, messages[position % len(messages)])
            position += 1
        elapsed = time.perf_counter() - started
    cost = (server.cpu_seconds() - cpu) / done
    connection.close()
    return done / elapsed, cost * 1e6


def show_latency(messages: list[bytes], cores: set[int]) -> None:
    """Measure latency under a load of Counts, with the server on both cores."""
    print(
        f"\nTime from an id to its delta, µs, one stream of {PACED_PER_SECOND} a second;\n"
        f"the server on all cores, counting {COUNTS_IN_FLIGHT} texts of {COUNT_BYTES:,} bytes at "
        "any time"
    )
    print(f"{'':14}{'median':>10}{'99 %':>10}")
    for name in ("grpcio", "native"):
        with server(name, None) as running:
            os.sched_setaffinity(running.pid, cores)
            with counting(running.port):
                rows = [paced(running.port, messages) for _ in range(3)]
        times = sorted(each for row in rows for each in row)
        print(f"{name:14}{median(times) * 1e6:10.0f}{times[int(len(times) * 0.99)] * 1e6:10.0f}")


def paced(port: int, messages: list[bytes]) -> list[float]:
    """Send at a steady pace. Returns the time until each answer."""
    connection = Connection(port)
    (stream,) = open_streams(connection, 1)
    times = []
    for number in range(int(PACED_PER_SECOND * PACED_SECONDS)):
        started = time.perf_counter()
        connection.send(stream, messages[number % len(messages)])
        while not list(connection.receive()):
            pass
        times.append(time.perf_counter() - started)
        time.sleep(1 / PACED_PER_SECOND)
    connection.close()
    return times


@contextmanager
def counting(port: int) -> Iterator[None]:
    """Call Count from another process while the block runs."""
    command = [sys.executable, "-m", "bench.streams.measure", "--count", str(port)]
    with subprocess.Popen(command) as process:
        time.sleep(1)
        try:
            yield
        finally:
            process.kill()


def count_for_ever(port: int) -> None:
    """Keep a number of Counts in flight."""
    text = (PROSE * (COUNT_BYTES // len(PROSE)))[:COUNT_BYTES]
    request = tokenizer_pb2.CountRequest(encoding=ENCODING, text=text)
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        call = tokenizer_pb2_grpc.TokenizerServiceStub(channel).Count  # type: ignore[no-untyped-call]
        under_way = [call.future(request) for _ in range(COUNTS_IN_FLIGHT)]
        while True:
            under_way.pop(0).result()
            under_way.append(call.future(request))


def show_memory() -> None:
    """Measure memory, on a new server for each row, because freed memory is not always returned."""
    print(f"\nMemory of each of {IDLE} idle streams, one id in, one delta out; and of as many more")
    message = stream_pb2.DecodeStreamRequest(ids=[9906]).SerializeToString()
    for name in NAMES:
        with server(name) as running:
            warm, connection = Connection(running.port), Connection(running.port)
            open_streams(warm, 20)
            sizes = [memory(running.pid, "VmRSS")]
            for _ in range(2):
                for stream in open_streams(connection, IDLE):
                    connection.send(stream, message)
                wait_for(connection, IDLE)
                sizes.append(memory(running.pid, "VmRSS"))
            each, more = ((after - before) / IDLE for before, after in pairwise(sizes))
            print(f"{name:14}{each:10.1f} KiB{more:10.1f} KiB")
            connection.close()
            warm.close()
    print(f"\nMemory of each of {IDLE} idle connections, which have sent their settings")
    for name in NAMES:
        with server(name) as running:
            warm = Connection(running.port)
            open_streams(warm, 1)
            before = memory(running.pid, "VmRSS")
            idle = [Connection(running.port) for _ in range(IDLE)]
            for each_idle in idle:
                assert not list(each_idle.receive())  # the server's own settings, and no message
            time.sleep(1)
            each = (memory(running.pid, "VmRSS") - before) / IDLE
            print(f"{name:14}{each:10.1f} KiB")
            for each_idle in [warm, *idle]:
                each_idle.close()


def show_count(cores: set[int]) -> None:
    """Measure CountStream of a text that exceeds the size of a message, beside the engine in this
    process."""
    data = text_of(TEXT_BYTES)
    text = data.decode()
    pieces = [data[start : start + PIECE_BYTES] for start in range(0, len(data), PIECE_BYTES)]
    encoding = bytepair_engine.get_encoding(ENCODING)
    encoding.count(PROSE)

    def messages() -> Iterator[stream_pb2.CountStreamRequest]:
        config = stream_pb2.CountStreamConfig(encoding=ENCODING)
        yield stream_pb2.CountStreamRequest(config=config)
        for piece in pieces:
            yield stream_pb2.CountStreamRequest(data=piece)

    def streamed() -> int:
        counter = bytepair_engine.StreamCounter(encoding)
        for piece in pieces:
            counter.feed(piece)
        return counter.finish()

    print(f"\nCounting {len(data):,} bytes of text, in pieces of {PIECE_BYTES:,}; all cores")
    with (
        server("native", None) as running,
        grpc.insecure_channel(f"127.0.0.1:{running.port}") as channel,
    ):
        pid = running.pid
        os.sched_setaffinity(pid, cores)
        stub = tokenizer_pb2_grpc.TokenizerServiceStub(channel)  # type: ignore[no-untyped-call]
        stub.Count(tokenizer_pb2.CountRequest(encoding=ENCODING, text=PROSE * 1000))
        before = memory(pid, "VmHWM")
        ways: dict[str, Callable[[], int]] = {
            "engine, at once": lambda: encoding.count(text),
            "engine, streamed": streamed,
            "CountStream": lambda: int(stub.CountStream(messages()).count),
        }
        seconds: dict[str, list[float]] = {name: [] for name in ways}
        counts = set()
        for _ in range(COUNT_ROUNDS):
            for name, way in ways.items():
                started = time.perf_counter()
                counts.add(way())
                seconds[name].append(time.perf_counter() - started)
        peak = memory(pid, "VmHWM")
    assert len(counts) == 1
    alone = median(seconds["engine, at once"])
    for name, times in seconds.items():
        rate = len(data) / median(times) / 1e6
        print(f"{name:18}{rate:8.1f} MB/s   {alone / median(times):5.2f}")
    print(f"the server's peak memory rose from {before / 1024:.0f} to {peak / 1024:.0f} MiB")


def text_of(size: int) -> bytes:
    """Return text from the corpora if they are there, else prose: whole lines, at most `size`
    bytes."""
    part = english() or (PROSE + "\n").encode()
    data = (part * (size // len(part) + 1))[:size]
    return data[: data.rindex(b"\n") + 1]


def open_streams(connection: Connection, number: int) -> list[int]:
    """Open streams, and wait until each has answered its configuration."""
    opened = [connection.open(PATH) for _ in range(number)]
    for stream in opened:
        connection.send(stream, CONFIG)
    wait_for(connection, number)
    return opened


def wait_for(connection: Connection, number: int) -> None:
    while number > 0:
        number -= len(list(connection.receive()))


def alternate(measure: Callable[[str], T], rounds: int = ROUNDS) -> dict[str, list[T]]:
    """Return the figures of all servers in alternating rounds, after one that is not counted."""
    figures: dict[str, list[T]] = {name: [] for name in NAMES}
    for number in range(rounds + 1):
        for name in NAMES:
            figure = measure(name)
            if number:
                figures[name].append(figure)
    return figures


def median(values: Iterator[float] | list[float]) -> float:
    return statistics.median(values)


def memory(pid: int, field: str) -> int:
    """Return a line of a process's status, in KiB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1])
    raise LookupError(field)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--count"]:
        count_for_ever(int(sys.argv[2]))
    else:
        argparse.ArgumentParser(prog="bench.streams.measure", description=__doc__).parse_args()
        main()
