"""How fast is the engine on text that its process has not seen, beside its peers?

    PYTHONPATH=tests:. python -m bench.engine.cold [FILE…]

Each measurement is one pass over one text in a new process, forked from one that has loaded the
engines. The process encodes some numbers first, so that the cost of an engine's first call does not
count. The engines take turns; medians of CPU time are shown. An engine whose answers differ from
tiktoken's is left out. Prints MB of UTF-8 per second, and this engine's speed as a multiple of the
best peer's.
"""

from __future__ import annotations

import argparse
import os
import pickle
import statistics
import sys
import time
from collections.abc import Sequence
from typing import Any

from bench.engine.engines import NAMES, Work, documents_of, engines_of
from bench.texts import parsed

ROUNDS = 11
NUMBERS = " ".join(str(number) for number in range(3000))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--characters", type=int, default=10_000, help="of each document")
    parser.add_argument("--total", type=int, default=300_000, help="characters of each text")
    arguments, texts = parsed(parser)
    for name in NAMES:
        engines = engines_of(name)
        tiktoken = engines["list"]["tiktoken"]
        for kind in ("list", "count"):
            works = {k: work for k, work in engines[kind].items() if k != "tiktoken"}
            ratios = []
            for path in texts:
                documents = documents_of(path, arguments.characters, arguments.total)
                expected: list[Any] = in_child(tiktoken, documents)[1]
                if kind == "count":
                    expected = [len(ids) for ids in expected]
                size = sum(len(document.encode()) for document in documents)
                speeds = measure(works, documents, expected, size / 1e6)
                best = max(speed for engine, speed in speeds.items() if engine != "ours")
                ratios.append(speeds["ours"] / best)
                shown = "".join(f" {engine} {speed:5.0f}" for engine, speed in speeds.items())
                print(f"{name} {path.stem:22} cold {kind:5}{shown}  x{ratios[-1]:.2f}", flush=True)
            median, worst = statistics.median(ratios), min(ratios)
            print(f"{name} cold {kind} beside the best peer: {median:.2f}, worst {worst:.2f}\n")
    return 0


def measure(
    works: dict[str, Work], documents: Sequence[str], expected: list[object], megabytes: float
) -> dict[str, float]:
    """Return the MB/s of each engine whose answers are the expected ones."""
    times: dict[str, list[float]] = {engine: [] for engine in works}
    for _ in range(ROUNDS):
        for engine, work in works.items():
            seconds, answers = in_child(work, documents)
            # toktok counts batches.
            answers = [a[0] if isinstance(a, list) and engine == "toktok" else a for a in answers]
            if answers == expected:
                times[engine].append(seconds)
            elif engine == "ours":
                sys.exit("the ids differ from tiktoken's")
    return {
        engine: megabytes / statistics.median(seconds)
        for engine, seconds in times.items()
        if len(seconds) == ROUNDS
    }


def in_child(work: Work, documents: Sequence[str]) -> tuple[float, list[object]]:
    """Return the CPU time of one pass in a new process, and its answers; None if the process
    died."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            work(NUMBERS)
            start = time.process_time()
            answers = [work(document) for document in documents]
            seconds = time.process_time() - start
            with os.fdopen(writing, "wb") as pipe:
                pickle.dump((seconds, answers), pipe)
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        data = pipe.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if not data:
        print(f"a child ended with {status} and does not take part")
        return 0.0, []
    seconds, answers = pickle.loads(data)
    return seconds, answers


if __name__ == "__main__":
    sys.exit(main())
