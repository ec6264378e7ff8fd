"""Signal dispositions that programs inherit from a test."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def inherited(number: signal.Signals, what: signal.Handlers) -> Iterator[None]:
    """Start programs during the block with a signal at its default or ignored, however the tests
    themselves were started."""
    before = signal.signal(number, what)
    try:
        yield
    finally:
        signal.signal(number, before)
