"""Signal settings that programs of a test inherit from it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def inherited(number: signal.Signals, what: signal.Handlers) -> Iterator[None]:
    """Programs that are started while the block runs begin with a signal at its default, or
    ignored, however the tests themselves were started."""
    before = signal.signal(number, what)
    try:
        yield
    finally:
        signal.signal(number, before)
