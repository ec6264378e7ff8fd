"""Compare this engine's ids with tiktoken's on whole texts, for every built-in encoding.

    make exactness                                             all texts of bench/texts.py
    PYTHONPATH=tests:. python -m bench.engine.exactness FILE…  texts of your own

Prints a line for each text and encoding, and ends with status 1 if any id differs.
"""

from __future__ import annotations

import argparse
import sys

import bytepair_engine
from support.oracle import oracle

from bench.texts import parsed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    _, files = parsed(parser)
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


if __name__ == "__main__":
    sys.exit(main())
