"""Several processes behind one port, as callers, probes and scrapes see them."""

from __future__ import annotations

import os
import resource
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from bytepair.v1 import stream_pb2, tokenizer_pb2_grpc
from bytepair_client import TokenizerClient
from conftest import Serve
from support.serving import RunningServer
from support.workers import (
    CONNECTIONS,
    TWO,
    connections,
    count_on,
    exists,
    on_linux,
    wait_until,
    workers_of,
)

pytestmark = on_linux

KILLS = 3
COUNTED = "bytepair_requests_total"
ANSWERED = {"rpc": "Count", "code": "OK"}


def each_call(server: RunningServer) -> list[dict[str, Any]]:
    """Return the log lines of the first call on each connection, in order."""

    def calls() -> list[dict[str, Any]]:
        return [line for line in server.log if line["event"] == "call"]

    wait_until(lambda: len(calls()) >= CONNECTIONS)
    return calls()


def test_both_workers_answer_and_their_counts_are_summed(serve: Serve) -> None:
    server = serve(*TWO)
    with connections(server) as channels:
        assert [count_on(channel) for channel in channels] == [1] * CONNECTIONS
    calls = each_call(server)
    assert {line["worker"] for line in calls} == {0, 1}
    assert len({line["request_id"] for line in calls}) == CONNECTIONS
    labels = {"rpc": "Count", "encoding": "cl100k_base"}
    assert server.metric("bytepair_requests_total", **labels, code="OK") == CONNECTIONS
    assert server.metric("bytepair_tokens_total", **labels) == CONNECTIONS
    assert server.metric("bytepair_request_seconds_count", **labels) == CONNECTIONS
    assert server.metric("bytepair_request_seconds_bucket", **labels, le="+Inf") == CONNECTIONS
    assert server.metric("bytepair_workers") == 2
    assert server.metric("bytepair_ready") == 1
    assert server.metric("bytepair_encoding_info") == 1
    assert server.metric("bytepair_in_flight") == 0
    assert server.get("/readyz") == (200, "ready\n")
    wait_until(lambda: server.get("/healthz") == (200, "healthy\n"))


def test_workers_share_the_memory_of_the_encodings(serve: Serve) -> None:
    """The supervisor has no threads, which would not survive the fork of a replacement."""
    server = serve(*TWO, "--builtin-encodings", "cl100k_base,o200k_base,r50k_base")
    with connections(server) as channels:
        for channel in channels:
            count_on(channel)
    server.get("/metrics")
    for pid in workers_of(server):
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        own = sum(int(line.split()[1]) for line in lines if line.startswith("Private_"))
        assert own < 40 * 1024
    assert len(list(Path(f"/proc/{server.pid}/task").iterdir())) == 1


def test_open_files_are_those_of_the_process_with_the_most(serve: Serve) -> None:
    """The limit is one of each process."""
    server = serve(*TWO)
    processes = (server.pid, *workers_of(server))
    with connections(server) as channels:
        for channel in channels:
            count_on(channel)
        opened = [len(list(Path(f"/proc/{pid}/fd").iterdir())) for pid in processes]
        assert server.metric("process_open_fds") == max(opened)
    limits = [resource.prlimit(pid, resource.RLIMIT_NOFILE)[0] for pid in processes]
    assert server.metric("process_max_fds") == min(limits)


def test_a_killed_worker_fails_no_call_and_its_counts_are_kept(serve: Serve) -> None:
    server = serve(*TWO, "--log-level", "info")
    threads, stop = 8, threading.Event()

    def call() -> int:
        calls = 0
        with TokenizerClient(server.target, encoding="cl100k_base") as client:
            while not stop.is_set():
                assert client.count("a") == 1
                calls += 1
        return calls

    with ThreadPoolExecutor(threads) as pool:
        running = [pool.submit(call) for _ in range(threads)]
        try:
            for kill in range(KILLS):
                server.wait_for_metric("bytepair_workers", 2)
                enough = server.metric(COUNTED, **ANSWERED) + 100
                wait_until(
                    lambda enough=enough: (
                        any(each.done() for each in running)  # type: ignore[misc]
                        or server.metric(COUNTED, **ANSWERED) > enough
                    )
                )
                os.kill(workers_of(server)[kill % 2], signal.SIGKILL)
                server.wait_for_metric("bytepair_workers_lost_total", kill + 1)
        finally:
            stop.set()
        answered = sum(each.result() for each in running)
    server.wait_for_metric("bytepair_workers", 2)
    # Each killed worker may have lost one answer per thread after counting it.
    assert answered <= server.metric(COUNTED, **ANSWERED) <= answered + KILLS * threads
    assert server.metric("bytepair_in_flight") == 0
    ended = [server.wait_for_log("a worker ended", times=number + 1) for number in range(KILLS)]
    assert [line["status"] for line in ended] == [-signal.SIGKILL] * KILLS
    assert ended[0]["replaced_in_seconds"] == 0


#: Python runs it before anything else. The supervisor waits a third of its usual times, or less.
IMPATIENT = """
import os
fork = os.fork
def fork_with_less_patience():
    from bytepair_server.workers import supervisor
    supervisor.WATCH_SECONDS, supervisor.UNHEALTHY_SECONDS, supervisor.START_SECONDS = 1, 5, 10
    return fork()
os.fork = fork_with_less_patience
"""


