"""Cost and latency of calls against the number of calls in flight."""

from __future__ import annotations

from bench.scaling.curve import Column, Curve, Line, Panel, Row, medians
from bench.scaling.text_length import count_of
from bench.service.load import LOAD_CORE, SERVER_CORE, Server, measure, service

#: Up to more than ten times `max_in_flight`.
IN_FLIGHT = tuple(1 << power for power in range(13))
TEXT_BYTES = (1_000, 100_000)
#: Maximum connections; fewer if fewer calls are in flight.
CONNECTIONS = 16
ROUNDS, SECONDS = 3, 1.5
#: When h2load's time is over it cancels thousands of calls at once, from one address. Without this
#: flag the server would reject that as abuse.
FLAGS = ("--max-abandoned-per-second", "0")
#: Minimum seconds of a measurement for each call in flight.
SECONDS_EACH = 0.002


def rows(quick: bool) -> list[Row]:
    """Measure, with a server of its own for each round."""
    rounds = []
    for _ in range(1 if quick else ROUNDS):
        with service(1, SERVER_CORE, shows_metrics=True, flags=FLAGS) as server:
            rounds.append([one(server, size, n) for size in TEXT_BYTES for n in IN_FLIGHT])
    return medians(rounds)


def one(server: Server, size: int, in_flight: int) -> Row:
    """Measure one number of calls in flight."""
    before = server.ended()
    found = measure(
        server,
        count_of(size),
        in_flight,
        max(SECONDS, in_flight * SECONDS_EACH),
        connections=CONNECTIONS,
        core=LOAD_CORE,
    )
    ended = server.ended() - before
    # Without the calls that h2load cancelled at its end.
    answered = ended["OK"] / (ended["OK"] + ended["RESOURCE_EXHAUSTED"])
    return {
        "in_flight": in_flight,
        "text": f"{size:,} B",
        "per_second": found.per_second * answered,
        "shed": 1 - answered,
        "cpu": found.cpu,
        "median": found.median / 1000,
        "high": found.high / 1000,
    }


def _lines(key: str) -> tuple[Line, ...]:
    names = [f"{size:,} B" for size in TEXT_BYTES]
    return tuple(Line(key, name, (("text", name),)) for name in names)


CURVE = Curve(
    "concurrency",
    "Count of English, cl100k_base, one process on one core, up to 16 connections",
    Column("in_flight", "calls under way"),
    (
        Column("text", "text"),
        Column("per_second", "answered/s"),
        Column("shed", "shed", ".0%"),
        Column("cpu", "server CPU µs"),
        Column("median", "median ms", ",.2f"),
        Column("high", "99 % ms", ",.2f"),
    ),
    (
        Panel("answered calls a second", _lines("per_second"), logarithmic=False),
        Panel("CPU time of one call, µs", _lines("cpu"), logarithmic=False),
        Panel("time until the answer, median, ms", _lines("median")),
    ),
    rows,
)
