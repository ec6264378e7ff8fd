"""How does the number of different pre-tokens grow with a corpus? Prints the power law.

    python -m bench.corpus.growth

The corpus is that of bench.corpus.measure, and the pattern GPT-2's, as there.
"""

from __future__ import annotations

import argparse
import math

from bytepair_engine.training.counting import Counting, batches
from bytepair_engine.vocabulary.patterns import resolve_pattern

from bench.train.corpus import documents

#: Number of measurements before the last; each is at half the size of the next.
HALVINGS = 4


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=1000)
    megabytes = parser.parse_args().megabytes
    wanted = [megabytes * 1_000_000 >> halving for halving in range(HALVINGS, -1, -1)]
    found: list[tuple[int, int, int]] = []
    with Counting(resolve_pattern("gpt2", "bench")) as counting:
        for texts in batches(documents(megabytes)):
            counting.add(texts)
            # `documents` leaves out the document that would exceed the size.
            if counting.bytes >= wanted[len(found)] * 0.99:
                counts = counting.counts()
                found.append((counting.bytes, len(counts), counts.unique_bytes))
                if len(found) == len(wanted):
                    break
    print("| MB of text | different pre-tokens | their bytes | exponent |\n|---:|---:|---:|---:|")
    before = None
    for size, number, unique in found:
        exponent = "–"
        if before is not None:
            exponent = f"{math.log(number / before[1]) / math.log(size / before[0]):.2f}"
        print(f"| {size / 1e6:,.0f} | {number:,} | {unique:,} | {exponent} |")
        before = size, number


if __name__ == "__main__":
    main()
