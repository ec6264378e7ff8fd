"""A progress line on a terminal."""

from __future__ import annotations

import sys
from time import monotonic
from typing import Final

#: How often the line changes; what takes less has none.
EVERY_S: Final = 0.2

_ERASE: Final = "\r\x1b[K"
_MB: Final = 1_000_000


class TerminalLine:
    """A line on standard error that can be rewritten."""

    def __init__(self) -> None:
        self._is_shown = False

    def write(self, line: str) -> None:
        """Show a line in place of the last one."""
        self._is_shown = True
        sys.stderr.write(_ERASE + line)
        sys.stderr.flush()

    def erase(self) -> None:
        """Erase the line; nothing happens if there is none."""
        if self._is_shown:
            self._is_shown = False
            sys.stderr.write(_ERASE)
            sys.stderr.flush()


class ProgressLine:
    """How much is done, on standard error if that is a terminal; it is erased at the end."""

    def __init__(self, doing: str, size: int | None, *, unit: str = "MB") -> None:
        """Show nothing yet.

        Args:
            doing: What is done, as "reading".
            size: How much there is to do, in bytes or in tokens; None if that is not known.
            unit: "MB" for bytes, or what is counted one by one.
        """
        self._doing: Final = doing
        self._size: Final = size
        self._unit: Final = unit
        self._is_wanted: Final = sys.stderr.isatty()
        self._started = self._shown = monotonic()
        self._line: Final = TerminalLine()

    def show(self, done: int) -> None:
        """Tell how much is done, if it is time to."""
        now = monotonic()
        if not self._is_wanted or now - self._shown < EVERY_S:
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
