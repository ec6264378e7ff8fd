"""Compare this engine's ids with tiktoken's on whole texts, for every built-in encoding.

    make exactness                                             all texts of the corpora folder
    PYTHONPATH=tests:. python -m bench.engine.exactness FILE…  texts of your own

The corpora are looked for in $BYTEPAIR_CORPORA, or in ../shared/corpora beside the repository.
Prints a line for each text and encoding, and ends with status 1 if any id differs.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import bytepair_engine
from support.oracle import oracle

REPOSITORY = Path(__file__).resolve().parents[2]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="UTF-8 texts")
    files = parser.parse_args().files or corpora()
    if not files:
        parser.error("no texts: name files, or set BYTEPAIR_CORPORA to a folder of *.txt")
    mismatches = tokens = 0
    for name in bytepair_engine.list_encodings():
        encoding, peer = bytepair_engine.get_encoding(name), oracle(name)
        for file in files:
            text = file.read_text(encoding="utf-8", errors="replace")
            ids, expected = encoding.encode_ordinary(text), peer.encode_ordinary(text)
            same = ids == expected and encoding.decode(ids) == text
            same = same and encoding.count(text, disallowed_special=()) == len(ids)
            mismatches += not same
            tokens += len(ids)
            print(f"{'same' if same else 'DIFFERENT':10}{name:15}{len(ids):>10,}  {file.name}")
    total = len(files) * len(bytepair_engine.list_encodings())
    print(f"{total} comparisons, {tokens:,} ids, {mismatches} mismatches")
    return 1 if mismatches else 0


def corpora() -> list[Path]:
    folder = os.environ.get("BYTEPAIR_CORPORA", REPOSITORY.parent / "shared" / "corpora")
    return sorted(Path(folder).glob("*.txt"))


if __name__ == "__main__":
    sys.exit(main())
