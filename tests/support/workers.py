"""Servers with several workers: connections to each, and their processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep

import grpc
import pytest
from bytepair.v1 import tokenizer_pb2, tokenizer_pb2_grpc

from support.serving import START_SECONDS, RunningServer

on_linux = pytest.mark.skipif(
    not Path("/proc/self/task").exists(), reason="workers share a port on Linux only"
)

TWO = ("--workers", "2")
COUNT = tokenizer_pb2.CountRequest(encoding="cl100k_base", text="a")
#: Enough connections to reach both workers almost certainly: each goes to either at random.
CONNECTIONS = 24


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


def exists(pid: int) -> bool:
    """Return whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
