"""The machine runs out of disk or file descriptors, or its clock jumps."""

from __future__ import annotations

import ast
import os
import re
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from random import randrange
from time import monotonic, sleep
from urllib.request import urlopen

import bytepair_server
import pytest
from bytepair.v1 import tokenizer_pb2
from bytepair_client import TokenizerClient
from conftest import Serve
from support.serving import START_SECONDS, clean_environment, command, run_to_end
from support.streaming import DecodeRequest, Talk, decode_config

SOURCES = Path(bytepair_server.__file__).parent
COUNT = tokenizer_pb2.CountRequest(encoding="cl100k_base", text="hello world")


def free_address() -> str:
    """An address that nothing else takes before its server listens there. Linux has many hosts of
    loopback."""
    host = f"127.2.{randrange(256)}.{randrange(1, 255)}" if sys.platform == "linux" else "127.0.0.1"
    with socket.create_server((host, 0)) as probe:
        return f"{host}:{probe.getsockname()[1]}"


@contextmanager
def full_disk() -> Iterator[int]:
    """A file whose writes fail with ENOSPC."""
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        yield full.fileno()


@contextmanager
def unread_pipe() -> Iterator[int]:
    """A pipe that nobody reads, so that writers block."""
    reading, writing = os.pipe()
    try:
        os.set_blocking(writing, False)
        with suppress(BlockingIOError):
            while True:
                os.write(writing, bytes(4096))
        os.set_blocking(writing, True)
        yield writing
    finally:
        os.close(reading)
        os.close(writing)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a full disk is made of /dev/full")
@pytest.mark.parametrize(
    ("workers", "log_format"), [("1", "console"), ("2", "console"), ("2", "json")]
)
@pytest.mark.parametrize("full_log", [full_disk, unread_pipe])
def test_a_log_that_cannot_be_written_does_not_fail_a_call_or_the_server(
    workers: str, log_format: str, full_log: Callable[[], AbstractContextManager[int]]
) -> None:
    """In the format "console" there is a message for a person too."""
    address, http = free_address(), free_address()
    flags = ["--grpc-address", address, "--http-address", http, "--log-level", "debug"]
    flags += ["--log-format", log_format]
    with full_log() as full:
        server = subprocess.Popen(
            command(*flags, "--builtin-encodings", "cl100k_base", "--workers", workers),
            env=clean_environment() | {"PYTHONUNBUFFERED": ""},
            stdout=full,
            stderr=full,
        )
        _serves_and_ends(server, address, http)


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_server_runs_without_standard_streams(workers: str) -> None:
    address = free_address()
    flags = ("--grpc-address", address, "--http-address", "none", "--workers", workers)
    closed = ("sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh")
    server = subprocess.Popen(
        [*closed, *command(*flags, "--builtin-encodings", "cl100k_base")], env=clean_environment()
    )
    _serves_and_ends(server, address)


def _serves_and_ends(server: subprocess.Popen[bytes], address: str, http: str = "") -> None:
    """With `http`, the address of its metrics, check that most lines were lost and counted."""
    try:
        until = monotonic() + START_SECONDS
        host, port = address.split(":")
        while monotonic() < until and server.poll() is None:
            with suppress(OSError), socket.create_connection((host, int(port)), 1):
                break
            sleep(0.05)
        with TokenizerClient(address, encoding="cl100k_base", timeout=START_SECONDS) as client:
            assert [client.count("hello world") for _ in range(50)] == [2] * 50
            children = Path(f"/proc/{server.pid}/task/{server.pid}/children")
            before = children.read_text().split()
            if before:
                os.kill(int(before[0]), signal.SIGKILL)
                while len(set(children.read_text().split()) - {before[0]}) < len(before):
                    assert monotonic() < until + START_SECONDS
                    sleep(0.01)
        if http:
            page = urlopen(f"http://{http}/metrics", timeout=START_SECONDS).read().decode()
            [lost] = re.findall(r"^bytepair_lost_log_lines_total (.*)$", page, re.MULTILINE)
            assert float(lost) > 50
        server.terminate()
        assert server.wait(START_SECONDS) == 0
    finally:
        if server.poll() is None:
            server.kill()
            server.wait()


