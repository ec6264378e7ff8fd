"""Cores and money for a billion counts of 1,000 bytes a day, for each way to send them."""

from __future__ import annotations

import os

from bench.scaling.curve import Column, Curve, Row, medians
from bench.scaling.places import on_core
from bench.service import clients
from bench.service.load import LOAD_CORE, SERVER_CORE, Server, measure, service
from bench.service.shapes import shapes

COUNTS, DAY_SECONDS = 1_000_000_000, 86_400
#: Share of the cores' time that is used in the busiest hour, and the ratio of its load to the mean.
BUSY, PEAK = 0.6, 3.0
#: Dollars for an hour of one virtual CPU: an assumption, about what general-purpose machines of the
#: large clouds cost on demand, without their discounts.
VCPU_HOUR = float(os.environ.get("VCPU_HOUR", "0.04"))
ROUNDS, SECONDS = 5, 1.0


def rows(quick: bool) -> list[Row]:
    """Measure, with a server of its own for each round."""
    with on_core():
        rounds = []
        for _ in range(1 if quick else ROUNDS):
            with service(1, SERVER_CORE) as server:
                rounds.append([_priced(way, cpu) for way, cpu in costs(server)])
        return medians(rounds)


def costs(server: Server) -> list[tuple[str, float]]:
    """Return the server's CPU time for one count, in microseconds, for each way to send it."""
    by_name = {shape.name: shape for shape in shapes()}
    single = measure(server, by_name["Count 1,000 B"], 64, SECONDS, connections=8, core=LOAD_CORE)
    batch = by_name["BatchCount 64 × 1,000 B"]
    batched = measure(server, batch, 8, SECONDS, connections=8, core=LOAD_CORE)
    return [
        ("a call for each, 64 under way", single.cpu),
        ("the asyncio client, 64 callers", clients.of_tasks(server, 64).server),
        ("the asyncio client, 256 callers", clients.of_tasks(server, 256).server),
        (f"BatchCount of {batch.units}", batched.cpu / batch.units),
    ]


def _priced(way: str, cpu: float) -> Row:
    cores = COUNTS * cpu / 1e6 / DAY_SECONDS
    bought = cores * PEAK / BUSY
    return {
        "way": way,
        "cpu": cpu,
        "cores": cores,
        "money": cores * 24 * VCPU_HOUR,
        "bought": bought,
        "all_money": bought * 24 * VCPU_HOUR,
    }


CURVE = Curve(
    "cost",
    f"A billion counts of 1,000 B a day; ${VCPU_HOUR:g} for a vCPU hour",
    Column("way", "sent as"),
    (
        Column("cpu", "server CPU µs a count", ",.1f"),
        Column("cores", "cores, if even and always busy", ",.2f"),
        Column("money", "$ a day", ",.2f"),
        Column("bought", f"cores for {PEAK:g}× at the peak, {BUSY:.0%} busy", ",.1f"),
        Column("all_money", "$ a day", ",.2f"),
    ),
    (),
    rows,
)
