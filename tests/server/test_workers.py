"""Several processes behind one port, as callers, probes and scrapes see them."""

from __future__ import annotations

import os
import resource
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import grpc
import pytest
from bytepair.v1 import stream_pb2, tokenizer_pb2, tokenizer_pb2_grpc
from bytepair_client import TokenizerClient
from bytepair_server.workers import cores
from conftest import Serve
from support.failures import failure
from support.inherited import inherited
from support.serving import START_SECONDS, RunningServer, clean_environment, command
from support.slow import finish, unfinished_count

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/task").exists(), reason="workers share a port on Linux only"
)

TWO = ("--workers", "2")
COUNT = tokenizer_pb2.CountRequest(encoding="cl100k_base", text="a")
#: Enough connections to reach both workers almost certainly: each goes to either at random.
CONNECTIONS = 24
KILLS = 3
COUNTED = "bytepair_requests_total"
ANSWERED = {"rpc": "Count", "code": "OK"}


@contextmanager
def connections(server: RunningServer, number: int = CONNECTIONS) -> Iterator[list[grpc.Channel]]:
    """Channels without shared connections."""
    own = [("grpc.use_local_subchannel_pool", 1)]
    channels = [grpc.insecure_channel(server.target, options=own) for _ in range(number)]
    try:
        yield channels
    finally:
        for channel in channels:
            channel.close()


def count_on(channel: grpc.Channel, timeout: float | None = None) -> int:
    stub = tokenizer_pb2_grpc.TokenizerServiceStub(channel)  # type: ignore[no-untyped-call]
    count: int = stub.Count(COUNT, timeout=timeout).count
    return count


def workers_of(server: RunningServer) -> list[int]:
    children = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text()
    return [int(pid) for pid in children.split()]


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = monotonic() + START_SECONDS
    while not holds():
        assert monotonic() < deadline
        sleep(0.01)


def each_call(server: RunningServer) -> list[dict[str, Any]]:
    """Return the log lines of the first call on each connection, in order."""

    def calls() -> list[dict[str, Any]]:
        return [line for line in server.log if line["event"] == "call"]

    wait_until(lambda: len(calls()) >= CONNECTIONS)
    return calls()


def exists(pid: int) -> bool:
    """Return whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


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


def test_a_server_has_a_worker_for_each_core_by_default(serve: Serve) -> None:
    server = serve("--workers", "0")
    expected = cores.usable_cores()
    assert server.wait_for_log("serving")["workers"] == expected
    assert server.metric("bytepair_workers") == expected


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
    assert server.wait_for_log("a worker ended")["status"] == 0
    server.wait_for_metric("bytepair_workers", 2)


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


def test_a_stuck_worker_makes_the_server_unhealthy(serve: Serve) -> None:
    server = serve(*TWO)
    with connections(server) as channels:
        for channel in channels:
            count_on(channel)
    stuck = workers_of(server)[0]
    os.kill(stuck, signal.SIGSTOP)
    try:
        status, line = server.get("/healthz")
        assert (status, "does not answer" in line) == (503, True)
        assert server.metric("bytepair_requests_total", rpc="Count", code="OK") == CONNECTIONS
    finally:
        os.kill(stuck, signal.SIGCONT)
    wait_until(lambda: server.get("/healthz") == (200, "healthy\n"))


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
            assert failure(stub.Count, COUNT).reason == "DRAINING"
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


def test_a_worker_that_does_not_stop_in_time_is_killed(serve: Serve) -> None:
    """The other one has stopped before: no process has its number any more."""
    server = serve(*TWO, "--grace-seconds", "0", "--stream-grace-seconds", "0")
    stuck = workers_of(server)[0]
    os.kill(stuck, signal.SIGSTOP)
    try:
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


def start(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a server that ends by itself."""
    flags = ("--grpc-address", "127.0.0.1:0", "--http-address", "none", "--builtin-encodings")
    return subprocess.run(
        command(*flags, "r50k_base", "--allow-reference-backend", *TWO, *arguments),
        env=clean_environment(**variables),
        capture_output=True,
        text=True,
        timeout=START_SECONDS,
        check=False,
    )


@pytest.mark.slow
def test_the_supervisor_exits_if_no_worker_ever_serves() -> None:
    ended = start("--transport", "grpcio", GRPC_POLL_STRATEGY="there is no such strategy")
    assert ended.returncode == 3
    assert "no worker could start: the server ends" in ended.stderr
    assert '"event": "serving"' not in ended.stderr


def test_a_port_in_use_is_a_clear_error(serve: Serve) -> None:
    """With SO_REUSEPORT two servers of one user could silently share a port."""
    server = serve(*TWO)
    for flag, name, address in (
        ("--grpc-address", "grpc_address", server.target),
        ("--http-address", "http_address", server.http.removeprefix("http://")),
    ):
        ended = start(flag, address)
        assert ended.returncode == 2
        assert f"bytepair-server: {name} {address}: cannot listen" in ended.stderr
        assert "Traceback" not in ended.stderr


def test_a_unix_socket_has_one_worker(serve: Serve, tmp_path: Path) -> None:
    address = f"unix:{tmp_path}/grpc.sock"
    ended = start("--grpc-address", address)
    assert ended.returncode == 2
    assert "workers 2: a Unix socket cannot be shared between processes; set 1" in ended.stderr
    server = serve("--grpc-address", address, "--workers", "0")
    assert server.wait_for_log("serving")["workers"] == 1


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, None),
        ({"cpu.max": "max 100000\n"}, None),
        ({"cpu.max": "50000 100000\n"}, 1),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, None),
        ({"cpu/cpu.cfs_quota_us": "100000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 1),
    ],
)
def test_the_cpu_limit_of_a_container_bounds_the_workers(
    tmp_path: Path, files: dict[str, str], expected: int | None
) -> None:
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    allowed = len(cores.allowed_cores())
    assert cores.usable_cores(tmp_path) == (expected or allowed)
    own = cores.own_cores(allowed, tmp_path)
    assert (own is None) is (cores.usable_cores(tmp_path) < allowed)
