"""What ends a command: a message for the person at the terminal, and an exit status."""

from __future__ import annotations

FAILED = 1
USAGE = 2
INTERRUPTED = 130  # 128 + SIGINT, as shells say it


class Failure(Exception):
    """The command cannot go on.

    Attributes:
        status: Its exit status.
    """

    def __init__(self, message: str, status: int = FAILED) -> None:
        super().__init__(message)
        self.status = status
