"""How fast is the engine beside its peers? Encode, count and decode, in one run.

    make bench-engine-parts                                     all texts of bench/texts.py
    PYTHONPATH=tests:. python -m bench.engine.peers FILE…         texts of your own
    PYTHONPATH=tests:. python -m bench.engine.peers --characters 1000   small documents

Installed peers take part: tiktoken, gigatoken, quicktok-v1, toktok-rs, splintr-rs. Ids are compared
with tiktoken's first; a peer whose ids differ is left out for that text, which a line reports.
Documents have a fixed number of characters and are encoded one by one. The engines take turns for
several rounds. In each, an engine makes two passes, of which the second counts, so all caches are
warm. Time is the process's CPU time, which a busy machine affects less. Prints medians of MB of
UTF-8 per second, and medians of the ratios within a round; "the best" is the fastest peer on each
text.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import time
from collections.abc import Sequence
from typing import Any

from support.oracle import oracle

from bench.engine.engines import NAMES, Work, documents_of, engines_of
from bench.texts import parsed

ROUNDS = 5


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--characters", type=int, default=10_000, help="of each document")
    parser.add_argument("--total", type=int, default=600_000, help="characters of each text")
    arguments, texts = parsed(parser)
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    for name in NAMES:
        engines = engines_of(name)
        ratios: dict[str, list[float]] = {}
        for path in texts:
            documents = documents_of(path, arguments.characters, arguments.total)
            compare(name, path.stem, documents, engines, ratios)
        print(f"\n{name}: this engine, as a multiple of each (median, worst text)")
        for label, values in ratios.items():
            print(f"  {label:32} {statistics.median(values):6.2f} {min(values):6.2f}")
    return 0


def compare(
    name: str,
    title: str,
    documents: Sequence[str],
    engines: dict[str, dict[str, Work]],
    ratios: dict[str, list[float]],
) -> None:
    """Measure one text and print its lines; add the ratios."""
    expected = [oracle(name).encode_ordinary(document) for document in documents]
    different = {
        engine
        for engine, encode in engines["list"].items()
        if [encode(document) for document in documents] != expected
    }
    if "ours" in different:
        sys.exit(f"{name}, {title}: the ids differ from tiktoken's")
    for engine in different:
        print(f"{name}, {title}: {engine} is left out, its ids differ from tiktoken's")
    size = sum(len(document.encode()) for document in documents)
    print(f"\n{name}, {title}: MB/s warm")
    for kind, works in engines.items():
        items: Sequence[Any] = expected if kind == "decode" else documents
        seconds = in_turns({k: work for k, work in works.items() if k not in different}, items)
        speeds = {engine: size / statistics.median(s) / 1e6 for engine, s in seconds.items()}
        print(
            f"  {kind:8}" + "".join(f" {engine} {speed:6.0f}" for engine, speed in speeds.items())
        )
        beside = {}
        for engine, theirs in seconds.items():
            if engine != "ours":
                ours = zip(theirs, seconds["ours"], strict=True)
                beside[engine] = statistics.median(their / our for their, our in ours)
        if len(beside) > 1:
            beside["the best"] = min(beside.values())
        for engine, ratio in beside.items():
            ratios.setdefault(f"{kind} / {engine}", []).append(ratio)


def in_turns(works: dict[str, Work], items: Sequence[Any]) -> dict[str, list[float]]:
    """Return the CPU time of the second of two passes of each engine, in each round."""
    seconds: dict[str, list[float]] = {engine: [] for engine in works}
    for _ in range(ROUNDS):
        for engine, work in works.items():
            for _ in range(2):
                start = time.process_time()
                for item in items:
                    work(item)
                elapsed = time.process_time() - start
            seconds[engine].append(elapsed)
    return seconds


if __name__ == "__main__":
    sys.exit(main())
