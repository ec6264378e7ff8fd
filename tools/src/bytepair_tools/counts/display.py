"""The progress of a training: a line on a terminal, or lines of JSON for programs."""

from __future__ import annotations

import json
import sys
from time import monotonic

from bytepair_engine.training.merging import Progress

from bytepair_tools.shared.progress_line import EVERY_S, TerminalLine

#: How often a line of JSON is written.
EVERY_JSON_S = 1.0

_MB = 1_000_000


class Display:
    """Shows progress on standard error if that is a terminal; or writes it to standard output."""

    def __init__(self, *, as_json: bool, size: int | None) -> None:
        """Show nothing yet.

        Args:
            size: How many bytes there are to read; None if that is not known.
        """
        self._as_json = as_json
        self._size = size
        self._is_wanted = as_json or sys.stderr.isatty()
        self._every = EVERY_JSON_S if as_json else EVERY_S
        self._started = monotonic()
        # The first line of JSON comes at once; on a terminal, what takes a moment has none.
        self._shown = self._started - (EVERY_JSON_S if as_json else 0)
        self._phase = "count"
        self._phase_started = self._started
        self._line = TerminalLine()

    def show(self, progress: Progress) -> None:
        """Tell how far it has come, if the time for it has come too."""
        now = monotonic()
        if progress.phase != self._phase:
            self._phase, self._phase_started = progress.phase, now
        if not self._is_wanted or (now - self._shown < self._every and progress.phase != "done"):
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
        """Tell that this many bytes of text were counted.

        Args:
            wanted: How many ordinary tokens there are to be in the end; 256 where nothing is
                merged.
        """
        self.show(Progress("count", text_bytes, 0, 256, wanted))

    def end(self) -> None:
        """Erase the line."""
        self._line.erase()

    def _seconds_left(self, progress: Progress, now: float) -> float | None:
        """By the pace of the phase so far; None where nothing can be said."""
        if progress.phase == "count":
            done, all_of_it = progress.text_bytes, self._size
        else:
            done, all_of_it = progress.tokens - 256, progress.wanted - 256
        if not done or all_of_it is None:
            return None
        return max(0.0, (now - self._phase_started) * (all_of_it - done) / done)


def _line(progress: Progress, left: float | None) -> str:
    remaining = "" if left is None else f", about {left:.0f} s left"
    if progress.phase == "count":
        return f"counting: {progress.text_bytes / _MB:.1f} MB{remaining}"
    return (
        f"merging: {progress.tokens - 256:,} of {progress.wanted - 256:,} merges, "
        f"{progress.bytes_per_token:.2f} bytes per token{remaining}"
    )
