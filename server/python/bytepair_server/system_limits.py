"""Limits of the operating system on this process: raised where possible, named when reached."""

from __future__ import annotations

import errno
import resource
from contextlib import suppress
from typing import Final

#: The numbers of errors if the process or the system has no more file descriptors.
OUT_OF_DESCRIPTORS: Final = (errno.EMFILE, errno.ENFILE)

#: The words of errors if a limit of the system is too low, and the limit.
_PROCESSES: Final = "processes and threads (ulimit -u, TasksMax)"
_LIMITS: Final = {
    "Too many open files": "file descriptors (ulimit -n, LimitNOFILE)",
    "can't start new thread": _PROCESSES,
    "Resource temporarily unavailable": _PROCESSES,
}


def raise_descriptor_limit(needed: int) -> None:
    """Raise this process' limit on file descriptors, if it is lower and the system permits. Many
    systems begin with 1,024. `startup.warn` warns if the limit stays too low."""
    limit, highest = resource.getrlimit(resource.RLIMIT_NOFILE)
    if highest != resource.RLIM_INFINITY:
        needed = min(needed, highest)
    if limit != resource.RLIM_INFINITY and limit < needed:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (needed, highest))


def limit_reached(error: BaseException | None) -> str:
    """Which limit of the system to raise, if it caused an error of the start; else ""."""
    while error is not None:
        for words, limit in _LIMITS.items():
            if words in str(error):
                return f"{words}: raise the limit on {limit}"
        error = error.__context__  # the event loop fails again when it closes
    return ""
