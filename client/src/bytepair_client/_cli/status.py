"""How the command ends, and the error that ends it."""

from __future__ import annotations

from enum import IntEnum


class ExitStatus(IntEnum):
    """What the shell sees. `bytepair --help` describes them."""

    OK = 0
    FAILED = 1
    USAGE = 2  # argparse's own
    TRY_LATER = 3
    INTERRUPTED = 130  # 128 + SIGINT, as shells say it
    BROKEN_PIPE = 141  # 128 + SIGPIPE


class CommandError(Exception):
    """A message for the person at the terminal, and how the command ends after it."""

    def __init__(self, message: str, status: ExitStatus = ExitStatus.FAILED) -> None:
        super().__init__(message)
        self.status = status
