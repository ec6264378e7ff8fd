"""The options of every command that reads texts."""

from __future__ import annotations

import argparse

from bytepair_tools.texts.documents import Documents

#: What `--help` says a FILE may be.
FILES_HELP = "a text, plain or compressed by gzip or zstd; - for standard input"


def add_document_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how files are read; each is None where it is not given."""
    parser.add_argument(
        "--format",
        choices=("text", "lines", "jsonl", "parquet"),
        help="what a document is: a file, a line or a row; by default a row of .jsonl, .ndjson "
        "and .parquet, and any other file as a whole",
    )
    parser.add_argument(
        "--column", metavar="NAME", help="the column of text in JSON Lines and Parquet (text)"
    )
    parser.add_argument(
        "--invalid",
        choices=("refuse", "replace", "skip"),
        help="what to do with a document that is not UTF-8 (refuse)",
    )


def documents_of(args: argparse.Namespace) -> Documents:
    """What the options come to; `by` is an option of some commands."""
    return Documents(
        format=args.format,
        column="text" if args.column is None else args.column,
        invalid=args.invalid or "refuse",
        by=getattr(args, "by", None),
    )


def natural_number(text: str) -> int:
    """A number of things, as an option takes it.

    Raises:
        ArgumentTypeError: It is none.
    """
    if not (text.isascii() and text.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of 0 or more")
    return int(text)