def test_a_worker_that_hangs_is_killed_and_replaced(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(IMPATIENT)
    server = serve(*TWO, environment={"PYTHONPATH": str(tmp_path)})
    hung = workers_of(server)[0]
    os.kill(hung, signal.SIGSTOP)
    line = server.wait_for_log("killed a worker that does not answer", pid=hung)
    assert (line["worker"], line["level"]) == (0, "error")
    server.wait_for_metric("bytepair_workers_lost_total", 1)
    server.wait_for_metric("bytepair_workers", 2)
    wait_until(lambda: server.get("/healthz") == (200, "healthy\n"))
    with connections(server) as channels:
        assert [count_on(channel) for channel in channels] == [1] * len(channels)


#: As in `IMPATIENT`, and the third process stops before it serves.
STOPPED_AT_START = (
    IMPATIENT
    + """
import signal
fork_any, forks = os.fork, []
def fork_and_stop_the_third():
    forks.append(None)
    pid = fork_any()
    if pid == 0 and len(forks) == 3:
        os.kill(os.getpid(), signal.SIGSTOP)
    return pid
os.fork = fork_and_stop_the_third
"""
)


@pytest.mark.slow
def test_a_worker_that_never_serves_is_killed_and_replaced(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(STOPPED_AT_START)
    server = serve(*TWO, environment={"PYTHONPATH": str(tmp_path)})
    os.kill(workers_of(server)[1], signal.SIGKILL)
    wait_until(lambda: server.get("/healthz") == (503, "these workers do not answer: [1]\n"))
    line = server.wait_for_log("killed a worker that does not answer", worker=1)
    wait_until(lambda: not exists(line["pid"]))
    server.wait_for_metric("bytepair_workers", 2)
    wait_until(lambda: server.get("/healthz") == (200, "healthy\n"))


def test_a_worker_that_dies_repeatedly_is_restarted_with_growing_delays(serve: Serve) -> None:
    server = serve(*TWO)
    kept = workers_of(server)[0]
    for deaths in range(1, 4):
        server.wait_for_metric("bytepair_workers", 2)
        (other,) = set(workers_of(server)) - {kept}
        os.kill(other, signal.SIGKILL)
        ended = server.wait_for_log("a worker ended", times=deaths)
        assert ended["replaced_in_seconds"] == (0, 0.1, 0.2)[deaths - 1]
    assert kept in workers_of(server)


def listening(server: RunningServer) -> int:
    """Return the number of sockets that listen on the server's port."""
    port = f":{int(server.target.rpartition(':')[2]):04X}"
    table = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()]
    return sum(row[1].endswith(port) and row[3] == "0A" for row in table)


def test_a_worker_that_receives_sigterm_drains_and_is_replaced(serve: Serve) -> None:
    server = serve("--transport", "native", *TWO)
    ending = threading.Event()

    def requests() -> Iterator[stream_pb2.CountStreamRequest]:
        yield stream_pb2.CountStreamRequest(config={"encoding": "cl100k_base"}, text="a")
        ending.wait()

    with connections(server) as streaming, connections(server) as new:
        running = [
            tokenizer_pb2_grpc.TokenizerServiceStub(channel).CountStream.future(requests())  # type: ignore[no-untyped-call]
            for channel in streaming
        ]
        server.wait_for_metric("bytepair_open_streams", CONNECTIONS)
        os.kill(workers_of(server)[0], signal.SIGTERM)
        try:
            assert server.wait_for_log("draining")["open_streams"] > 0
            wait_until(lambda: listening(server) == 1)
            assert [count_on(channel) for channel in new] == [1] * CONNECTIONS
        finally:
            ending.set()
        assert [call.result().count for call in running] == [1] * CONNECTIONS
    assert server.wait_for_log("stopped")["worker"] in (0, 1)
    ended = server.wait_for_log("a worker ended")
    assert ended["status"] == 0
    again = server.wait_for_log("a worker serves again")
    assert (again["worker"], again["pid"] != ended["pid"]) == (ended["worker"], True)
    server.wait_for_metric("bytepair_workers", 2)


def test_a_stuck_worker_makes_the_server_unhealthy(serve: Serve) -> None:
    server = serve(*TWO)
    with connections(server) as channels:
        for channel in channels:
            count_on(channel)
    stuck = workers_of(server)[0]
    os.kill(stuck, signal.SIGSTOP)
    try:
        # The other one may answer late on a busy machine.
        wait_until(lambda: server.get("/healthz") == (503, "these workers do not answer: [0]\n"))
        assert server.metric("bytepair_requests_total", rpc="Count", code="OK") == CONNECTIONS
    finally:
        os.kill(stuck, signal.SIGCONT)
    wait_until(lambda: server.get("/healthz") == (200, "healthy\n"))


def test_a_server_whose_workers_are_all_stuck_is_not_ready(serve: Serve) -> None:
    server = serve(*TWO)
    stuck = workers_of(server)
    for pid in stuck:
        os.kill(pid, signal.SIGSTOP)
    try:
        wait_until(lambda: server.get("/readyz") == (503, "no worker takes calls\n"))
        assert workers_of(server) == stuck
    finally:
        for pid in stuck:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
    wait_until(lambda: server.get("/readyz") == (200, "ready\n"))
