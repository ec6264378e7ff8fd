"""What Ctrl-C does while a command works."""

from __future__ import annotations

import signal
from types import FrameType
from typing import Self


class Interrupted(Exception):
    """The person at the terminal pressed Ctrl-C."""


class Interrupts:
    """It ends reading at once, as that may wait for input, and anything else at its next stop. A
    second Ctrl-C ends the program where it stands. Use it as a context."""

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
        """Raises Interrupted: it was pressed."""
        if self.is_pressed:
            raise Interrupted
