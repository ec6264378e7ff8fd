"""How a command ends: its exit status, and the message for the person at the terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable

from bytepair_engine import BytepairError

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


def run_command(name: str, work: Callable[[], int]) -> int:
    """Do what a command does, and tell the person at the terminal if it cannot go on.

    Args:
        name: What the person called.
        work: Gives the exit status, or raises Failure or an error of the engine.
    Returns:
        The exit status; 130 if the person interrupted it.
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
