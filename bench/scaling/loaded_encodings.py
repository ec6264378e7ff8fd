"""Start, memory and latency of a server, against the number of encodings that it loads."""

from __future__ import annotations

import itertools
import time
from typing import Any

import grpc
from bytepair.v1 import tokenizer_pb2

from bench.scaling.curve import Column, Curve, Line, Panel, Row, medians
from bench.scaling.places import calls, memory, on_core
from bench.service.load import SERVER_CORE, Server, service
from bench.service.text import prose

#: The encodings in the order in which they are added.
ENCODINGS = (
    "cl100k_base", "o200k_base", "o200k_harmony", "r50k_base", "p50k_base", "p50k_edit",
)  # fmt: skip
TEXT_BYTES, TEXTS = 1_000, 2_000
ROUNDS, SECONDS = 5, 0.5


def rows(quick: bool) -> list[Row]:
    """Measure the numbers of encodings alternately."""
    numbers = range(1, len(ENCODINGS) + 1)
    with on_core():
        return medians([[one(number) for number in numbers] for _ in range(2 if quick else ROUNDS)])


def one(number: int) -> Row:
    """Measure a server with the first `number` encodings, and the memory of one more worker."""
    names = ENCODINGS[:number]
    began = time.perf_counter()
    with service(1, SERVER_CORE, encodings=names) as server:
        started = time.perf_counter() - began
        resident = memory(server).resident
        latency = counting(server, names)
        worked = memory(server).resident
    with service(2, SERVER_CORE, encodings=names) as two:
        of_two = memory(two).proportional
    with service(3, SERVER_CORE, encodings=names) as three:
        of_three = memory(three).proportional
    return {
        "encodings": number,
        "added": names[-1],
        "start": started * 1000,
        "resident": resident / 1e6,
        "worked": worked / 1e6,
        "further": (of_three - of_two) / 1e6,
        "median": latency,
    }


def counting(server: Server, names: tuple[str, ...]) -> float:
    """Return the median time of Counts of different texts, over all encodings, in microseconds."""
    requests = itertools.cycle(
        tokenizer_pb2.CountRequest(
            encoding=names[index % len(names)], text=prose(TEXT_BYTES, start=index * TEXT_BYTES)
        ).SerializeToString()
        for index in range(TEXTS)
    )
    with grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        count: Any = channel.unary_unary("/bytepair.v1.TokenizerService/Count")
        return calls(server, lambda: count(next(requests)), SECONDS).median


CURVE = Curve(
    "loaded-encodings",
    f"Starts of `bytepair-server` on one core; Count of different texts of {TEXT_BYTES:,} B",
    Column("encodings", "encodings"),
    (
        Column("added", "the last of them"),
        Column("start", "start to serving, ms"),
        Column("resident", "resident, one worker, MB"),
        Column("worked", "after the counts, MB"),
        Column("further", "a further worker, MB", ",.1f"),
        Column("median", "Count, one at a time: median µs"),
    ),
    (
        Panel("from its start until it serves, ms", (Line("start"),), logarithmic=False),
        Panel(
            "memory, MB",
            (
                Line("resident", "one worker, started"),
                Line("worked", "after counts of 2,000 texts"),
                Line("further", "each further one"),
            ),
            logarithmic=False,
        ),
        Panel("Count of 1,000 B, one at a time, µs", (Line("median"),), logarithmic=False),
    ),
    rows,
    logarithmic=False,
)
