"""Pause Python's garbage collector while many objects are made at once."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused() -> Iterator[None]:
    """Keep the collector from running while the block does, if it was on.

    A vocabulary is hundreds of thousands of objects none of which is garbage, and the collector
    walks through all of them again and again: loading a large one takes nearly twice as long.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
