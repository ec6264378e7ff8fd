"""The processor cores that this server may use."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Final

_CGROUPS: Final = Path("/sys/fs/cgroup")


def usable_cores(cgroups: Path = _CGROUPS) -> int:
    """How many cores this process can keep busy, at least 1: the cores of its affinity, at most the
    container's CPU quota, beyond which the kernel throttles."""
    quota = _quota(cgroups)
    cores = len(allowed_cores())
    return cores if quota is None else max(1, min(cores, math.ceil(quota)))


def allowed_cores() -> list[int]:
    """The cores that this process may run on; all of them if the platform does not say."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def own_cores(workers: int, cgroups: Path = _CGROUPS) -> list[int] | None:
    """A core for each worker; None unless there are as many workers as cores.

    With fewer workers than cores, as in a container that may use a part of the machine, other
    servers may pick the same cores.
    """
    cores = allowed_cores()
    return cores if workers == len(cores) == usable_cores(cgroups) else None


def _quota(cgroups: Path) -> float | None:
    """The cores' worth of time that the control group has; None for no limit, or none known.

    https://docs.kernel.org/admin-guide/cgroup-v2.html: cpu.max; version 1: cpu.cfs_quota_us.
    """
    try:
        quota, period = (cgroups / "cpu.max").read_text(encoding="ascii").split()
    except (OSError, ValueError):
        try:
            quota = (cgroups / "cpu" / "cpu.cfs_quota_us").read_text(encoding="ascii")
            period = (cgroups / "cpu" / "cpu.cfs_period_us").read_text(encoding="ascii")
        except OSError:
            return None
    try:
        share = int(quota) / int(period)
    except (ValueError, ZeroDivisionError):
        return None  # "max"
    return share if share > 0 else None  # -1