#: Python runs it before anything else. It lets the first two workers start.
NO_THIRD_FORK = """
import os
fork, forks = os.fork, []
def fork_but_once():
    forks.append(None)
    if len(forks) == 3:
        raise BlockingIOError(11, "Resource temporarily unavailable")
    return fork()
os.fork = fork_but_once
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of another process are Linux's")
@pytest.mark.parametrize("what", ["processes", "descriptors"])
def test_a_worker_that_cannot_be_started_is_retried_later(
    serve: Serve, tmp_path: Path, what: str
) -> None:
    (tmp_path / "sitecustomize.py").write_text(NO_THIRD_FORK if what == "processes" else "")
    server = serve("--workers", "2", environment={"PYTHONPATH": str(tmp_path)})
    before = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
    if what == "descriptors":
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (3, before[1]))
    children = Path(f"/proc/{server.pid}/task/{server.pid}/children")
    os.kill(int(children.read_text().split()[0]), signal.SIGKILL)
    line = server.wait_for_log("a worker cannot be started")
    assert line["retry_in_seconds"] > 0
    assert line["error"] in line["remedy"]
    assert ": raise the limit on " in line["remedy"]
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, before)
    server.wait_for_metric("bytepair_workers", 2)
    # The supervisor still notices signals and workers that end.
    os.kill(int(children.read_text().split()[0]), signal.SIGKILL)
    server.wait_for_log("a worker ended", times=2)
    server.wait_for_metric("bytepair_workers", 2)
    server.terminate()
    assert server.wait() == 0


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits of another process are Linux's")
def test_a_worker_that_lacks_descriptors_names_their_limit(serve: Serve) -> None:
    server = serve("--workers", "2")
    before = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
    highest = max(int(each.name) for each in Path(f"/proc/{server.pid}/fd").iterdir())
    # The supervisor can make the pair of sockets, and the worker that it forks inherits the limit.
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (highest + 3, before[1]))
    children = Path(f"/proc/{server.pid}/task/{server.pid}/children")
    os.kill(int(children.read_text().split()[0]), signal.SIGKILL)
    line = server.wait_for_log("the worker failed")
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, before)
    limit = "file descriptors (ulimit -n, LimitNOFILE)"
    assert line["remedy"] == f"Too many open files: raise the limit on {limit}"
    server.wait_for_metric("bytepair_workers", 2)


def test_a_start_without_descriptors_is_a_clear_error() -> None:
    limited = ("sh", "-c", 'ulimit -n 8 && exec "$@"', "sh")
    flags = ("--grpc-address", "127.0.0.1:0", "--http-address", "none", "--workers", "1")
    ended = subprocess.run(
        [*limited, *command(*flags, "--builtin-encodings", "r50k_base")],
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=START_SECONDS,
        check=False,
    )
    said = "Too many open files: raise the limit on file descriptors (ulimit -n, LimitNOFILE)"
    assert ended.returncode == 2
    assert ended.stderr.endswith(f"bytepair-server: {said}\n")
    assert "Traceback" not in ended.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="limits of another process are Linux's")
def test_without_descriptors_open_connections_are_served_and_new_ones_later(serve: Serve) -> None:
    server = serve()
    assert server.stub.Count(COUNT).count == 2
    before = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
    limit = len(list(Path(f"/proc/{server.pid}/fd").iterdir())) + 4
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (limit, before[1]))
    host, port = server.target.rsplit(":", 1)
    links = [socket.create_connection((host, int(port)), timeout=5) for _ in range(30)]
    try:
        for _ in range(50):
            assert server.stub.Count(COUNT, timeout=START_SECONDS).count == 2
    finally:
        for link in links:
            link.close()
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, before)
    with TokenizerClient(server.target, encoding="cl100k_base", timeout=START_SECONDS) as client:
        assert client.count("hello world") == 2


@pytest.mark.skipif(sys.platform != "linux", reason="limits of another process are Linux's")
def test_connections_that_wait_for_a_descriptor_are_counted_and_logged(serve: Serve) -> None:
    server = serve("--transport", "native")
    before = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (3, before[1]))
    host, port = server.target.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=START_SECONDS):
        said = "connections wait for a file descriptor: raise the limit (ulimit -n, LimitNOFILE)"
        assert server.wait_for_log(said)["level"] == "warning"
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, before)
        name = "bytepair_refused_connections_total"
        assert server.metric(name, setting="file_descriptors") >= 1


@pytest.mark.skipif(sys.platform != "linux", reason="limits of another process are Linux's")
def test_a_server_without_descriptors_closes_its_port_when_it_drains(serve: Serve) -> None:
    server = serve("--transport", "native", "--stream-grace-seconds", "600")
    talk = Talk(server.stub.DecodeStream)
    talk.say(decode_config())
    _, highest = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (3, highest))
    host, port = server.target.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=START_SECONDS) as waiting:
        server.terminate()
        with suppress(ConnectionResetError):
            assert waiting.recv(1) == b""
    assert talk.say(DecodeRequest(ids=[15339])).text == "hello"  # the server has not ended
    assert talk.close()[1] is None


def test_only_monotonic_clocks_decide_anything() -> None:
    """Quotas, idle streams, grace times and latencies use monotonic clocks. The timestamps of the
    log, by structlog, and of spans are the time of day and decide nothing. The validity of
    certificates depends on the time of day."""
    jumping = {"time", "datetime", "time_ns", "localtime", "gmtime", "now", "utcnow"}
    found = []
    of_day = {SOURCES / "auth" / "tls.py", SOURCES / "observability" / "traces.py"}
    for file in set(SOURCES.rglob("*.py")) - of_day:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module in ("time", "datetime"):
                found += [(file.name, a.name) for a in node.names if a.name in jumping]
            elif isinstance(node, ast.Attribute) and ast.unparse(node.value) in jumping:
                found += [(file.name, node.attr)] if node.attr in jumping else []
    assert found == []


@pytest.mark.parametrize("workers", ["1", "2"])
def test_the_limit_on_descriptors_is_raised_to_what_connections_need(
    serve: Serve, workers: str
) -> None:
    before = limit, highest = resource.getrlimit(resource.RLIMIT_NOFILE)
    low = min(limit, 512)
    flags = ("--workers", workers, "--max-connections")
    resource.setrlimit(resource.RLIMIT_NOFILE, (low, highest))  # the servers inherit it
    try:
        enough, too_few = serve(*flags, str(low)), serve(*flags, str(highest))
        checked = run_to_end(*flags, str(highest), "--check-config")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert low < resource.prlimit(enough.pid, resource.RLIMIT_NOFILE)[0] < 2 * low
    assert resource.prlimit(too_few.pid, resource.RLIMIT_NOFILE)[0] == highest
    said = [
        line["limit"]
        for server in (enough, too_few)
        for line in server.log
        if line["event"].startswith("too few file descriptors for max_connections")
    ]
    assert said == [highest]
    assert checked.stderr.count("too few file descriptors for max_connections") == 1
