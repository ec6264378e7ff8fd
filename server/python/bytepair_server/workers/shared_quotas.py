"""Quota use of all callers, shared by all processes of a server.

The supervisor makes the store before it forks, so its memory is shared. A record lock guards
each account; the kernel releases it when a process is killed. An unused account is all zeros,
as the kernel gives memory.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final

if sys.platform != "win32":
    import fcntl

#: Capacity of the store. Memory that is never touched costs nothing.
MAX_ACCOUNTS: Final = 1 << 16

_NAME_BYTES: Final = 16
_CELL_BYTES: Final = 8
#: An account begins with two token buckets: the missing tokens, and the time of that value.
_BUCKET_CELLS: Final = 4
#: Then, for each process: its active requests and streams.
_ACTIVE_CELLS: Final = 2


class Account:
    """One caller's quota use.

    Attributes:
        cells: Cells 0 and 1 are the bucket of requests, 2 and 3 that of bytes.
    """

    __slots__ = ("_lock", "_own", "_slot", "cells")

    def __init__(self, cells: memoryview[float], slot: int, number: int, lock: int | None) -> None:
        """See `QuotaStore.account`."""
        self.cells: Final = cells
        self._slot: Final = slot
        self._own: Final = _BUCKET_CELLS + _ACTIVE_CELLS * number
        self._lock: Final = lock

    def locked(self) -> AbstractContextManager[None]:
        """Keep other processes from reading or changing the account while the block runs."""
        return _locked(self._lock, self._slot)

    def active(self, kind: int) -> int:
        """Active requests (`kind` 0) or streams (1) of all processes."""
        return int(sum(self.cells[_BUCKET_CELLS + kind :: _ACTIVE_CELLS]))

    def enter(self, kind: int) -> None:
        """Count one more in this process."""
        self.cells[self._own + kind] += 1

    def leave(self, kind: int) -> None:
        """Count one less."""
        self.cells[self._own + kind] -= 1


class QuotaStore:
    """The accounts of all callers with a quota."""

    def __init__(self, processes: int = 1) -> None:
        """Open it, empty.

        Args:
            processes: Number of processes that use it. More than one must be forked from this one.
        """
        self._width: Final = _BUCKET_CELLS + _ACTIVE_CELLS * processes
        self._names: Final = mmap.mmap(-1, _CELL_BYTES + MAX_ACCOUNTS * _NAME_BYTES)
        self._count: Final = memoryview(self._names)[:_CELL_BYTES].cast("q")
        memory = mmap.mmap(-1, MAX_ACCOUNTS * self._width * _CELL_BYTES)
        self._cells: Final = memoryview(memory).cast("d")
        self._number = 0
        #: The descriptor that processes lock; None where there is one process only.
        self.lock: Final = None if processes == 1 else os.memfd_create("quotas")

    def set_process(self, number: int) -> None:
        """Record the number of this process, from 0."""
        self._number = number

    def forget(self, number: int) -> None:
        """Drop the active calls of a process that has ended."""
        own = _BUCKET_CELLS + _ACTIVE_CELLS * number
        for slot in range(self._count[0]):
            for kind in range(_ACTIVE_CELLS):
                self._cells[slot * self._width + own + kind] = 0.0

    def account(self, caller: str) -> Account:
        """The account of a caller; a new one if it has none yet.

        Raises:
            MemoryError: There are MAX_ACCOUNTS of others.
        """
        name = hashlib.sha256(caller.encode()).digest()[:_NAME_BYTES]
        with _locked(self.lock, MAX_ACCOUNTS):  # the lock after those of the accounts
            slot = self._find(name)
            if slot is None:
                slot = self._count[0]
                if slot == MAX_ACCOUNTS:
                    raise MemoryError(f"more than {slot} callers with quotas")
                start = _CELL_BYTES + slot * _NAME_BYTES
                self._names[start : start + _NAME_BYTES] = name
                self._count[0] = slot + 1
        start = slot * self._width
        return Account(self._cells[start : start + self._width], slot, self._number, self.lock)

    def _find(self, name: bytes) -> int | None:
        end = _CELL_BYTES + self._count[0] * _NAME_BYTES
        at = self._names.find(name, _CELL_BYTES, end)
        while at >= 0 and (at - _CELL_BYTES) % _NAME_BYTES:
            at = self._names.find(name, at + 1, end)
        return None if at < 0 else (at - _CELL_BYTES) // _NAME_BYTES


@contextmanager
def _locked(descriptor: int | None, byte: int) -> Iterator[None]:
    """Hold a record lock on a byte of a file; without a descriptor, no lock."""
    if descriptor is None or sys.platform == "win32":
        yield
        return
    fcntl.lockf(descriptor, fcntl.LOCK_EX, 1, byte)
    try:
        yield
    finally:
        fcntl.lockf(descriptor, fcntl.LOCK_UN, 1, byte)
