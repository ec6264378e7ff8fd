"""How much faster are several cores on one large text? One thread and two, alternately, on an idle
machine.

    make bench-engine-parts                              texts of 10 MB
    PYTHONPATH=tests:. python -m bench.engine.cores [--megabytes 10] [FILE…]

Each text is repeated to the size. Ids are compared first. Prints the time of one thread, and how
many times as fast two are: medians of elapsed time over the rounds in which nothing else used the
cores; `nan` if there was none.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import sys
import time
from collections.abc import Callable

from bytepair_engine import Encoding, get_encoding

from bench.engine.quiet import quiet_rounds
from bench.texts import parsed

NAME = "o200k_base"
QUIET_ROUNDS = 5
#: Minimum duration of a round, so that the work of other processes in it can be measured.
MIN_SECONDS = 0.25

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
    arguments, files = parsed(parser)
    one, two = (get_encoding(NAME, backend="native", threads=threads) for threads in (1, 2))
    print(f"{NAME}, {os.cpu_count()} cores: ms on one thread, and how much faster two are")
    print(f"{'':24}" + "".join(f"{name:>16}" for name in WORK))
    for file in files:
        unit = file.read_text(encoding="utf-8")
        text = unit * (int(arguments.megabytes * 1e6) // len(unit.encode()) + 1)
        if any(work(one, text) != work(two, text) for work in WORK.values()):
            sys.exit(f"{file.name}: two threads give other ids")
        cells = [figures([one, two], work, text) for work in WORK.values()]
        line = "".join(f"{ms:9.1f}{gain:6.2f}x" for ms, gain in cells)
        print(f"{file.stem:24}{line}", flush=True)
    return 0


def figures(encodings: list[Encoding], work: Work, text: str) -> tuple[float, float]:
    """Return the milliseconds of one thread, and how many times as fast two are; NaN if no round
    was quiet."""
    start = time.perf_counter()
    work(encodings[0], text)
    times = 1 + int(MIN_SECONDS / (time.perf_counter() - start))

    def in_turns() -> list[float]:
        elapsed = [0.0 for _ in encodings]
        for _ in range(times):
            for number, encoding in enumerate(encodings):
                start = time.perf_counter()
                work(encoding, text)
                elapsed[number] += time.perf_counter() - start
        return elapsed

    rounds, _ = quiet_rounds(in_turns, QUIET_ROUNDS)
    if not rounds:
        return math.nan, math.nan
    gain = statistics.median(one / two for one, two in rounds)
    return statistics.median(one for one, _ in rounds) / times * 1e3, gain


if __name__ == "__main__":
    sys.exit(main())
