"""How much of a large input has been read, as a line on the terminal."""

from __future__ import annotations

import sys
from time import monotonic

INTERVAL_S = 0.5


class Progress:
    """A line on standard error, which is shown every INTERVAL_S and erased at the end."""

    def __init__(self, name: str, size: int, *, writes: bool) -> None:
        """Show nothing yet.

        Args:
            name: What is read.
            size: Its bytes; 0 if they are not known.
            writes: Whether results are written meanwhile. On a terminal they would mix with the
                line, so there is none.
        """
        self._name = name
        self._of = f" of {size / 1e6:,.0f}" if size else ""
        self._read = 0
        self._shown_at = monotonic()
        self._is_shown = False
        self._is_on = sys.stderr.isatty() and not (writes and sys.stdout.isatty())

    def add(self, count: int) -> None:
        """Add bytes that have been read."""
        self._read += count
        now = monotonic()
        if self._is_on and now - self._shown_at >= INTERVAL_S:
            self._shown_at = now
            self._is_shown = True
            self._show(f"{self._name}: {self._read / 1e6:,.0f}{self._of} MB")

    def end(self) -> None:
        """Erase the line, and show no other."""
        self._is_on = False
        if self._is_shown:
            self._show("")

    def _show(self, line: str) -> None:
        sys.stderr.write(f"\r\x1b[K{line}")
        sys.stderr.flush()
