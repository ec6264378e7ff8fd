"""The command `bytepair train`: train a vocabulary on texts or on counts."""

from __future__ import annotations

import argparse
import json
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from bytepair_engine import BytepairError, Encoding
from bytepair_engine.training.merging import Trained
from bytepair_engine.training.settings import TrainingSettings

from bytepair_tools.counts import checkpoint
from bytepair_tools.counts.arguments import (
    add_files,
    add_pattern,
    add_reading,
    given_pattern,
    memory_bytes,
)
from bytepair_tools.counts.display import Display
from bytepair_tools.counts.reading import Reading
from bytepair_tools.counts.source import CountFiles
from bytepair_tools.shared.failure import USAGE, Failure
from bytepair_tools.texts.documents import Documents, invalid_utf8_note
from bytepair_tools.texts.options import documents_of
from bytepair_tools.training.output import CONFIGURATION, TOKENIZER_JSON, check_name, create_folder
from bytepair_tools.training.run import Job, Source


def run(args: argparse.Namespace) -> int:
    """Run the command, and return its exit status."""
    try:
        job = _job(args)
    except BytepairError as error:
        raise Failure(str(error), USAGE) from None
    try:
        trained, encoding, notes = job.run(resume=args.resume)
    finally:
        job.display.end()
    _print_result(args, job, trained, encoding, notes)
    return 0


def _job(args: argparse.Namespace) -> Job:
    if bool(args.files) == bool(args.counts):
        raise Failure("either texts or --counts is required, and not both", USAGE)
    settings = TrainingSettings.checked(
        vocab_size=args.vocab_size,
        pattern=given_pattern(args),
        special_tokens=args.special,
        min_frequency=args.min_frequency,
        ties=args.ties,
        byte_order=args.byte_order,
    )
    folder: Path = args.output
    name = args.name or folder.resolve().name
    check_name(name, _proposed_name(args))
    # A resumed training may have written all files but the last one, the rank file.
    others = () if args.resume else (TOKENIZER_JSON, CONFIGURATION)
    create_folder(folder, (f"{name}.tiktoken", *others))
    documents = documents_of(args)
    size = None if args.counts else documents.size(args.files)
    display = Display(as_json=args.json, size=size)
    return Job(_source(args, documents, settings, display), settings, folder, name, display)


def _proposed_name(args: argparse.Namespace) -> str:
    """Return a name for the encoding from the first file and the size, such as "notes-32k"."""
    first = next(iter(args.files or args.counts), "-")
    stem = re.sub(r"[^a-z0-9]+", "-", Path(first).name.partition(".")[0].lower()).strip("-")
    size: int = args.vocab_size
    return f"{stem or 'texts'}-{size if size % 1000 else f'{size // 1000}k'}"


def _source(
    args: argparse.Namespace, documents: Documents, settings: TrainingSettings, display: Display
) -> Source:
    folder: Path = args.output
    if args.counts:
        for option in ("format", "column", "invalid", "threads"):
            if getattr(args, option) is not None:
                raise Failure(f"--{option} applies to texts, not to --counts", USAGE)
        return CountFiles(
            names=args.counts,
            pattern=settings.pattern,
            ties=settings.ties,
            display=display,
            folder=folder,
            wanted=settings.ordinary_tokens,
            memory_bytes=memory_bytes(args),
        )
    return Reading(
        files=args.files,
        documents=documents,
        pattern=settings.pattern,
        checkpoint=folder / checkpoint.NAME,
        display=display,
        wanted=settings.ordinary_tokens,
        threads=args.threads or 0,
        memory_bytes=memory_bytes(args),
    )


