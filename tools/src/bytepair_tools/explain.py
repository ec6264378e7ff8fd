"""`bytepair explain`, as `bytepair` finds it: what it needs is imported when it is run."""

from __future__ import annotations

from collections.abc import Sequence

#: What `bytepair --help` says of it.
SUMMARY = "show the tokens of a text, and how they are merged"


def run(arguments: Sequence[str]) -> int:
    """Run the command.

    Args:
        arguments: What follows `bytepair explain`.
    Returns:
        The exit status.
    """
    from bytepair_tools.judging import explain_command

    return explain_command.run(arguments)
