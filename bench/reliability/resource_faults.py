"""Faults of resources that run out: file descriptors and disk."""

from __future__ import annotations

import resource
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep

from bytepair_client import TokenizerClient

from bench.reliability.rows import ONE, SECONDS, Row, served
from bench.reliability.watch import ENCODING, bystanders, descriptors_of, free_port


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
