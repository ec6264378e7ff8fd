"""`bytepair extend`, as `bytepair` finds it: what it needs is imported when it is run."""

from __future__ import annotations

from collections.abc import Sequence

#: What `bytepair --help` says of it.
SUMMARY = "add special tokens to an encoding"


def run(arguments: Sequence[str]) -> int:
    """Run the command.

    Args:
        arguments: What follows `bytepair extend`.
    Returns:
        The exit status.
    """
    from bytepair_tools.training import extending

    return extending.run(arguments)
