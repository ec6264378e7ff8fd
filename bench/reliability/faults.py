"""The faults of the matrix: each causes one beside ordinary callers and returns its row."""

from __future__ import annotations

import itertools
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import monotonic, perf_counter, sleep
from typing import Any, Final

import grpc
from bytepair.v1 import tokenizer_pb2, tokenizer_pb2_grpc
from bytepair_client import Draining, TokenizerClient
from bytepair_client._options import RECONNECT_MAX_BACKOFF_S
from bytepair_server.config.settings import Settings
from grpc_health.v1 import health_pb2, health_pb2_grpc
from support.hostile import ATTACKS
from support.serving import RunningServer

from bench.reliability import replicas
from bench.reliability.callers import has_printed, on_cores, result_of, start_load
from bench.reliability.load import ON_EACH
from bench.reliability.watch import (
    ENCODING,
    TEXT,
    Seen,
    bystanders,
    descriptors_of,
    free_port,
    tree,
)

SECONDS: Final = 6.0
AGE_SECONDS: Final = 0.2
STREAMS: Final = 1000
#: Grace time of a replaced replica: several times the duration of the streams that must complete.
GRACE_SECONDS: Final = 5.0
MIB: Final = 1 << 20
#: Number of callers that keep one worker busy.
BUSY_CALLERS: Final = 16
ONE: Final = ("--builtin-encodings", ENCODING, "--log-level", "info")
TWO: Final = (*ONE, "--workers", "2")


@dataclass
class Row:
    """One row of the table.

    Attributes:
        fault: What happened.
        sent: How much of it.
        seen: What the bystanders saw.
        note: What else was found.
        lost: Deltas of streams, or counts of metrics, that are missing; slots not given back.
    """

    fault: str
    sent: str
    seen: Seen
    note: str = ""
    lost: int = 0


@contextmanager
def served(*flags: str, cores: Collection[int] = ()) -> Iterator[tuple[RunningServer, Seen]]:
    """A server on given cores, and bystanders on any."""
    with ExitStack() as stack:
        with on_cores(cores):
            server = stack.enter_context(RunningServer(*flags))
        seen = stack.enter_context(bystanders(server.target, [server.pid]))
        sleep(0.5)
        seen.latencies.clear()  # of connecting
        yield server, seen


def nothing() -> Row:
    """Cause no fault: the baseline of the other rows."""
    with served(*TWO) as (_, seen):
        sleep(SECONDS)
    return Row("none", "–", seen)


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


def killed_workers() -> Row:
    kills = 0
    with served(*TWO) as (server, seen):
        until = monotonic() + SECONDS
        while monotonic() < until:
            workers = tree(server.pid)[1:]
            if len(workers) == 2 and server.metric("bytepair_workers") == 2:
                os.kill(workers[kills % 2], signal.SIGKILL)
                kills += 1
            sleep(0.5)
        for _ in range(200):
            if server.metric("bytepair_workers") == 2:
                break
            sleep(0.05)
        replaced = server.metric("bytepair_workers_lost_total")
    counted = f"{replaced:.0f} counted as lost and replaced"
    return Row("kill -9 of a worker under load", f"{kills} kills", seen, counted)


def killed_replicas() -> Row:
    """Run streams of a second or two over three replicas, which are killed one after the other."""
    with replicas.killed_in_turn() as running, bystanders(running.target, running.pids) as seen:
        outcomes = replicas.stream(running.target, STREAMS)
    lost = STREAMS - outcomes["whole"]
    note = ", ".join(f"{count} streams {name}" for name, count in outcomes.most_common())
    return Row("kill -9 of replicas under streams", f"{running.kills} kills", seen, note, lost)


def rolling() -> Row:
    """Replace two replicas behind one name, one after the other, twice. Streams of a second finish
    within the grace time; endless streams do not, and continue at the other replica."""
    ports = [free_port() for _ in range(2)]
    rolls = 0
    with ExitStack() as stack:
        flags = (
            *ONE,
            "--grace-seconds",
            str(GRACE_SECONDS),
            "--stream-grace-seconds",
            str(GRACE_SECONDS),
        )
        start = [partial(RunningServer, *flags, "--grpc-address", port) for port in ports]
        running = [each() for each in start]
        stack.callback(_close, running)
        pids = [server.pid for server in running]
        target = "ipv4:" + ",".join(ports)
        seen = stack.enter_context(bystanders(target, pids))
        over = threading.Event()
        with ThreadPoolExecutor(6) as pool:
            streams = [pool.submit(_streams, target, over) for _ in range(4)]
            endless = [pool.submit(_endless_streams, target, over) for _ in range(2)]
            sleep(1)
            for _ in range(2):
                for index in range(2):
                    running[index].terminate()
                    assert running[index].wait() == 0
                    running[index].channel.close()
                    running[index] = start[index]()
                    pids[index] = running[index].pid
                    rolls += 1
                    sleep(RECONNECT_MAX_BACKOFF_S)  # a rollout waits for its clients, too
            over.set()
            done = [each.result(120) for each in streams]
            ended = [each.result(120) for each in endless]
    lost = sum(each[1] for each in done + ended)
    drained = sum(each[2] for each in done)
    note = (
        f"{sum(each[0] for each in done)} streams of a second complete, {drained} ended with "
        f"DRAINING before a delta; {sum(each[0] for each in ended)} endless ones resumed at the "
        "other replica"
    )
    return Row("SIGTERM, rolling over two replicas", f"{rolls} restarts", seen, note, lost)


