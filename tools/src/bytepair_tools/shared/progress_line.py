"""A progress line on a terminal."""

from __future__ import annotations

import sys
from time import monotonic
from typing import Final

#: Interval of updates. Shorter work shows no line.
EVERY_S: Final = 0.2

_ERASE: Final = "\r\x1b[K"
_MB: Final = 1_000_000


class TerminalLine:
    """A line on standard error that can be rewritten."""

    def __init__(self) -> None:
        self._is_shown = False

    def write(self, line: str) -> None:
        """Replace the line."""
        self._is_shown = True
        sys.stderr.write(_ERASE + line)
        sys.stderr.flush()

    def erase(self) -> None:
        """Erase the line, if there is one."""
        if self._is_shown:
            self._is_shown = False
            sys.stderr.write(_ERASE)
            sys.stderr.flush()


class ProgressLine:
    """Shows progress on standard error if it is a terminal. The line is erased at the end."""

    def __init__(self, doing: str, size: int | None, *, unit: str = "MB") -> None:
        """Start without a line.

        Args:
            doing: The activity, such as "reading".
            size: The total amount of work, in bytes or in items; None if it is not known.
            unit: "MB" for bytes, or the name of the items.
        """
        self._doing: Final = doing
        self._size: Final = size
        self._unit: Final = unit
        self._is_enabled: Final = sys.stderr.isatty()
        self._started = self._shown = monotonic()
        self._line: Final = TerminalLine()

    def show(self, done: int) -> None:
        """Update the line with the amount done, if the interval has passed."""
        now = monotonic()
        if not self._is_enabled or now - self._shown < EVERY_S:
            return
        self._shown = now
        goal = f" of {self._amount(self._size)}" if self._size else ""
        left = ""
        if self._size and done:
            seconds = (now - self._started) * max(0, self._size - done) / done
            left = f", about {seconds:.0f} s left"
        self._line.write(f"{self._doing}: {self._amount(done)}{goal} {self._unit}{left}")

    def end(self) -> None:
        """Erase the line."""
        self._line.erase()

    def _amount(self, number: int) -> str:
        return f"{number / _MB:.1f}" if self._unit == "MB" else f"{number:,}"
