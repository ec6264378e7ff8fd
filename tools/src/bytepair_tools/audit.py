"""`bytepair audit`, as `bytepair` finds it: what it needs is imported when it is run."""

from __future__ import annotations

from collections.abc import Sequence

#: What `bytepair --help` says of it.
SUMMARY = "find what is wrong with a vocabulary: tokens that are never used, and others"


def run(arguments: Sequence[str]) -> int:
    """Run the command.

    Args:
        arguments: What follows `bytepair audit`.
    Returns:
        The exit status.
    """
    from bytepair_tools.judging import audit_command

    return audit_command.run(arguments)
