"""`bytepair train`, as `bytepair` finds it: what it needs is imported when it is run."""

from __future__ import annotations

from collections.abc import Sequence

#: What `bytepair --help` says of it.
SUMMARY = "train a merge table on texts"


def run(arguments: Sequence[str]) -> int:
    """Run the command.

    Args:
        arguments: What follows `bytepair train`.
    Returns:
        The exit status.
    """
    from bytepair_tools.training import command

    return command.run(arguments)
