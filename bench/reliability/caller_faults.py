"""Faults of callers: hostile ones, too many, too large requests, connections that end."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic, perf_counter, sleep
from typing import Any, Final

import grpc
from bytepair.v1 import tokenizer_pb2, tokenizer_pb2_grpc
from bytepair_server.config.settings import Settings
from grpc_health.v1 import health_pb2, health_pb2_grpc
from support.serving import RunningServer

from bench.reliability.callers import has_printed, result_of, start_load
from bench.reliability.load import ON_EACH
from bench.reliability.rows import ONE, SECONDS, TWO, Row, served
from bench.reliability.watch import ENCODING, Seen, tree

AGE_SECONDS: Final = 0.2
MIB: Final = 1 << 20
#: Number of callers that keep one worker busy.
BUSY_CALLERS: Final = 16


def hostile(name: str, *flags: str) -> Row:
    with served(*TWO, *flags) as (server, seen):
        attack = subprocess.run(
            [sys.executable, "-m", "bench.reliability.attack", name, server.target, str(SECONDS)],
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
        held = _still_held(server)
    note = f"{held:.0f} calls still in flight afterwards" if held else ""
    return Row(" ".join((name, *flags)), attack.stdout.strip(), seen, note, int(held))


def _still_held(server: RunningServer) -> float:
    """Return the number of slots held by calls whose callers disconnected seconds ago."""
    until = monotonic() + 5
    while (held := server.metric("bytepair_in_flight")) and monotonic() < until:
        sleep(0.05)
    return held


def large_inputs() -> Row:
    """Send 1 MiB texts as fast as one client can, beside small calls."""
    with served(*TWO) as (server, seen):
        sleep(SECONDS)
        median, p99 = seen.percentile_ms(50), seen.percentile_ms(99)
        seen.latencies.clear()
        with start_load(server, MIB, 4, SECONDS) as load:
            sent, _, _ = result_of(load)
    note = (
        f"median of the others {seen.percentile_ms(50) / median:.1f} times that before, "
        f"99th percentile {seen.percentile_ms(99) / p99:.1f} times"
    )
    return Row("1 MiB texts, 4 at a time", f"{sent * SECONDS:.0f} MiB", seen, note)


def short_connections() -> Row:
    """Let connections end all the time under load. Callers do not try again."""
    with (
        served(*TWO, "--max-connection-age-seconds", str(AGE_SECONDS)) as (server, seen),
        start_load(server, 1_000, 4 * ON_EACH, SECONDS) as load,
    ):
        good, rejected, failed = result_of(load)
    lost = SECONDS * (rejected + failed)
    sent, note = f"{good:.0f} calls/s", f"{lost:.0f} calls failed"
    return Row(f"connections end after {AGE_SECONDS} s", sent, seen, note, round(lost))


def overload(text_bytes: int) -> Row:
    """Run ten times the callers that are admitted at once. Each calls again as soon as it has an
    answer. The row compares the rate with that of just enough callers to keep the server busy."""
    *for_load, core = sorted(os.sched_getaffinity(0))
    for_load = for_load or [core]  # apart, or the server would be slow because its load is quick
    with served(*ONE, "--workers", "1", cores=[core]) as (server, seen):
        with start_load(server, text_bytes, BUSY_CALLERS, SECONDS, for_load) as load:
            best, _, _ = result_of(load)
        callers = 10 * Settings().max_in_flight
        with start_load(server, text_bytes, callers, SECONDS, for_load) as load:
            checks = _health(server, lambda: not has_printed(load))
            leaving = _health(server, lambda: load.poll() is None)
            good, rejected, failed = result_of(load)
    note = (
        f"goodput {100 * good / best:.0f} % of that with {BUSY_CALLERS}; "
        f"{rejected:.0f} rejected/s, {failed:.0f} failed/s; "
        f"health p99 {checks.percentile_ms(99):.0f} ms, "
        f"worst {checks.worst_ms:.0f} ms, and {leaving.worst_ms:.0f} ms when all leave at once"
    )
    size = f"{text_bytes // 1000} KB"
    fault = f"{callers} callers of {size} that never pause"
    return Row(fault, f"{good + rejected + failed:.0f} calls/s", seen, note)


def _health(server: RunningServer, going: Callable[[], bool]) -> Seen:
    """Call the health service about fifty times a second, at least once."""
    health: Any = health_pb2_grpc.HealthStub(server.channel)
    checks = Seen()
    while True:
        began = perf_counter()
        health.Check(health_pb2.HealthCheckRequest(), timeout=10)
        checks.latencies.append(perf_counter() - began)
        if not going():
            return checks
        sleep(0.02)


def cancelled_work() -> Row:
    """Cancel calls with texts of many megabytes."""
    text = "".join(chr(0x4E00 + i * 7919 % 20000) for i in range(30 * MIB))
    request = tokenizer_pb2.CountRequest(encoding=ENCODING, text=text)
    given_up, freed = 0, 0.0
    with served(*ONE, "--workers", "1", "--max-input-bytes", str(100 * MIB)) as (server, seen):
        options = [("grpc.max_send_message_length", -1)]
        with grpc.insecure_channel(server.target, options=options) as channel:
            stub: Any = tokenizer_pb2_grpc.TokenizerServiceStub(channel)  # type: ignore[no-untyped-call]
            began = perf_counter()
            stub.Count(request, timeout=120)
            whole = perf_counter() - began
            for _ in range(3):
                call = stub.Count.future(request, timeout=120)
                until = monotonic() + 60
                while server.metric("bytepair_in_flight") < 1 and monotonic() < until:
                    sleep(0.005)
                sleep(0.3)
                busy = _cpu(server.pid)
                call.cancel()
                given_up += 1
                sleep(1.0)
                freed = max(freed, _cpu(server.pid) - busy)
    note = f"whole: {whole:.1f} s; CPU in the second after it was given up: {1000 * freed:.0f} ms"
    return Row("90 MB texts, cancelled at work", f"{given_up} calls", seen, note)


def _cpu(pid: int) -> float:
    total = 0
    for each in tree(pid):
        fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")