def _print_result(
    args: argparse.Namespace, job: Job, trained: Trained, encoding: Encoding, notes: Sequence[str]
) -> None:
    source = job.source
    if args.json:
        result = {
            "phase": "written",
            "folder": str(job.folder),
            "name": job.name,
            "fingerprint": encoding.fingerprint,
            "n_vocab": encoding.n_vocab,
            "merges": len(trained.merges),
            "complete": trained.is_complete,
            "text_bytes": trained.text_bytes,
            "text_tokens": trained.text_tokens,
            "documents_replaced": source.replaced,
            "documents_skipped": source.skipped,
            "notes": list(notes),
        }
        sys.stdout.write(json.dumps(result) + "\n")
        return
    lines = [
        f"{encoding.n_vocab:,} tokens, {trained.text_bytes / trained.text_tokens:.2f} bytes per "
        f"token in the {trained.text_bytes:,} bytes of text",
        f"{job.folder}: {job.name}.tiktoken, tokenizer.json, bytepair.toml"
        if not notes
        else f"{job.folder}: {job.name}.tiktoken, bytepair.toml",
        f"to serve it: bytepair-server --config {shlex.quote(str(job.folder / 'bytepair.toml'))} "
        "--grpc-address 127.0.0.1:50051 --http-address 127.0.0.1:9464",
    ]
    sys.stdout.write("\n".join(lines) + "\n")
    if not trained.is_complete:
        least = trained.settings.min_frequency
        why = f"no pair occurs {least} times or more" if least > 1 else "no pair is left"
        sys.stderr.write(
            f"bytepair train: stopped after {len(trained.merges):,} merges, because {why}: "
            f"{encoding.n_vocab:,} tokens instead of {trained.settings.vocab_size:,}\n"
        )
    for note in notes:
        sys.stderr.write(f"bytepair train: {note}\n")
    if note := invalid_utf8_note(source.replaced, source.skipped):
        sys.stderr.write(f"bytepair train: {note}\n")


def parser() -> argparse.ArgumentParser:
    """Return the argument parser."""
    parser = argparse.ArgumentParser(
        prog="bytepair train",
        allow_abbrev=False,
        description="Train a vocabulary on texts: byte-level byte-pair encoding over the "
        "pre-tokens of a split pattern. Writes a rank file, a tokenizer.json for Hugging Face's "
        "tokenizers, and a configuration file for the server.",
        epilog="Nothing merges across the ends of a document. Ctrl-C writes a checkpoint to the "
        "output folder, from which --resume continues with the same result.",
    )
    add_files(parser, nargs="*")
    parser.add_argument(
        "--counts",
        nargs="+",
        default=[],
        metavar="FILE",
        help="instead of texts: Parquet files of pre-token counts, or folders of them, as written "
        "by bytepair count-pretokens and bytepair corpus count-pretokens",
    )
    parser.add_argument(
        "--vocab-size",
        type=int,
        required=True,
        metavar="N",
        help="size of the vocabulary, including the 256 bytes and the special tokens",
    )
    add_pattern(parser)
    parser.add_argument(
        "--output", type=Path, required=True, metavar="DIR", help="the folder to write to"
    )
    parser.add_argument("--name", help="the encoding's name (default: that of the folder)")
    parser.add_argument(
        "--special",
        action="append",
        default=[],
        metavar="TOKEN",
        help="a special token; repeatable, in order of ids",
    )
    parser.add_argument(
        "--min-frequency",
        type=int,
        default=1,
        metavar="K",
        help="merge only pairs that occur at least K times (1)",
    )
    parser.add_argument(
        "--ties",
        choices=("lowest", "first-seen"),
        default="lowest",
        help="of equally frequent pairs, merge the one with the lowest ids, as Hugging Face's "
        "BpeTrainer does, or the one that occurs first, as minbpe does (lowest)",
    )
    parser.add_argument(
        "--byte-order",
        choices=("gpt2", "value"),
        default="gpt2",
        help="the order of the ids of the bytes (gpt2)",
    )
    add_reading(parser)
    parser.add_argument(
        "--resume", action="store_true", help="continue from the checkpoint in the output folder"
    )
    parser.add_argument("--json", action="store_true", help="progress and result as lines of JSON")
    return parser
