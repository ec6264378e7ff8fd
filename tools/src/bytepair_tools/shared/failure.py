"""Exit statuses and error messages of commands."""

from __future__ import annotations

import sys
from collections.abc import Callable

from bytepair_engine import BytepairError

FAILED = 1
USAGE = 2
INTERRUPTED = 130  # 128 + SIGINT, as in shells


class Failure(Exception):
    """A command failed; its message is for the user.

    Attributes:
        status: The exit status.
    """

    def __init__(self, message: str, status: int = FAILED) -> None:
        super().__init__(message)
        self.status = status


def reason(error: OSError) -> str:
    """Return the reason of an error; those of Arrow and of the engine's core have only a text."""
    return error.strerror or str(error)


def run_command(name: str, work: Callable[[], int]) -> int:
    """Run a command, and print its error if it fails.

    Args:
        name: The name of the command.
        work: Returns the exit status, or raises Failure or an error of the engine.
    Returns:
        The exit status; 130 if the command was interrupted.
    """
    try:
        return work()
    except Failure as failure:
        sys.stderr.write(f"{name}: {failure}\n")
        return failure.status
    except BytepairError as error:
        sys.stderr.write(f"{name}: {error}\n")
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
