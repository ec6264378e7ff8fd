"""Faults of the server's processes: workers and replicas that are killed or replaced."""

from __future__ import annotations

import itertools
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from time import monotonic, sleep
from typing import Final

from bytepair_client import Draining, TokenizerClient
from bytepair_client._options import RECONNECT_MAX_BACKOFF_S
from support.serving import RunningServer

from bench.reliability import replicas
from bench.reliability.rows import ONE, SECONDS, TWO, Row, served
from bench.reliability.watch import ENCODING, TEXT, bystanders, free_port, tree

STREAMS: Final = 1000
#: Grace time of a replaced replica: several times the duration of the streams that must complete.
GRACE_SECONDS: Final = 5.0


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
