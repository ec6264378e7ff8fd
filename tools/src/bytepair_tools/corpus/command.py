"""The command `bytepair corpus`: process corpora of many files, on all cores or on a cluster."""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bytepair_engine.vocabulary.patterns import resolve_pattern

from bytepair_tools.corpus.encoding import COLUMNS
from bytepair_tools.corpus.job import Job, Outcome
from bytepair_tools.corpus.lock import locked
from bytepair_tools.corpus.progress import Progress
from bytepair_tools.corpus.run import run_job
from bytepair_tools.corpus.runners import LOCAL, LocalProcesses, RayCluster, Runner
from bytepair_tools.counts.arguments import add_pattern, given_pattern
from bytepair_tools.counts.file import check_installed
from bytepair_tools.shared.encodings import add_encoding_option, allowed_special, one_encoding
from bytepair_tools.shared.failure import INTERRUPTED, USAGE, Failure
from bytepair_tools.texts.documents import invalid_utf8_note
from bytepair_tools.texts.options import add_document_options, documents_of

#: Default number of files of counts; each one is summed in memory.
DEFAULT_BUCKETS = 16
MAX_BUCKETS = 4096

_EPILOG = """\
Each file is a partition. All workers must have access to the files and to the output folder. If a
run was interrupted, a worker died or a file was rejected and repaired, run the command again:
finished partitions are not repeated. Only one run may write to an output folder at a time.
"""


def run(args: argparse.Namespace) -> int:
    """Run the command, and return its exit status."""
    check_installed()
    if args.workers is not None and args.workers < 1:
        raise Failure("--workers must be at least 1", USAGE)
    if args.retries < 0:
        raise Failure("--retries must be at least 0", USAGE)
    _check_output(args)
    job = Job.over(args.corpus, args.task, _settings(args))
    _check(job)
    progress = Progress(as_json=args.json)
    try:
        with locked(output := args.output.absolute()):
            total = run_job(job, output, lambda: _runner(args), progress)
    except KeyboardInterrupt:
        raise Failure("interrupted; run the command again to continue", INTERRUPTED) from None
    finally:
        progress.end()
    _print_result(args, job, total)
    return 0


def _settings(args: argparse.Namespace) -> dict[str, Any]:
    """Return all settings that affect the results."""
    reading = documents_of(args)
    settings: dict[str, Any] = {
        "format": reading.format,
        "column": reading.column,
        "invalid": reading.invalid,
    }
    if args.task == "count-pretokens":
        if not 1 <= args.buckets <= MAX_BUCKETS:
            raise Failure(f"--buckets must be from 1 to {MAX_BUCKETS}", USAGE)
        pattern = given_pattern(args)
        if pattern is not None:
            pattern = resolve_pattern(pattern, "the split pattern")
        return settings | {"pattern": pattern, "buckets": args.buckets}
    if COLUMNS[args.task] in args.keep:
        raise Failure(f"--keep {COLUMNS[args.task]}: the column of results has that name", USAGE)
    encoding = one_encoding(args.encoding)
    default = "reject" if args.task == "encode" else "as-text"
    path = Path(args.encoding)
    return settings | {
        "encoding": str(path.absolute()) if path.exists() else encoding.name,
        "fingerprint": encoding.fingerprint,
        "allowed_special": allowed_special(args.allowed_special, encoding),
        "disallowed_special": args.disallowed_special or default,
        "add_special_tokens": args.add_special_tokens,
        "keep": list(dict.fromkeys(args.keep)),
    }


def _check_output(args: argparse.Namespace) -> None:
    """Reject an output folder whose files the next run would read as texts."""
    output = args.output.resolve()
    for name in args.corpus:
        folder = Path(name).resolve()
        if not output.is_relative_to(folder) or not folder.is_dir():
            continue
        if not any(part.startswith((".", "_")) for part in output.relative_to(folder).parts):
            raise Failure(
                f"--output {args.output}: is in the corpus {name}, so that the next run would read "
                "it; use a folder elsewhere, or one whose name begins with _",
                USAGE,
            )


def _check(job: Job) -> None:
    reading = documents_of(argparse.Namespace(**job.settings))
    for name in job.partitions:
        if job.settings.get("keep") and reading.format_of(name) != "parquet":
            raise Failure(f"{name}: --keep applies only to Parquet files", USAGE)


