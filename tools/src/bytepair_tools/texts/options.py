"""Options of commands that read texts."""

from __future__ import annotations

import argparse

from bytepair_tools.texts.documents import Documents

#: The help text of FILE.
FILES_HELP = "a text, plain or compressed by gzip or zstd; - for standard input"


def add_document_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of reading files; each is None if it is not given."""
    parser.add_argument(
        "--format",
        choices=("text", "lines", "jsonl", "parquet"),
        help="the unit of a document: a file, a line or a row (default: a row in .jsonl, .ndjson "
        "and .parquet, else a file)",
    )
    parser.add_argument(
        "--column",
        metavar="NAME",
        help="the key (JSON Lines) or column (Parquet) of text (text)",
    )
    parser.add_argument(
        "--invalid",
        choices=("reject", "replace", "skip"),
        help="handling of documents that are not UTF-8 (reject)",
    )


def documents_of(args: argparse.Namespace) -> Documents:
    """Return the reader for the options; only some commands have `--by`."""
    return Documents(
        format=args.format,
        column="text" if args.column is None else args.column,
        invalid=args.invalid or "reject",
        by=getattr(args, "by", None),
    )


def natural_number(text: str) -> int:
    """Parse a number of 0 or more, as the type of an option.

    Raises:
        ArgumentTypeError: The text is not such a number.
    """
    if not (text.isascii() and text.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of 0 or more")
    return int(text)
