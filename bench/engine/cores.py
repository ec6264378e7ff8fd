"""What do several cores give one large text? One thread and two in turns, on an idle machine.

    make bench-engine                                    texts of 10 MB
    python bench/engine/cores.py [--megabytes 10] [FILE…]

The corpora are looked for in $BYTEPAIR_CORPORA, or in ../shared/corpora beside the repository; each
is repeated to the size. Ids are compared first. Prints the time that one thread takes, and the
median of what two gain: by the clock, so that other work on the machine spoils it.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

from bytepair_engine import Encoding, get_encoding

REPOSITORY = Path(__file__).resolve().parents[2]
NAME = "o200k_base"
ROUNDS = 7

Work = Callable[[Encoding, str], object]

WORK: dict[str, Work] = {
    "list": lambda encoding, text: encoding.encode_ordinary(text),
    "array": lambda encoding, text: encoding.encode_array(text, disallowed_special=()),
    "packed": lambda encoding, text: encoding.encode_packed(text, disallowed_special=()),
    "count": lambda encoding, text: encoding.count(text, disallowed_special=()),
}


def main() -> int:
    """Compare, measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=float, default=10)
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="UTF-8 texts")
    arguments = parser.parse_args()
    files = arguments.files or corpora()
    if not files:
        parser.error("no texts: name files, or set BYTEPAIR_CORPORA to a folder of *.txt")
    one, two = (get_encoding(NAME, backend="native", threads=threads) for threads in (1, 2))
    print(f"{NAME}, {os.cpu_count()} cores: ms on one thread, and how much faster two are")
    print(f"{'':24}" + "".join(f"{name:>16}" for name in WORK))
    for file in files:
        unit = file.read_text(encoding="utf-8")
        text = unit * (int(arguments.megabytes * 1e6) // len(unit.encode()) + 1)
        if any(work(one, text) != work(two, text) for work in WORK.values()):
            sys.exit(f"{file.name}: two threads give other ids")
        cells = [figures([one, two], work, text) for work in WORK.values()]
        print(f"{file.stem:24}" + "".join(f"{ms:9.1f}{gain:6.2f}x" for ms, gain in cells))
    return 0


def figures(encodings: list[Encoding], work: Work, text: str) -> tuple[float, float]:
    """Milliseconds of the first, and how many times as fast the second is."""
    taken: list[list[float]] = [[] for _ in encodings]
    for _ in range(ROUNDS):
        for encoding, seconds in zip(encodings, taken, strict=True):
            start = time.perf_counter()
            work(encoding, text)
            seconds.append(time.perf_counter() - start)
    gain = statistics.median(one / two for one, two in zip(*taken, strict=True))
    return statistics.median(taken[0]) * 1e3, gain


def corpora() -> list[Path]:
    """The texts of the corpora folder; none if there is no such folder."""
    folder = os.environ.get("BYTEPAIR_CORPORA", REPOSITORY.parent / "shared" / "corpora")
    return sorted(Path(folder).glob("*.txt"))


if __name__ == "__main__":
    sys.exit(main())
