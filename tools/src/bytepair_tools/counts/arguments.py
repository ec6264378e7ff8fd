"""Options that several commands share."""

from __future__ import annotations

import argparse
from typing import Final

from bytepair_engine.vocabulary.patterns import PATTERN_NAMES

from bytepair_tools.shared.failure import USAGE, Failure
from bytepair_tools.texts.options import FILES_HELP, add_document_options

#: The newest of OpenAI's: it keeps the marks of every script with their letters.
PROPOSED_PATTERN: Final = "o200k_base"

_MIB: Final = 1 << 20
_MISSING: Final = object()


def add_files(parser: argparse.ArgumentParser, nargs: str = "+") -> None:
    """The texts."""
    parser.add_argument(
        "files",
        nargs=nargs,
        metavar="FILE",
        help=FILES_HELP,
    )


def add_pattern(parser: argparse.ArgumentParser) -> None:
    """The split pattern, or that there is none."""
    pattern = parser.add_mutually_exclusive_group()
    pattern.add_argument(
        "--pattern",
        default=_MISSING,
        metavar="NAME|REGEX",
        help=f"the split pattern: a name such as {PROPOSED_PATTERN}, or a regex",
    )
    pattern.add_argument(
        "--no-pattern",
        action="store_const",
        const=None,
        dest="pattern",
        help="do not split documents: tokens may span a whole one",
    )


def given_pattern(args: argparse.Namespace, proposal: str = "") -> str | None:
    """The pattern that `add_pattern` read; None for none.

    Args:
        args: What was read.
        proposal: More of a command line that may be meant, after the pattern.
    Raises:
        Failure: Neither a pattern was given nor that there is none.
    """
    if args.pattern is _MISSING:
        raise Failure(
            f"give a split pattern: --pattern {PROPOSED_PATTERN}{proposal} serves for texts of any "
            f"language (others with a name: {PATTERN_NAMES}); or --no-pattern",
            USAGE,
        )
    pattern: str | None = args.pattern
    return pattern


def add_reading(parser: argparse.ArgumentParser) -> None:
    """How texts are read and counted on one machine."""
    add_document_options(parser)
    parser.add_argument(
        "--threads", type=int, metavar="N", help="threads that count (one for each core)"
    )
    parser.add_argument(
        "--memory",
        type=int,
        metavar="MIB",
        help="memory for counts while texts are read; beyond it they go to temporary files",
    )


def memory_bytes(args: argparse.Namespace) -> int | None:
    """What counts may take; None for no limit."""
    return None if args.memory is None else int(args.memory) * _MIB
