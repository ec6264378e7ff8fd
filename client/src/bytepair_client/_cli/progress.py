"""How far a large input has come, on a terminal."""

from __future__ import annotations

import os
import stat
import sys
from io import FileIO
from threading import Lock
from time import monotonic
from types import TracebackType
from typing import Self

#: What takes less is not worth a line.
FIRST_AFTER_S = 0.5
EVERY_S = 0.1

_MOST_NAME = 40
_ERASE = "\r\x1b[K"
_MB = 1_000_000


class Progress:
    """A line on standard error that tells how many bytes are done, and how fast.

    It is shown on a terminal only, once the input has taken longer than a moment, and erased
    at the end. There is none where results go to a terminal as they come.
    """

    def __init__(self, name: str, file: FileIO, *, writes: bool) -> None:
        """Show nothing yet.

        Args:
            name: What is read.
            file: Where it is read from; its size is the goal if it has one.
            writes: Whether results are written meanwhile.
        """
        self._name = name if len(name) <= _MOST_NAME else f"…{name[1 - _MOST_NAME :]}"
        self._size = _size(file)
        self._done = 0
        self._started = self._shown = monotonic()
        self._lock = Lock()  # against the thread that reads the input
        self._is_wanted = sys.stderr.isatty() and not (writes and sys.stdout.isatty())
        self._is_shown = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.end()

    def add(self, count: int) -> None:
        """Note that this many more bytes are done."""
        if not self._is_wanted:
            return
        now = monotonic()
        with self._lock:
            self._done += count
            wait = EVERY_S if self._is_shown else FIRST_AFTER_S
            if self._is_wanted and now - self._shown >= wait:
                self._shown = now
                self._is_shown = True
                self._show(now - self._started)

    def end(self) -> None:
        """Erase the line; there is no other one."""
        with self._lock:
            self._is_wanted = False
            if self._is_shown:
                self._is_shown = False
                sys.stderr.write(_ERASE)
                sys.stderr.flush()

    def _show(self, seconds: float) -> None:
        goal = f" of {self._size / _MB:.1f}" if self._size else ""
        rate = self._done / _MB / seconds
        sys.stderr.write(f"{_ERASE}{self._name}: {self._done / _MB:.1f}{goal} MB, {rate:.1f} MB/s")
        sys.stderr.flush()


def _size(file: FileIO) -> int:
    """The bytes of a regular file; 0 for what has no size, such as a pipe."""
    status = os.fstat(file.fileno())
    return status.st_size if stat.S_ISREG(status.st_mode) else 0
