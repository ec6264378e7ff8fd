"""How much more do two threads count than one? Independent documents, on two idle cores.

    PYTHONPATH=tests:. python -m bench.engine.threads [FILE…]

Prints how many times as much two threads count as one in the same elapsed time: the median of the
rounds in which nothing else used the cores. The second figure does not need idle cores: twice the
CPU time of a document on one thread, divided by its CPU time beside the other thread. Threads that
wait for each other lower only the first figure; shared caches and memory lower both.
"""

from __future__ import annotations

import statistics
import sys
import threading
import time
from pathlib import Path

import bytepair_engine

from bench.engine.engines import NAMES, documents_of
from bench.engine.quiet import quiet_rounds
from bench.texts import NO_TEXTS, corpora

QUIET_ROUNDS = 9
PASSES = 3


def main() -> int:
    texts = [Path(argument) for argument in sys.argv[1:]] or corpora()
    for name in NAMES:
        encoding = bytepair_engine.get_encoding(name, backend="native")
        documents = [d for path in texts for d in documents_of(path, 100_000, 600_000)]
        if not documents:
            sys.exit(NO_TEXTS)
        by_cpu_time: list[float] = []

        def round_(
            encoding: bytepair_engine.Encoding = encoding,
            documents: list[str] = documents,
            by_cpu_time: list[float] = by_cpu_time,
        ) -> float:
            one, two = (seconds(encoding, documents, threads) for threads in (1, 2))
            by_cpu_time.append(4 * one[1] / two[1])
            return 2 * one[0] / two[0]

        by_clock, made = quiet_rounds(round_, QUIET_ROUNDS)
        clock = f"{statistics.median(by_clock):.2f}" if by_clock else "?"
        print(
            f"{name}: two threads do {clock} times what one does ({len(by_clock)} quiet rounds of"
            f" {made}); by CPU time {statistics.median(by_cpu_time):.2f}",
            flush=True,
        )
    return 0


def seconds(
    encoding: bytepair_engine.Encoding, documents: list[str], threads: int
) -> tuple[float, float]:
    """Return the elapsed and the CPU seconds of this many threads, each of which counts all
    documents."""

    def work() -> None:
        for _ in range(PASSES):
            for document in documents:
                encoding.count(document, disallowed_special=())

    running = [threading.Thread(target=work) for _ in range(threads)]
    clock, cpu = time.perf_counter(), time.process_time()
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return time.perf_counter() - clock, time.process_time() - cpu


if __name__ == "__main__":
    sys.exit(main())
