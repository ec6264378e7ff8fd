"""The texts of the benchmarks: files that the command names, or the corpora.

The corpora are public texts in one folder: `$BYTEPAIR_CORPORA`, or ../shared/corpora beside the
repository.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
CORPORA = Path(os.environ.get("BYTEPAIR_CORPORA") or REPOSITORY.parent / "shared" / "corpora")
NO_TEXTS = "no texts: name files, or set BYTEPAIR_CORPORA to a folder of *.txt"


def corpora() -> list[Path]:
    """The texts of the corpora folder; none if there is no such folder."""
    return sorted(CORPORA.glob("*.txt"))


def english() -> bytes:
    """All English texts of the corpora folder, joined; b"" if there is no such folder."""
    return b"".join(file.read_bytes() for file in sorted(CORPORA.glob("english_*.txt")))


def parsed(parser: argparse.ArgumentParser) -> tuple[argparse.Namespace, list[Path]]:
    """The arguments of a command, and its texts; ends the command if there are none."""
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="UTF-8 texts")
    arguments = parser.parse_args()
    texts: list[Path] = arguments.files or corpora()
    if not texts:
        parser.error(NO_TEXTS)
    return arguments, texts
