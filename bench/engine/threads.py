"""What do two threads encode in the time of one? Independent documents, on two idle cores.

    PYTHONPATH=tests python -m bench.engine.threads

Prints how many times as much two threads count as one does, in the median of some rounds.
"""

from __future__ import annotations

import statistics
import sys
import threading
import time

import bytepair_engine

from bench.engine.engines import NAMES, corpora, documents_of

ROUNDS = 15


def main() -> int:
    for name in NAMES:
        encoding = bytepair_engine.get_encoding(name, backend="native")
        documents = [d for path in corpora() for d in documents_of(path, 100_000, 600_000)]
        if not documents:
            sys.exit("no texts: set BYTEPAIR_CORPORA to a folder of *.txt")

        def work(encoding: bytepair_engine.Encoding, documents: list[str]) -> None:
            for document in documents:
                encoding.count(document, disallowed_special=())

        ratios = []
        for _ in range(ROUNDS):
            times = []
            for count in (1, 2):
                threads = [
                    threading.Thread(target=work, args=(encoding, documents)) for _ in range(count)
                ]
                start = time.perf_counter()
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                times.append(time.perf_counter() - start)
            ratios.append(2 * times[0] / times[1])
        print(f"{name}: two threads do {statistics.median(ratios):.2f} times what one does")
    return 0


if __name__ == "__main__":
    sys.exit(main())
