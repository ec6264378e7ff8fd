"""What a machine may run out of: room for the log, file descriptors. And its clock."""

from __future__ import annotations

import ast
import resource
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep

import bytepair_server
import pytest
from bytepair.v1 import tokenizer_pb2
from bytepair_client import TokenizerClient
from conftest import Serve
from support.serving import START_SECONDS, clean_environment, command

SOURCES = Path(bytepair_server.__file__).parent
COUNT = tokenizer_pb2.CountRequest(encoding="cl100k_base", text="hello world")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a full disk is made of /dev/full")
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_log_that_cannot_be_written_costs_no_call_and_no_server(workers: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    flags = ("--grpc-address", address, "--http-address", "none", "--log-level", "debug")
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        server = subprocess.Popen(
            command(*flags, "--builtin-encodings", "cl100k_base", "--workers", workers),
            env=clean_environment(),
            stdout=full,
            stderr=full,
        )
    try:
        until = monotonic() + START_SECONDS
        while monotonic() < until and server.poll() is None:
            with suppress(OSError), socket.create_connection(("127.0.0.1", int(address[10:])), 1):
                break
            sleep(0.05)
        with TokenizerClient(address, encoding="cl100k_base", timeout=START_SECONDS) as client:
            assert [client.count("hello world") for _ in range(50)] == [2] * 50
        server.terminate()
        server.wait(START_SECONDS)
    finally:
        if server.poll() is None:
            server.kill()
            server.wait()


@pytest.mark.skipif(sys.platform != "linux", reason="limits of another process are Linux's")
def test_without_descriptors_who_is_connected_is_served_and_others_are_later(serve: Serve) -> None:
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


def test_nothing_that_the_server_decides_asks_a_clock_that_can_jump() -> None:
    """Quotas, idle streams, grace time and latencies are all measured by clocks that cannot.
    The log's timestamps, by structlog, are the time of day and decide nothing; whether a
    certificate is valid is what the time of day says."""
    jumping = {"time", "datetime", "time_ns", "localtime", "gmtime", "now", "utcnow"}
    found = []
    for file in set(SOURCES.rglob("*.py")) - {SOURCES / "tls.py"}:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module in ("time", "datetime"):
                found += [(file.name, a.name) for a in node.names if a.name in jumping]
            elif isinstance(node, ast.Attribute) and ast.unparse(node.value) in jumping:
                found += [(file.name, node.attr)] if node.attr in jumping else []
    assert found == []
