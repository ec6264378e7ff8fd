"""`bytepair corpus`, as `bytepair` finds it: what it needs is imported when it is run."""

from __future__ import annotations

from collections.abc import Sequence

#: What `bytepair --help` says of it.
SUMMARY = "count, encode or count the pre-tokens of a corpus of many files"


def run(arguments: Sequence[str]) -> int:
    """Run the command.

    Args:
        arguments: What follows `bytepair corpus`.
    Returns:
        The exit status.
    """
    from bytepair_tools.corpus_jobs import command

    return command.run(arguments)
