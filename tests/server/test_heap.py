"""What a flood took is given back once it is over."""

from __future__ import annotations

import platform
import threading
from pathlib import Path
from time import monotonic, sleep

import pytest
from bytepair_server.workers.memory import LOOK_SECONDS
from conftest import Serve
from support import hostile

#: Enough that what stays behind without `malloc_trim`, nearly all, is not taken for chance.
CONNECTIONS = 12
#: A server that was flooded works off what it has got before it is quiet.
QUIET_SECONDS = 60.0


def memory_of(pid: int) -> int:
    """KiB without mapped files."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return int(next(line for line in lines if line.startswith("RssAnon:")).split()[1])


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be told to")
def test_what_a_flood_took_is_given_back_once_it_is_over(serve: Serve) -> None:
    running = serve("--workers", "1")
    before = memory_of(running.pid)
    over = threading.Event()
    going = hostile.going_for(QUIET_SECONDS)

    def flood() -> None:
        while going() and not over.is_set():  # a server that is late ends an attack
            hostile.never_whole(running.target, lambda: going() and not over.is_set())

    threads = [threading.Thread(target=flood) for _ in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    taken = 0
    while going() and taken < 100_000:
        taken = max(taken, memory_of(running.pid) - before)
        sleep(0.05)
    over.set()
    for thread in threads:
        thread.join()
    assert taken >= 100_000

    until = monotonic() + QUIET_SECONDS
    while monotonic() < until and memory_of(running.pid) - before > taken // 2:
        sleep(LOOK_SECONDS / 10)
    assert memory_of(running.pid) - before <= taken // 2
