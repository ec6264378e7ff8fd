"""The command `bytepair count-pretokens`: count the pre-tokens of texts."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from bytepair_engine.vocabulary.patterns import resolve_pattern

from bytepair_tools.counts.arguments import (
    add_files,
    add_pattern,
    add_reading,
    given_pattern,
    memory_bytes,
)
from bytepair_tools.counts.display import Display
from bytepair_tools.counts.file import Counted, check_installed, write_counts
from bytepair_tools.counts.reading import Reading
from bytepair_tools.shared.failure import Failure
from bytepair_tools.shared.interrupts import Interrupts
from bytepair_tools.texts.documents import invalid_utf8_note
from bytepair_tools.texts.options import documents_of


def run(args: argparse.Namespace) -> int:
    """Run the command, and return its exit status."""
    check_installed()
    display = Display(as_json=args.json, size=documents_of(args).size(args.files))
    try:
        _count(args, display)
    finally:
        display.end()
    return 0


def _count(args: argparse.Namespace, display: Display) -> None:
    output: Path = args.output
    if output.exists():
        raise Failure(f"{output}: already exists; use another --output")
    if not output.absolute().parent.is_dir():
        raise Failure(f"{output}: the folder {output.parent} does not exist")
    pattern = given_pattern(args)
    if pattern is not None:
        pattern = resolve_pattern(pattern, "the split pattern")
    reading = Reading(
        files=args.files,
        documents=documents_of(args),
        pattern=pattern,
        checkpoint=output.with_name(f"{output.name}.checkpoint"),
        display=display,
        threads=args.threads or 0,
        memory_bytes=memory_bytes(args),
    )
    with Interrupts() as interrupts:
        counts = reading.count(interrupts, resume=args.resume)
    if not len(counts):
        raise Failure("there is no text to count")
    counted = Counted(
        pattern,
        reading.documents.invalid,
        replaced=reading.replaced,
        skipped=reading.skipped,
        text_bytes=counts.total_bytes,
    )
    write_counts(output, counts, counted)
    reading.forget()
    display.end()
    result = {
        "phase": "written",
        "file": str(output),
        "pretokens": len(counts),
        "pretoken_bytes": counts.unique_bytes,
        "text_bytes": counts.total_bytes,
        "documents_replaced": reading.replaced,
        "documents_skipped": reading.skipped,
    }
    if args.json:
        sys.stdout.write(json.dumps(result) + "\n")
        return
    sys.stdout.write(
        f"{len(counts):,} distinct pre-tokens of {counts.unique_bytes:,} bytes, in "
        f"{counts.total_bytes:,} bytes of text\n"
        f"to train on them: bytepair train --counts {output} …\n"
    )
    if note := invalid_utf8_note(reading.replaced, reading.skipped):
        sys.stderr.write(f"bytepair count-pretokens: {note}\n")


def parser() -> argparse.ArgumentParser:
    """Return the argument parser."""
    parser = argparse.ArgumentParser(
        prog="bytepair count-pretokens",
        allow_abbrev=False,
        description="Count the pre-tokens of texts, and write the counts and the split pattern to "
        "a Parquet file. bytepair train --counts trains on one or several such files, with the "
        "same result as on the texts.",
        epilog="Ctrl-C writes a checkpoint next to the output, from which --resume continues.",
    )
    add_files(parser)
    add_pattern(parser)
    parser.add_argument(
        "--output", type=Path, required=True, metavar="FILE", help="the Parquet file to write"
    )
    add_reading(parser)
    parser.add_argument(
        "--resume", action="store_true", help="continue from the checkpoint next to the output"
    )
    parser.add_argument("--json", action="store_true", help="progress and result as lines of JSON")
    return parser
