"""How a command ends: its exit status, and what is said of what ended it."""

from __future__ import annotations

import sys
from collections.abc import Callable

from bytepair_engine import BytepairError

from bytepair_tools.shared.failure import FAILED, INTERRUPTED, Failure


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
