"""A server with several workers stops: running calls finish, and no process is left."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from http.client import HTTPConnection
from time import sleep

import grpc
import pytest
from bytepair.v1 import tokenizer_pb2_grpc
from conftest import Serve
from support.failures import failure
from support.inherited import inherited
from support.serving import RunningServer
from support.slow import finish, unfinished_count
from support.workers import (
    CONNECTIONS,
    COUNT,
    TWO,
    connections,
    exists,
    on_linux,
    wait_until,
    workers_of,
)

pytestmark = on_linux


def test_a_sigterm_to_every_process_loses_no_worker(serve: Serve) -> None:
    """Service managers signal all processes. The supervisor may notice it after its workers."""
    server = serve(*TWO)
    workers = workers_of(server)
    os.kill(server.pid, signal.SIGSTOP)
    try:
        for pid in (server.pid, *workers):
            os.kill(pid, signal.SIGTERM)
        wait_until(lambda: not any(map(exists, workers)))
    finally:
        os.kill(server.pid, signal.SIGCONT)
    assert server.wait() == 0
    assert "a worker ended" not in [line["event"] for line in server.log]


@contextmanager
def unfinished_counts(server: RunningServer) -> Iterator[list[HTTPConnection]]:
    """Calls that both workers have in flight during the block."""
    with ExitStack() as stack:
        calls = [stack.enter_context(unfinished_count(server)) for _ in range(CONNECTIONS)]
        server.wait_for_metric("bytepair_in_flight", CONNECTIONS)
        yield calls


@pytest.mark.parametrize(("number", "times"), [(signal.SIGINT, 1), (signal.SIGHUP, 2)])
def test_running_calls_of_every_worker_are_finished_before_the_server_stops(
    serve: Serve, number: signal.Signals, times: int
) -> None:
    """Closing a terminal may send SIGHUP twice, which counts as one request to drain."""
    with inherited(signal.SIGHUP, signal.SIG_DFL):
        server = serve(*TWO, "--grace-seconds", "600")
    with unfinished_counts(server) as calls:
        for time in range(times):
            # Ctrl-C signals every process of the terminal.
            for pid in (*workers_of(server), server.pid):
                os.kill(pid, number)
            server.wait_for_log("caught a signal", times=time + 1, signal=number.name)
        for worker in (0, 1):
            assert server.wait_for_log("draining", worker=worker)["in_flight"] > 0
        assert server.get("/readyz") == (503, "draining\n")
        with connections(server, 1) as channels:
            stub = tokenizer_pb2_grpc.TokenizerServiceStub(channels[0])  # type: ignore[no-untyped-call]
            assert failure(stub.Count, COUNT).code is grpc.StatusCode.UNAVAILABLE
        assert {finish(call) for call in calls} == {200}
    assert server.wait() == 0
    assert server.log[-1]["event"] == "stopped"
    assert "worker" not in server.log[-1]


def test_a_second_signal_cuts_the_grace_time_of_every_worker_short(serve: Serve) -> None:
    server = serve(*TWO, "--grace-seconds", "3600")
    with unfinished_counts(server) as calls:
        server.terminate()
        for number in (0, 1):
            server.wait_for_log("draining", worker=number)
        server.terminate()
        assert {call.getresponse().status for call in calls} == {503}
    assert server.wait() == 0


@pytest.mark.parametrize("grace_seconds", ["0", "3600"])
def test_a_worker_that_does_not_stop_in_time_is_killed(serve: Serve, grace_seconds: str) -> None:
    """The other one has stopped before: no process has its number any more."""
    server = serve(*TWO, "--grace-seconds", grace_seconds, "--stream-grace-seconds", "0")
    stuck = workers_of(server)[0]
    os.kill(stuck, signal.SIGSTOP)
    try:
        server.terminate()
        if grace_seconds != "0":
            server.wait_for_log("caught a signal")
            server.terminate()
        assert server.wait() == 0
    finally:
        with suppress(ProcessLookupError):
            os.kill(stuck, signal.SIGCONT)
    events = [line["event"] for line in server.log]
    assert events.count("killed a worker that did not stop") == 1
    assert not exists(stuck)


def test_no_worker_outlives_its_supervisor(serve: Serve) -> None:
    server = serve(*TWO)
    pids = workers_of(server)
    os.kill(server.pid, signal.SIGKILL)
    wait_until(lambda: not any(exists(pid) for pid in pids))
    host, port = server.target.split(":")
    socket.create_server((host, int(port))).close()


def test_workers_end_if_the_supervisor_is_killed_with_unread_messages(serve: Serve) -> None:
    """The workers' connections are then reset instead of closed."""
    server = serve(*TWO)
    pids = workers_of(server)
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(server.get, "/metrics")  # asks both workers
        sleep(0.5)
        os.kill(server.pid, signal.SIGSTOP)
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
        sleep(0.5)
        os.kill(server.pid, signal.SIGKILL)
        asked.exception()
    wait_until(lambda: not any(exists(pid) for pid in pids))
