"""The thread of grpcio's asyncio API, which waits for what the C core has to tell: two things that
it cannot be told by an option.

It gives way to the event loop, and so do the threads of the C core (`priority.py`). And it never
waits for the loop: it tells the loop of each event by a byte in a socket, which it writes
blocking, and of which the loop takes one in each of its rounds. A few hundred bytes fill the
socket. From then on, for as long as the loop has something to do, the thread would tell it of one
event in each round and come to nothing else: it would read no connection, those of health probes
among them, for most of a second. What it cannot write need not be written, as the bytes that are
there wake the loop, and it looks for all events.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from bytepair_server.transport.priority import POOL, TRANSPORT, give_way

_THREADS: Final = Path("/proc/self/task")
_DESCRIPTORS: Final = Path("/proc/self/fd")


@contextmanager
def poller_in_its_place() -> Iterator[None]:
    """See to the threads, those that they start, and the socket, that gRPC makes while the block
    runs."""
    threads, sockets = _threads(), _sockets()
    yield
    of_python = {thread.native_id for thread in threading.enumerate()}
    for thread_id in _threads() - threads:
        give_way(thread_id, TRANSPORT if thread_id in of_python else POOL)
    for descriptor in _sockets() - sockets:
        os.set_blocking(descriptor, False)


def _threads() -> set[int]:
    """The threads of this process, as the kernel counts them; none where it cannot be asked."""
    try:
        return {int(task.name) for task in _THREADS.iterdir()}
    except OSError:
        return set()


def _sockets() -> set[int]:
    """The descriptors of this process's Unix sockets; none where the system does not show them."""
    found = set[int]()
    if sys.platform == "linux":
        try:
            paths = list(_DESCRIPTORS.iterdir())
        except OSError:
            return found
        for path in paths:
            with suppress(OSError):  # it is no socket, or the one by which these were listed
                link = socket.socket(fileno=int(path.name))
                if link.family is socket.AF_UNIX:
                    found.add(int(path.name))
                link.detach()
    return found
