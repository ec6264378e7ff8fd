"""What gRPC's thread tells the event loop, it tells without waiting for it."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from support.serving import RunningServer

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


#: Prints how many sockets of gRPC block, and whether those of others still do.
MADE = """
import asyncio, grpc, os, socket, sys
from bytepair_server.transport import poller
async def blocking(tamed):
    kept = socket.socketpair()
    before = poller._sockets()
    if tamed:
        with poller.poller_in_its_place():
            server = grpc.aio.server()
    else:
        server = grpc.aio.server()
    its = sorted(poller._sockets() - before)
    print(sum(map(os.get_blocking, its)), all(os.get_blocking(each.fileno()) for each in kept))
asyncio.run(blocking(sys.argv[1] == "tamed"))
"""


def _unix_sockets(pid: int) -> list[int]:
    """The flags of a process's Unix sockets, as open(2) has them."""
    unix = {line.split()[6] for line in Path("/proc/net/unix").read_text().splitlines()[1:]}
    found = []
    for path in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # it was closed
            kind, _, inode = str(path.readlink()).partition(":")
            if kind == "socket" and inode.strip("[]") in unix:
                lines = (Path(f"/proc/{pid}/fdinfo") / path.name).read_text().splitlines()
                found.append(next(int(each.split()[1], 8) for each in lines if "flags" in each))
    return found


def test_no_socket_between_the_threads_of_a_server_blocks(server: RunningServer) -> None:
    flags = _unix_sockets(server.pid)
    assert len(flags) >= 2
    assert all(each & os.O_NONBLOCK for each in flags)


def test_grpc_alone_would_wait_for_the_loop_and_other_sockets_are_left_alone() -> None:
    """If the first half of this ever fails, `poller.py` has one thing less to do."""

    def printed(how: str) -> str:
        command = [sys.executable, "-c", MADE, how]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    assert printed("alone") == "1 True"
    assert printed("tamed") == "0 True"
