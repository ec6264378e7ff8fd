"""Options of the commands that count or train."""

from __future__ import annotations

import argparse
from typing import Final

from bytepair_engine.vocabulary.patterns import PATTERN_NAMES

from bytepair_tools.shared.failure import USAGE, Failure
from bytepair_tools.texts.options import FILES_HELP, add_document_options, natural_number

#: OpenAI's newest pattern: it keeps marks together with their letters in every script.
PROPOSED_PATTERN: Final = "o200k_base"

_MIB: Final = 1 << 20
_MISSING: Final = object()


def add_files(parser: argparse.ArgumentParser, nargs: str = "+") -> None:
    """Add the arguments of text files."""
    parser.add_argument(
        "files",
        nargs=nargs,
        metavar="FILE",
        help=FILES_HELP,
    )


def add_pattern(parser: argparse.ArgumentParser) -> None:
    """Add --pattern and --no-pattern."""
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
        help="do not split documents: tokens may span whole documents",
    )


def given_pattern(args: argparse.Namespace) -> str | None:
    """Return the pattern of `add_pattern`; None for --no-pattern.

    Raises:
        Failure: Neither --pattern nor --no-pattern is given.
    """
    if args.pattern is _MISSING:
        raise Failure(
            f"a split pattern is required: --pattern {PROPOSED_PATTERN} suits texts in "
            f"any language (other names: {PATTERN_NAMES}); or --no-pattern",
            USAGE,
        )
    pattern: str | None = args.pattern
    return pattern


def add_reading(parser: argparse.ArgumentParser) -> None:
    """Add the options of reading and counting texts on one machine."""
    add_document_options(parser)
    parser.add_argument(
        "--threads",
        type=natural_number,
        metavar="N",
        help="number of counting threads (one per core)",
    )
    parser.add_argument(
        "--memory",
        type=natural_number,
        metavar="MIB",
        help="maximum memory of counts; above it they go to temporary files",
    )


def memory_bytes(args: argparse.Namespace) -> int | None:
    """Return the value of --memory in bytes; None for no limit.

    Raises:
        Failure: It is 0.
    """
    if args.memory == 0:
        raise Failure("--memory must be at least 1", USAGE)
    return None if args.memory is None else int(args.memory) * _MIB
