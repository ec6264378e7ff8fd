"""What does the worst text cost? CPU time per byte for texts that were made to be slow.

    python bench/engine/worst_case.py [--megabytes 16] [FILE]

Prints nanoseconds per byte of counting with cl100k_base at a quarter, a half and all of the size,
what the last doubling multiplied the time by, and the cost beside that of English prose (FILE,
english_literature.txt of the corpora folder unless given).
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from pathlib import Path

import bytepair_engine
from bytepair_engine import Encoding

FOLDER = os.environ.get("BYTEPAIR_CORPORA")
REPOSITORY = Path(__file__).resolve().parents[2]
CORPUS = (Path(FOLDER) if FOLDER else REPOSITORY / "../shared/corpora") / "english_literature.txt"
REPEATED = {
    **{repr(unit): unit for unit in "a^ _Z1日\u0301\n'\t"},
    **{repr(unit): unit for unit in ("ab", "aA", "A中", " \n", ".\n/", "'s", "x ", "and 123/")},
    "日本語": "日本語のテキストです",
    "emoji and joiners": "👩\u200d🚀",
    "a1b2…": "a1b2c3d4e5f6g7h8",
    "alphabet": "abcdefghijklmnopqrstuvwxyz",
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=8)
    parser.add_argument("english", nargs="?", type=Path, metavar="FILE", default=CORPUS)
    arguments = parser.parse_args()
    size = arguments.megabytes * 1_000_000
    encoding = bytepair_engine.get_encoding("cl100k_base", backend="native")
    random_source = random.Random(20261120)
    letters = [t.decode() for t in encoding.token_byte_values() if t.isalpha() and t.isascii()]
    random_source.shuffle(letters)
    units = REPEATED | {
        "tokens without a space": "".join(letters),
        "random letters": "".join(random_source.choices("abcdefghijklmnopqrstuvwxyz", k=200_000)),
        "random Han": "".join(chr(random_source.randrange(0x4E00, 0x9FA6)) for _ in range(99_999)),
    }
    english = cost(encoding, arguments.english.read_text(encoding="utf-8"), size)
    print(f"{'English prose':24} {english:8.2f} ns/byte")
    for name, unit in units.items():
        small, middle, large = (cost(encoding, unit, size // part) for part in (4, 2, 1))
        growth = f"x{2 * large / middle:.2f} when doubled, x{large / english:.1f} English"
        print(f"{name:24} {small:8.2f} {middle:8.2f} {large:8.2f} ns/byte, {growth}")
    return 0


def cost(encoding: Encoding, unit: str, size: int) -> float:
    """Nanoseconds of CPU time for each byte of a text of about `size` bytes."""
    text = unit * (size // len(unit.encode()) + 1)
    start = time.process_time()
    encoding.count(text, disallowed_special=())
    return (time.process_time() - start) * 1e9 / len(text.encode())


if __name__ == "__main__":
    sys.exit(main())
