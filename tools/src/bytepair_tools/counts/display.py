"""The progress of a training: a line on a terminal, or lines of JSON for programs."""

from __future__ import annotations

import json
import sys
from time import monotonic

from bytepair_engine.training.merging import Progress

from bytepair_tools.shared.progress_line import EVERY_S, TerminalLine

#: Interval of lines of JSON.
EVERY_JSON_S = 1.0

_MB = 1_000_000


class Display:
    """Shows progress on standard error if it is a terminal, or writes JSON to standard output."""

    def __init__(self, *, as_json: bool, size: int | None) -> None:
        """Start without a line.

        Args:
            as_json: Whether to write lines of JSON.
            size: Number of bytes to read; None if it is not known.
        """
        self._as_json = as_json
        self._size = size
        self._is_enabled = as_json or sys.stderr.isatty()
        self._every = EVERY_JSON_S if as_json else EVERY_S
        self._started = monotonic()
        # The first line of JSON is immediate; on a terminal, short work shows no line.
        self._shown = self._started - (EVERY_JSON_S if as_json else 0)
        self._phase = "count"
        self._phase_started = self._started
        self._line = TerminalLine()

    def show(self, progress: Progress) -> None:
        """Update the display if the interval has passed, or the work is done."""
        now = monotonic()
        if progress.phase != self._phase:
            self._phase, self._phase_started = progress.phase, now
        if not self._is_enabled or (now - self._shown < self._every and progress.phase != "done"):
            return
        self._shown = now
        left = self._seconds_left(progress, now)
        if self._as_json:
            line = {
                "phase": progress.phase,
                "seconds": round(now - self._started, 1),
                "seconds_left": None if left is None else round(left, 1),
                "text_bytes": progress.text_bytes,
                "merges": progress.tokens - 256,
                "merges_wanted": progress.wanted - 256,
                "bytes_per_token": round(progress.bytes_per_token, 4) or None,
            }
            sys.stdout.write(json.dumps(line) + "\n")
            sys.stdout.flush()
            return
        self._line.write(_line(progress, left))

    def counted(self, text_bytes: int, wanted: int = 256) -> None:
        """Show the number of bytes counted.

        Args:
            text_bytes: Number of bytes of text counted so far.
            wanted: Requested number of ordinary tokens; 256 without a training.
        """
        self.show(Progress("count", text_bytes, 0, 256, wanted))

    def end(self) -> None:
        """Erase the line."""
        self._line.erase()

    def _seconds_left(self, progress: Progress, now: float) -> float | None:
        """Estimate the remaining time from the pace of the phase; None if it is not known."""
        if progress.phase == "count":
            done, total = progress.text_bytes, self._size
        else:
            done, total = progress.tokens - 256, progress.wanted - 256
        if not done or total is None:
            return None
        return max(0.0, (now - self._phase_started) * (total - done) / done)


def _line(progress: Progress, left: float | None) -> str:
    remaining = "" if left is None else f", about {left:.0f} s left"
    if progress.phase == "count":
        return f"counting: {progress.text_bytes / _MB:.1f} MB{remaining}"
    return (
        f"merging: {progress.tokens - 256:,} of {progress.wanted - 256:,} merges, "
        f"{progress.bytes_per_token:.2f} bytes per token{remaining}"
    )
