"""A server with several workers starts: how many there are, and errors that end it."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest
from bytepair_server import cores
from conftest import Serve
from support.serving import START_SECONDS, clean_environment, command
from support.workers import TWO, on_linux, wait_until

pytestmark = on_linux


def test_a_server_has_a_worker_for_each_core_by_default(serve: Serve) -> None:
    server = serve("--workers", "0")
    expected = cores.usable_cores()
    assert server.wait_for_log("serving")["workers"] == expected
    assert server.metric("bytepair_workers") == expected


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


@pytest.mark.slow
def test_the_supervisor_exits_if_no_worker_can_be_forked(tmp_path: Path) -> None:
    """It tries again a few times, because the system may have processes again."""
    failing = "import os\ndef fork(): raise BlockingIOError(11, 'try again')\nos.fork = fork"
    (tmp_path / "sitecustomize.py").write_text(failing)
    ended = start(PYTHONPATH=str(tmp_path))
    assert ended.returncode == 3
    assert 6 <= ended.stderr.count("a worker cannot be started") <= 12
    assert "no worker could start: the server ends" in ended.stderr


#: The second worker cannot be forked while the first one serves, which is then killed.
ONE_WORKER = """
import os, signal, time
fork, first = os.fork, []
def fork_the_first():
    if not first:
        first.append(time.monotonic())
        if not (pid := fork()):
            signal.alarm(4)
        return pid
    if time.monotonic() < first[0] + 5:
        raise BlockingIOError(11, "try again")
    return fork()
os.fork = fork_the_first
"""


@pytest.mark.slow
def test_the_supervisor_goes_on_if_a_worker_has_served(tmp_path: Path, serve: Serve) -> None:
    (tmp_path / "sitecustomize.py").write_text(ONE_WORKER)
    flags = (*TWO, "--builtin-encodings", "r50k_base")
    server = serve(*flags, environment={"PYTHONPATH": str(tmp_path)})
    assert server.wait_for_log("a worker ended")["status"] == -signal.SIGALRM
    wait_until(lambda: server.get("/healthz") == (200, "healthy\n"))


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


def test_a_unix_socket_has_one_worker(socket_folder: Path, serve: Serve) -> None:
    address = f"unix:{socket_folder}/grpc.sock"
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