def _close(servers: list[RunningServer]) -> None:
    for server in servers:
        server.close()


def _streams(target: str, over: threading.Event) -> tuple[int, int, int]:
    """Run streams of about a second; returns how many were complete, incomplete and rejected."""
    whole = lost = drained = 0
    with TokenizerClient(target, encoding=ENCODING) as client:
        ids = client.encode(TEXT[:670])

        def slowly() -> Iterator[int]:
            for token_id in ids:
                yield token_id
                sleep(0.005)

        while not over.is_set():
            text = ""
            try:
                for delta in client.decode_stream(slowly()):
                    text += delta
            except Draining:
                drained += not text
                lost += bool(text)
            except Exception:
                lost += 1
            else:
                whole += text == TEXT[:670]
                lost += text != TEXT[:670]
    return whole, lost, drained


def _endless_streams(target: str, over: threading.Event) -> tuple[int, int]:
    """Run endless streams; returns how many were complete until stopped, and incomplete."""
    whole = lost = 0
    with TokenizerClient(target, encoding=ENCODING, timeout=None) as client:
        ids = client.encode(TEXT)

        def slowly() -> Iterator[int]:
            for token_id in itertools.cycle(ids):
                if over.is_set():
                    return
                yield token_id
                sleep(0.01)

        while not over.is_set():
            text = ""
            try:
                for delta in client.decode_stream(slowly()):
                    text += delta
            except Exception:
                lost += 1
            right = (TEXT * (1 + len(text) // len(TEXT))).startswith(text)
            whole += right
            lost += not right
    return whole, lost


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


def no_descriptors() -> Row:
    """Open more connections than the server has file descriptors."""
    with served(*ONE, "--workers", "1") as (server, seen):
        limit = descriptors_of(server.pid) + 8
        before = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (limit, before[1]))
        links = []
        for _ in range(100):
            with suppress(OSError):
                links.append(socket.create_connection(_host_and_port(server.target), 1))
        sleep(SECONDS / 2)
        for link in links:
            link.close()
        sleep(0.5)
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, before)
        with TokenizerClient(server.target, encoding=ENCODING, timeout=30) as client:
            count = client.count("hello world")
    note = f"a new caller afterwards: {'answered' if count == 2 else 'not answered'}"
    return Row("no file descriptors left", f"{len(links)} connections", seen, note)


def full_disk() -> Row:
    """Write the log to a full disk."""
    address = free_port()
    command = [sys.executable, "-m", "bytepair_server.cli", *ONE, "--grpc-address", address]
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        flags = ["--http-address", "none", "--log-level", "debug", "--workers", "1"]
        process = subprocess.Popen([*command, *flags], stderr=full, stdout=full)
    try:
        until = monotonic() + 60
        while monotonic() < until:  # its log says nothing
            with suppress(OSError), socket.create_connection(_host_and_port(address), 1):
                break
            sleep(0.1)
        with bystanders(address, [process.pid]) as seen:
            sleep(SECONDS)
        process.terminate()
        status = process.wait(60)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    return Row("disk full under the log", "every line", seen, f"exit status {status}")


def _host_and_port(address: str) -> tuple[str, int]:
    host, port = address.rsplit(":", 1)
    return host, int(port)


def all_faults() -> list[tuple[str, Callable[[], Row]]]:
    """Return every fault by name."""

    def named(*faults: Callable[[], Row]) -> list[tuple[str, Callable[[], Row]]]:
        return [(each.__name__, each) for each in faults]

    return [
        *named(nothing, rolling, killed_replicas, killed_workers, short_connections),
        *((f"overload {size}", partial(overload, size)) for size in (1_000, 100_000)),
        *named(large_inputs, cancelled_work, no_descriptors, full_disk),
        *((name, partial(hostile, name)) for name in ATTACKS),
    ]
