"""`bytepair evaluate`, as `bytepair` finds it: what it needs is imported when it is run."""

from __future__ import annotations

from collections.abc import Sequence

#: What `bytepair --help` says of it.
SUMMARY = "compare encodings on texts: bytes per token, tokens per word"


def run(arguments: Sequence[str]) -> int:
    """Run the command.

    Args:
        arguments: What follows `bytepair evaluate`.
    Returns:
        The exit status.
    """
    from bytepair_tools.judging import evaluate_command

    return evaluate_command.run(arguments)
