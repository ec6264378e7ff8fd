"""The progress of a job over a corpus: a line on a terminal, or lines of JSON for programs."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from time import monotonic

from bytepair_tools.corpus.job import Outcome
from bytepair_tools.shared.progress_line import TerminalLine


class Progress:
    """Shows progress on standard error if it is a terminal, or writes JSON to standard output."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._line = TerminalLine()
        self._phase, self._total, self._done = "", 0, 0
        self._started = monotonic()

    def begin(self, phase: str, total: int) -> None:
        """Start a phase of `total` partitions or buckets."""
        self._phase, self._total, self._done = phase, total, 0
        self._started = monotonic()
        self._show()

    def done(self, number: int, outcome: Outcome) -> None:
        """Report a finished partition or bucket."""
        self._done += 1
        if self._as_json:
            line = {
                "phase": self._phase,
                "number": number,
                "done": self._done,
                "of": self._total,
                **asdict(outcome),
            }
            sys.stdout.write(json.dumps(line) + "\n")
            sys.stdout.flush()
        self._show()

    def end(self) -> None:
        """Erase the line."""
        self._line.erase()

    def _show(self) -> None:
        if self._as_json or not sys.stderr.isatty():
            return
        left = ""
        if self._done:
            seconds = (monotonic() - self._started) * (self._total - self._done) / self._done
            left = f", about {seconds:.0f} s left"
        self._line.write(f"{self._phase}: {self._done:,} of {self._total:,}{left}")
