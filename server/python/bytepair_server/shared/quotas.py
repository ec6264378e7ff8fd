"""Quota use of all callers, shared by all processes of a server.

The supervisor makes the store before it forks, so its memory is shared. A record lock guards
each account; the kernel releases it when a process is killed. A process that is stopped while it
holds the lock delays each other once; until it ends or goes on, the account is then used without
the lock, and some calls may be miscounted. A new account is all zeros.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import AbstractContextManager, nullcontext
from time import sleep
from typing import Final
from zlib import crc32

from bytepair_server.shared.memory import CELL_BYTES, Block, Cells

#: Tries to take the lock of an account, which is held for some microseconds.
QUICK_TRIES: Final = 50
#: With further tries, while its process may wait for a core: 0.2 s together.
MAX_TRIES: Final = 250
TRY_SECONDS: Final = 0.001
#: Callers with quotas that the store has room for, if their names are shorter than 100 bytes.
MAX_ACCOUNTS: Final = 1 << 16

_TABLE: Final = "quotas"
_LINE_BYTES: Final = 128
#: An account begins with two token buckets: the missing tokens, and the time of that value.
_BUCKET_CELLS: Final = 4
#: Then, for each process: its active requests and streams.
_ACTIVE_CELLS: Final = 2


class Account:
    """One caller's quota use.

    Attributes:
        requests: The cells of the bucket of requests.
        input_bytes: The cells of the bucket of bytes.
        lock: Keeps other processes from reading or changing the account while a block runs.
    """

    __slots__ = ("_active", "_own", "input_bytes", "lock", "requests")

    def __init__(self, cells: Cells, number: int, lock: AbstractContextManager[None]) -> None:
        """See `QuotaStore.account`."""
        self.requests: Final = cells[:2]
        self.input_bytes: Final = cells[2:_BUCKET_CELLS]
        self._active: Final = cells[_BUCKET_CELLS:]
        self._own: Final = _ACTIVE_CELLS * number
        self.lock: Final = lock

    def active(self, kind: int) -> int:
        """Active requests (`kind` 0) or streams (1) of all processes."""
        return int(sum(self._active[kind::_ACTIVE_CELLS]))

    def enter(self, kind: int) -> None:
        """Count one more in this process."""
        self._active[self._own + kind] += 1

    def leave(self, kind: int) -> None:
        """Count one less."""
        self._active[self._own + kind] -= 1


class QuotaStore:
    """The accounts of all callers with a quota."""

    def __init__(self, processes: int = 1) -> None:
        """Open it, empty.

        Args:
            processes: Number of processes that use it. More than one must be forked from this one.
        """
        self._width: Final = _BUCKET_CELLS + _ACTIVE_CELLS * processes
        self._block: Final = Block(MAX_ACCOUNTS * max(_LINE_BYTES, CELL_BYTES * self._width))
        self._number = 0
        #: The descriptor that processes lock; None where there is one process only.
        self.lock: Final = None if processes == 1 else os.memfd_create("quotas")

    def set_process(self, number: int) -> None:
        """Record the number of this process, from 0."""
        self._number = number

    def forget(self, number: int) -> None:
        """Drop the active calls of a process that has ended."""
        start = _BUCKET_CELLS + _ACTIVE_CELLS * number
        for cells in self._block.rows(_TABLE).values():
            for at in range(start, start + _ACTIVE_CELLS):
                cells[at] = 0.0

    def account(self, caller: str) -> Account:
        """The account of a caller; a new one if it has none yet.

        Raises:
            MemoryError: There is no room for another account.
        """
        if self.lock is None:
            cells = self._block.reserve(_TABLE, (caller,), self._width)
            return Account(cells, self._number, nullcontext())
        # Without this lock, a row could be overwritten. A process takes it once for each caller.
        fcntl.lockf(self.lock, fcntl.LOCK_EX, 1, 0)
        try:
            cells = self._block.reserve(_TABLE, (caller,), self._width)
        finally:
            fcntl.lockf(self.lock, fcntl.LOCK_UN, 1, 0)
        # Callers whose hashes are equal share a lock.
        return Account(cells, self._number, _Lock(self.lock, 1 + crc32(caller.encode())))


class _Lock:
    """A record lock on a byte of a file. Entering it waits for the lock, but not for ever: after
    MAX_TRIES it goes on without, and from then on after one try until the lock is free."""

    __slots__ = ("_byte", "_descriptor", "_tries")

    def __init__(self, descriptor: int, byte: int) -> None:
        self._descriptor: Final = descriptor
        self._byte: Final = byte
        self._tries = MAX_TRIES

    def __enter__(self) -> None:
        for number in range(self._tries):
            try:
                fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, self._byte)
            except BlockingIOError:
                if number >= QUICK_TRIES:
                    sleep(TRY_SECONDS)
            else:
                self._tries = MAX_TRIES
                return
        self._tries = 1

    def __exit__(self, *_: object) -> None:
        fcntl.lockf(self._descriptor, fcntl.LOCK_UN, 1, self._byte)
