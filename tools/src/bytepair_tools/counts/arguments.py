"""Options that several commands share."""

from __future__ import annotations

import argparse

from bytepair_tools.texts.options import FILES_HELP, add_document_options

_MIB = 1 << 20


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
    pattern = parser.add_mutually_exclusive_group(required=True)
    pattern.add_argument(
        "--pattern", metavar="NAME|REGEX", help="the split pattern: a name such as gpt2, or a regex"
    )
    pattern.add_argument(
        "--no-pattern",
        action="store_const",
        const=None,
        dest="pattern",
        help="do not split documents: tokens may span a whole one",
    )


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
