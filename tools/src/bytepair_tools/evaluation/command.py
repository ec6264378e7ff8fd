"""The command `bytepair evaluate`: compare encodings on the same texts."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from bytepair_engine import Encoding

from bytepair_tools.evaluation import chart
from bytepair_tools.evaluation.comparison import (
    ALL,
    MEASURES,
    Comparison,
    Row,
    Section,
    compare,
    written,
)
from bytepair_tools.evaluation.evaluation import evaluate
from bytepair_tools.shared.encodings import ENCODING_HELP, add_file_options, labels, named_encodings
from bytepair_tools.shared.progress_line import ProgressLine
from bytepair_tools.shared.table import table
from bytepair_tools.shared.visible import visible
from bytepair_tools.texts.options import FILES_HELP, add_document_options, documents_of

_DESCRIPTION: Final = """\
Count the tokens of texts in one or several encodings, by file, by script and by a label of
documents. More bytes per token mean denser encoding; fewer tokens per word, and more whole words,
mean less splitting. Special tokens in a text are treated as ordinary text.
"""

_EPILOG: Final = """\
Compare the same data in several formats:

  bytepair evaluate gpt-4o --parallel --on data.json data.yaml

More examples:

  bytepair evaluate gpt-4 gpt-4o mine/bytepair.toml --on texts/*.txt
  bytepair evaluate gpt-4o tokenizer.json --by language --on wiki.jsonl.gz --chart wiki.svg

docs/training.md defines each measure.

exit status: 0; 1 if input was rejected; 2 for wrong usage
"""

#: Maximum number of scripts listed, except in JSON.
MAX_SCRIPTS: Final = 12


def run(args: argparse.Namespace) -> int:
    """Run the command, and return its exit status."""
    if args.chart is not None:
        chart.check(args.chart)
    encodings = _encodings(args)
    comparison = _comparison(args, encodings)
    if args.chart is not None:
        chart.write(args.chart, comparison)
    if args.json:
        sys.stdout.write(json.dumps(_fields(comparison, encodings)) + "\n")
    else:
        sys.stdout.write("\n".join(_lines(comparison)) + "\n")
    return 0


def _encodings(args: argparse.Namespace) -> list[tuple[str, Encoding]]:
    found = [
        encoding
        for name in args.encodings
        for encoding in named_encodings(name, pattern=args.pattern, encoder_file=args.encoder_file)
    ]
    return list(zip(labels(found), found, strict=True))


def _comparison(args: argparse.Namespace, encodings: Sequence[tuple[str, Encoding]]) -> Comparison:
    documents = documents_of(args)
    progress = ProgressLine("evaluating", documents.size(args.on))
    try:
        evaluation = evaluate(encodings, args.on, documents, progress.show)
    finally:
        progress.end()
    if documents.replaced or documents.skipped:
        sys.stderr.write(
            f"bytepair evaluate: not UTF-8: {documents.replaced} documents with replacements, "
            f"{documents.skipped} skipped\n"
        )
    return compare(evaluation, by=args.by, is_parallel=args.parallel)


def _fields(comparison: Comparison, encodings: Sequence[tuple[str, Encoding]]) -> dict[str, Any]:
    return {
        "encodings": [
            {"name": name, "fingerprint": encoding.fingerprint, "n_vocab": encoding.n_vocab}
            for name, encoding in encodings
        ],
        **{f"{s.kind}s": list(comparison.fields(s)) for s in comparison.sections},
    }


def _lines(comparison: Comparison) -> Iterator[str]:
    for section in comparison.sections:
        if not section.rows:
            continue  # there is no text
        if section.kind != "file":
            yield ""
        max_rows = MAX_SCRIPTS if section.kind == "script" else len(section.rows)
        yield from _section(comparison, section, section.rows[:max_rows])
        if (more := len(section.rows) - max_rows) > 0:
            yield f"and {more} more scripts with less text: --json lists all"


def _section(comparison: Comparison, section: Section, rows: Sequence[Row]) -> Iterator[str]:
    encodings = [visible(name) for name in comparison.encodings]
    several = len(encodings) > 1
    parallel = comparison.is_parallel and section.kind == "file"
    unknown = any(counts.unknown for row in rows for counts in row.counts)
    heads = [visible(section.title), "encoding", "tokens"]
    heads += [f"x {encodings[0]}"] * several + ["x first file"] * parallel
    heads += [measure.title for measure in MEASURES] + ["unknown"] * unknown
    cells = []
    for row in rows:
        for index, counts in enumerate(row.counts):
            line = ["" if index else visible(row.name), encodings[index], f"{counts.tokens:,}"]
            if several:
                line.append(written(comparison.times_first_encoding(row, index), ".3f"))
            if parallel:
                times = comparison.times_first_file(row, index)
                line.append("" if row.name == ALL else written(times, ".3f"))
            line += [written(measure.value(counts), measure.format) for measure in MEASURES]
            cells.append(line + [f"{counts.unknown:,}"] * unknown)
    return table(heads, cells, left=(0, 1))


def parser() -> argparse.ArgumentParser:
    """Return the argument parser."""
    parser = argparse.ArgumentParser(
        prog="bytepair evaluate",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("encodings", nargs="+", metavar="ENCODING", help=ENCODING_HELP)
    parser.add_argument("--on", nargs="+", required=True, metavar="FILE", help=FILES_HELP)
    parser.add_argument(
        "--parallel",
        action="store_true",
        help="the files have the same content, such as data in two formats, or translations: "
        "compare their token counts with that of the first file",
    )
    parser.add_argument(
        "--by",
        metavar="NAME",
        help="group documents by this key (JSON Lines) or column (Parquet), such as language",
    )
    parser.add_argument("--json", action="store_true", help="print JSON, with every count")
    parser.add_argument(
        "--chart", type=Path, metavar="FILE", help="also draw the measures, as .svg or .png"
    )
    add_file_options(parser)
    add_document_options(parser)
    return parser