def _runner(args: argparse.Namespace) -> Runner:
    workers = args.workers or _cores()
    if args.ray is None:
        return LocalProcesses(workers)
    return RayCluster(args.ray, workers=workers, retries=args.retries)


def _cores() -> int:
    """Return the number of cores that this process may use if the system reports it, else of all
    cores."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _print_result(args: argparse.Namespace, job: Job, total: Outcome) -> None:
    if args.json:
        result = {"phase": "written", "folder": str(args.output), "job": job.fingerprint}
        sys.stdout.write(json.dumps(result | asdict(total)) + "\n")
        return
    if args.task == "count-pretokens":
        sys.stdout.write(
            f"{args.output}: the pre-tokens of {total.text_bytes:,} bytes of text\n"
            f"to train on them: bytepair train --counts {args.output} …\n"
        )
    else:
        sys.stdout.write(
            f"{args.output}: {total.documents:,} documents, {total.tokens:,} tokens, "
            f"{total.text_bytes:,} bytes of text\n"
        )
    if note := invalid_utf8_note(total.replaced, total.skipped):
        sys.stderr.write(f"bytepair corpus: {note}\n")


def parser() -> argparse.ArgumentParser:
    """Return the argument parser."""
    parser = argparse.ArgumentParser(
        prog="bytepair corpus",
        allow_abbrev=False,
        description="Process a corpus of many files, on all cores of this machine or on a Ray "
        "cluster.",
    )
    tasks = parser.add_subparsers(dest="task", required=True, metavar="TASK")
    counting = _task(
        tasks,
        "count-pretokens",
        "count the pre-tokens of all texts, for training",
        "Count the pre-tokens of all texts, and write the counts to Parquet files. Pass the folder "
        "to bytepair train --counts.",
    )
    add_pattern(counting)
    counting.add_argument(
        "--buckets",
        type=int,
        default=DEFAULT_BUCKETS,
        metavar="N",
        help="number of files of counts, each of which must fit in the memory of a worker; 1 keeps "
        "the order of first occurrence, for --ties first-seen (%(default)s)",
    )
    for task, summary, column in (
        ("encode", "write the token ids of all documents", "the list column 'ids', its token ids"),
        ("count", "write the number of tokens of each document", "the column 'count'"),
    ):
        _encoding_options(
            _task(
                tasks,
                task,
                summary,
                f"For each partition, write a Parquet file with a row for each document, in "
                f"order, with {column}.",
            )
        )
    return parser


def _task(tasks: Any, name: str, summary: str, description: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = tasks.add_parser(
        name,
        help=summary,
        description=description,
        epilog=_EPILOG,
        allow_abbrev=False,
    )
    parser.add_argument(
        "corpus", nargs="+", metavar="PATH", help="a file, or a folder for all files in it"
    )
    parser.add_argument(
        "--output", type=Path, required=True, metavar="DIR", help="the folder to write to"
    )
    add_document_options(parser)
    execution = parser.add_argument_group("execution")
    execution.add_argument(
        "--workers", type=int, metavar="N", help="processes on this machine (one per core)"
    )
    execution.add_argument(
        "--ray",
        metavar="ADDRESS",
        help=f"address of a Ray cluster, or {LOCAL!r} to start one on this machine; needs "
        "bytepair-tools[ray] on all machines",
    )
    execution.add_argument(
        "--retries",
        type=int,
        default=2,
        metavar="N",
        help="number of times that Ray retries a partition if a worker dies (%(default)s)",
    )
    parser.add_argument("--json", action="store_true", help="progress and result as lines of JSON")
    return parser


def _encoding_options(parser: argparse.ArgumentParser) -> None:
    add_encoding_option(parser)
    parser.add_argument(
        "--keep",
        action="append",
        default=[],
        metavar="COLUMN",
        help="for Parquet: copy this column to the results; repeatable",
    )
    group = parser.add_argument_group("special tokens in the text")
    group.add_argument(
        "--allowed-special",
        action="append",
        default=[],
        metavar="TOKEN",
        help="a special token that becomes its id, or 'all'; repeatable",
    )
    group.add_argument(
        "--disallowed-special",
        choices=("reject", "as-text"),
        help="other special tokens: an error, or ordinary text (default: as-text for count, reject "
        "for encode)",
    )
    parser.add_argument(
        "--add-special-tokens",
        action="store_true",
        help="add the encoding's template around the text",
    )
