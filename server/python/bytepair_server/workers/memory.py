"""Memory that a flood has left free, given back to the system once the server is quiet.

glibc gives a heap back from its end alone: one small thing that outlives a flood keeps everything
below it, by hundreds of MiB. `malloc_trim` gives back each page that is free, wherever it is.
docs/reliability.md has the figures. Other C libraries are left to themselves.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import sys
from contextlib import suppress
from pathlib import Path
from time import monotonic, process_time
from typing import Final

#: Between two looks.
LOOK_SECONDS: Final = 3.0
#: A server is quiet that has used no more of a core since the last look. It is asked of the
#: processor and not of the calls, for most of what floods send never becomes one.
QUIET: Final = 0.25
#: Less than this is not worth the faults by which the pages would come back.
WORTH_BYTES: Final = 32 << 20


class _Statistics(ctypes.Structure):
    """`struct mallinfo2` of <malloc.h>."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    )
    hblkhd: int
    uordblks: int


class Heap:
    """glibc's heap of this process."""

    def __init__(self, library: ctypes.CDLL) -> None:
        """Raises AttributeError if the library is not glibc 2.33 or newer."""
        self._trim: Final = library.malloc_trim
        self._statistics: Final = library.mallinfo2
        self._statistics.restype = _Statistics

    def trim(self) -> None:
        """Give back each page that is free.

        Takes some 50 µs for each MiB, in which no other thread can allocate.
        """
        self._trim(0)

    def spare_bytes(self) -> int:
        """What this process has in use and did not ask glibc for.

        Free pages of the heap, and what is mapped without glibc, as Python does: what it is alone
        says little, by how much it grows says what can be given back.

        Raises:
            OSError: Linux cannot be asked.
        """
        had: _Statistics = self._statistics()
        return own_bytes() - had.uordblks - had.hblkhd


async def give_back_when_quiet() -> None:
    """Look every few seconds, until cancelled; return at once where nothing can be given back."""
    if sys.platform != "linux":
        return
    try:
        heap = Heap(ctypes.CDLL(None))
        kept = heap.spare_bytes()  # as much as cannot be given back
    except (AttributeError, OSError):
        return
    while True:
        began, used = monotonic(), process_time()
        await asyncio.sleep(LOOK_SECONDS)
        if process_time() - used > QUIET * (monotonic() - began):
            continue
        with suppress(OSError):  # no descriptor is left to ask by: then the next time
            spare = heap.spare_bytes()
            if spare - kept >= WORTH_BYTES:
                await asyncio.to_thread(heap.trim)
                spare = kept = heap.spare_bytes()
            kept = min(kept, spare)


def own_bytes() -> int:
    """The memory that this process has in use without mapped files, as Linux counts it.

    Raises:
        OSError: It cannot be asked.
    """
    _, resident, shared, *_ = Path("/proc/self/statm").read_text(encoding="ascii").split()
    return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")
