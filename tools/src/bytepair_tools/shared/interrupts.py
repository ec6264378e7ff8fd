"""Handling of Ctrl-C while a command runs."""

from __future__ import annotations

import signal
from types import FrameType
from typing import Self


class Interrupted(Exception):
    """The user pressed Ctrl-C."""


class Interrupts:
    """A context manager that handles Ctrl-C. The first one interrupts reading at once, because that
    may wait for input, and other work at its next `check`. The second one ends the program."""

    def __init__(self) -> None:
        self.is_reading = False
        self.is_pressed = False

    def __enter__(self) -> Self:
        self._before = signal.signal(signal.SIGINT, self._press)
        return self

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self._before)

    def _press(self, number: int, frame: FrameType | None) -> None:
        if self.is_pressed:
            signal.default_int_handler(number, frame)
        self.is_pressed = True
        if self.is_reading:
            raise Interrupted

    def check(self) -> None:
        """Raise Interrupted if Ctrl-C was pressed."""
        if self.is_pressed:
            raise Interrupted
