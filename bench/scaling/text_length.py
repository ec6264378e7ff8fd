"""The cost of a Count against the length of its text, as one call and as a stream."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable

import bytepair_engine
from bytepair.v1 import tokenizer_pb2
from bytepair_client import TokenizerClient

from bench.scaling.curve import Column, Curve, Line, Panel, Row, medians
from bench.scaling.places import calls, on_core
from bench.service.load import LOAD_CORE, SERVER_CORE, Server, measure, service
from bench.service.shapes import ENCODING, Shape
from bench.service.text import prose

CALL_BYTES = (10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
STREAM_BYTES = (10_000, 100_000, 1_000_000, 10_000_000, 100_000_000)
ROUNDS, SECONDS, IN_FLIGHT = 3, 0.7, 8
#: Size of the text from which new texts are cut: more than the caches of a core.
WINDOW = 16_000_000
CALL, STREAM = "call", "stream"


def count_of(size: int) -> Shape:
    """A Count request with this many bytes."""
    request = tokenizer_pb2.CountRequest(encoding=ENCODING, text=prose(size))
    return Shape(f"Count {size:,} B", "Count", request.SerializeToString(), b"", None)


def rows(quick: bool) -> list[Row]:
    """Measure calls, then streams."""
    with on_core():
        return medians([one_round() for _ in range(1 if quick else ROUNDS)])


def one_round() -> list[Row]:
    """Measure one round on a new server."""
    with service(1, SERVER_CORE) as server:
        found = [by_call(server, size) for size in CALL_BYTES]
        with TokenizerClient(f"127.0.0.1:{server.port}", encoding=ENCODING) as client:
            return found + [by_stream(server, client, size) for size in STREAM_BYTES]


def by_call(server: Server, size: int) -> Row:
    """Measure one request, sent by h2load."""
    shape = count_of(size)
    busy = measure(server, shape, IN_FLIGHT, SECONDS, connections=1, core=LOAD_CORE)
    alone = measure(server, shape, 1, SECONDS, connections=1, core=LOAD_CORE)
    return {
        "bytes": size,
        "by": CALL,
        "cpu": busy.cpu,
        "rate": size / busy.cpu,
        "median": alone.median,
        **engine(size),
    }


def by_stream(server: Server, client: TokenizerClient, size: int) -> Row:
    """Measure a stream, sent by the project's client."""
    text = prose(size)
    found = calls(server, lambda: client.count_stream([text]), SECONDS)
    return {
        "bytes": size,
        "by": STREAM,
        "cpu": found.cpu,
        "rate": size / found.cpu,
        "median": found.median,
    }


def engine(size: int) -> Row:
    """Return the microseconds of the engine alone, in this process: of a repeated text, and of new
    texts."""
    encoding = bytepair_engine.get_encoding(ENCODING, threads=1)
    same = prose(size)
    offsets = itertools.cycle(range(0, WINDOW, size))
    others = (prose(size, start=next(offsets)) for _ in itertools.count())
    with on_core(SERVER_CORE):
        return {
            "same": timed(lambda: same, encoding.count),
            "other": timed(lambda: next(others), encoding.count),
        }


def timed(text: Callable[[], str], count: Callable[[str], int]) -> float:
    """Return the CPU microseconds of one count: the mean over a tenth of a second."""
    spent, done = 0.0, 0
    while spent < 0.1:
        made = text()
        began = time.thread_time()
        count(made)
        spent += time.thread_time() - began
        done += 1
    return spent / done * 1e6


CURVE = Curve(
    "text-length",
    "Count of English, cl100k_base, one process on one core",
    Column("bytes", "bytes of text"),
    (
        Column("by", "by"),
        Column("cpu", f"server CPU µs, {IN_FLIGHT} under way"),
        Column("rate", "MB for a CPU second", ",.1f"),
        Column("median", "alone: median µs"),
        Column("same", "engine µs, same text", ",.1f"),
        Column("other", "other text each time", ",.1f"),
    ),
    (
        Panel(
            "CPU time of one count, µs",
            (
                Line("cpu", "call", (("by", CALL),)),
                Line("cpu", "stream", (("by", STREAM),)),
                Line("same", "engine alone, text seen before"),
                Line("other", "engine alone, another text each time"),
            ),
        ),
        Panel(
            "time until the answer, alone, ms",
            (
                Line("median", "call, median", (("by", CALL),), 1e-3),
                Line("median", "stream, median", (("by", STREAM),), 1e-3),
            ),
        ),
    ),
    rows,
)
