"""`bytepair count-pretokens`, as `bytepair` finds it: what it needs is imported when it is run."""

from __future__ import annotations

from collections.abc import Sequence

#: What `bytepair --help` says of it.
SUMMARY = "count the pre-tokens of texts, to train on later"


def run(arguments: Sequence[str]) -> int:
    """Run the command.

    Args:
        arguments: What follows `bytepair count-pretokens`.
    Returns:
        The exit status.
    """
    from bytepair_tools.training import count_command

    return count_command.run(arguments)
