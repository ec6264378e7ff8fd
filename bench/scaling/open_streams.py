"""What open streams cost: idle ones in memory and in the latency of other calls, busy ones in
messages per second."""

from __future__ import annotations

import time
from typing import Any

import grpc
from bytepair.v1 import stream_pb2

from bench.scaling.curve import Column, Curve, Line, Panel, Row, medians
from bench.scaling.places import calls, memory, on_core
from bench.scaling.text_length import count_of
from bench.service.load import SERVER_CORE, Server, service
from bench.streams.http2 import Connection
from bench.streams.measure import open_streams, wait_for

STREAMS = (1, 10, 100, 1_000, 4_000)
#: Streams of one connection; the server permits 1,024.
EACH_CONNECTION = 1_000
WARM_STREAMS = 20
ROUNDS, SECONDS = 3, 1.0
MESSAGE = stream_pb2.DecodeStreamRequest(ids=[9906]).SerializeToString()


def rows(quick: bool) -> list[Row]:
    """Measure each number on a server of its own, because freed memory is not all returned."""
    with on_core():
        return medians([[one(number) for number in STREAMS] for _ in range(1 if quick else ROUNDS)])


def one(number: int) -> Row:
    """Measure a number of streams, idle and then busy."""
    with service(1, SERVER_CORE) as server:
        warm = Connection(server.port)
        open_streams(warm, WARM_STREAMS)
        without = beside(server)
        before = memory(server).resident
        opened = []
        for start in range(0, number, EACH_CONNECTION):
            connection = Connection(server.port)
            streams = open_streams(connection, min(EACH_CONNECTION, number - start))
            opened.append((connection, streams))
            give_one_id(connection, streams)
            wait_for(connection, len(streams))
        used = memory(server).resident - before
        idle = beside(server)
        rate, cpu = exchange(server, opened)
        for connection, _ in opened:
            connection.close()
        warm.close()
    found: Row = {
        "streams": number,
        "without": without,
        "idle": idle,
        "per_second": rate,
        "cpu": cpu,
        "wait": number / rate * 1e3,
    }
    # Fewer streams take less memory than the unit in which it is reserved.
    return found | {"kib": used / 1024 / number} if number >= 100 else found


def beside(server: Server) -> float:
    """Return the median time of consecutive Counts of 1,000 bytes, in microseconds."""
    request = count_of(1_000).message
    with grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        count: Any = channel.unary_unary("/bytepair.v1.TokenizerService/Count")
        return calls(server, lambda: count(request), SECONDS).median


def exchange(server: Server, opened: list[tuple[Connection, list[int]]]) -> tuple[float, float]:
    """Keep one id in flight on each stream. Returns the messages per second, and the CPU µs of
    each."""
    for connection, streams in opened:
        give_one_id(connection, streams)
    before, began = server.cpu_seconds(), time.perf_counter()
    done, elapsed = 0, 0.0
    while elapsed < SECONDS:
        for connection, _ in opened:
            for stream, _ in connection.receive():
                done += 1
                connection.send(stream, MESSAGE)
            connection.flush()
        elapsed = time.perf_counter() - began
    return done / elapsed, (server.cpu_seconds() - before) / done * 1e6


def give_one_id(connection: Connection, streams: list[int]) -> None:
    """Send an id on each stream."""
    for stream in streams:
        connection.send(stream, MESSAGE)
    connection.flush()


CURVE = Curve(
    "open-streams",
    "DecodeStream, cl100k_base, one process on one core",
    Column("streams", "open streams"),
    (
        Column("kib", "KiB for each", ",.1f"),
        Column("without", "Count of 1,000 B before they are open: median µs"),
        Column("idle", "beside them, idle: median µs"),
        Column("per_second", "busy: messages/s"),
        Column("cpu", "server CPU µs a message", ",.1f"),
        Column("wait", "id to delta, mean ms", ",.2f"),
    ),
    (
        Panel("messages a second, all streams busy", (Line("per_second"),), logarithmic=False),
        Panel("from an id to its delta, all busy, ms", (Line("wait"),)),
        Panel(
            "Count of 1,000 B beside idle streams, µs",
            (Line("idle", "beside them"), Line("without", "before")),
            logarithmic=False,
        ),
    ),
    rows,
)
