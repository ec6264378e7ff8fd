"""Who goes first where several threads want one core: the event loop, then the threads of gRPC,
then those for large texts.

The kernel lets a thread that wakes take the core from one of its own priority. gRPC's thread
wakes several times for each call, and would take it from the loop that works on another one.
docs/server-shape.md has the figures.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

#: By so much of `nice` each gives way to the loop, which has 0: on a core that has time, nothing
#: takes longer for it.
TRANSPORT: Final = 10
WORK: Final = 15


def give_way(thread_id: int, nice: int) -> None:
    """Let a thread that has the process's own priority give way to others.

    Args:
        thread_id: As the kernel counts them (`threading.get_native_id`).
        nice: TRANSPORT or WORK.
    """
    if sys.platform == "linux":  # elsewhere it is the whole process that would give way
        with suppress(OSError):
            before = os.getpriority(os.PRIO_PROCESS, thread_id)
            os.setpriority(os.PRIO_PROCESS, thread_id, before + nice)


@contextmanager
def transport_gives_way() -> Iterator[None]:
    """Let the threads give way that Python starts while the block runs."""
    before = set(threading.enumerate())
    yield
    for thread in set(threading.enumerate()) - before:
        if thread.native_id is not None:
            give_way(thread.native_id, TRANSPORT)
