"""Who goes first where several threads want one core: the event loop, then gRPC's thread, then
those for large texts, and last the pool of gRPC's C core.

The kernel lets a thread that wakes take the core from one of its own priority. gRPC's thread
wakes several times for each call, and would take it from the loop that works on another one. The
pool reads on where more calls come at once than gRPC's thread reads in one go. It has more threads
the more there is to do, so that a flood would keep the core from everybody else.
docs/server-shape.md has the figures.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Final

#: By so much of `nice` each gives way to the loop, which has 0: on a core that has time, nothing
#: takes longer for it.
TRANSPORT: Final = 10
WORK: Final = 15
POOL: Final = 19


def give_way(thread_id: int, nice: int) -> None:
    """Let a thread that has the process's own priority give way to others.

    Args:
        thread_id: As the kernel counts them (`threading.get_native_id`).
        nice: TRANSPORT, WORK or POOL.
    """
    if sys.platform == "linux":  # elsewhere it is the whole process that would give way
        with suppress(OSError):
            before = os.getpriority(os.PRIO_PROCESS, thread_id)
            os.setpriority(os.PRIO_PROCESS, thread_id, before + nice)


def let_others_on() -> None:
    """Let the threads that gave way have the core, if they wait for it, for a moment.

    For the loop that has much to do, and would keep the core from gRPC's thread, which brings
    and takes away all that it works on. How long the moment is depends on the kernel.
    """
    if hasattr(os, "sched_yield"):
        os.sched_yield()
