"""The engine's figures in one table; docs/performance.md contains it as it is printed.

    make bench-engine                   all texts of bench/texts.py
    make bench-engine TEXTS="FILE…"     texts of your own

Runs the measurements of `cold`, `languages`, `peers` and `load`, and those of a process after a
fork. A ratio is this engine's speed as a multiple of the other's on the same text: first the median
over the texts, then the worst text. Above 1 this engine is faster.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import platform
import statistics
import sys
import time
from bisect import bisect_left
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import accumulate, zip_longest
from pathlib import Path
from typing import Any

from support.oracle import oracle

from bench.engine import load
from bench.engine.cold import in_child, measure
from bench.engine.engines import NAMES, Work, documents_of, engines_of
from bench.engine.languages import beside_english
from bench.engine.peers import compare
from bench.texts import parsed

CHARACTERS = 10_000
ROUNDS = 7
MEGABYTE = 1_000_000
Row = tuple[str, str, str]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    _, texts = parsed(parser)
    columns = [figures_of(name, texts) for name in NAMES]
    today = f"{datetime.now(tz=UTC):%d %B %Y}"
    print(f"{today}, {platform.machine()}, {os.cpu_count()} cores, {platform.python_version()},")
    print(f"{len(texts)} texts; each ratio is the median over the texts / the worst text.\n")
    print(f"| work | beside | {' | '.join(NAMES)} |\n|---|---|{'---:|' * len(NAMES)}")
    for work, beside in dict.fromkeys(key for column in columns for key in column):
        cells = (column.get((work, beside), "–") for column in columns)
        print(f"| {work} | {beside} | {' | '.join(cells)} |")
    return 0


def figures_of(name: str, texts: Sequence[Path]) -> dict[tuple[str, str], str]:
    """Return the cells of an encoding, by what was measured and what it was compared with."""
    engines = engines_of(name)
    rows = [
        *new_text(name, engines, texts),
        # Before this process sees texts: its children inherit the cache, and a server's parent has
        # seen no text.
        *after_fork(engines, texts),
        *seen_text(name, engines, texts),
        loading(name),
    ]
    return {(work, beside): cell for work, beside, cell in rows}


def new_text(name: str, engines: dict[str, dict[str, Work]], texts: Sequence[Path]) -> list[Row]:
    """Measure lists and counts of text that the process has not seen, 120,000 characters of each
    text, and compare counts of languages, for which there are translations too."""
    rows = []
    for kind in ("list", "count"):
        works = {k: work for k, work in engines[kind].items() if k != "tiktoken"}
        ratios = []
        for path in texts:
            documents = documents_of(path, CHARACTERS, 120_000)
            # In a child: CPython keeps the UTF-8 that an engine asks for.
            answers: list[Any] = in_child(oracle(name).encode_ordinary, documents)[1]
            if kind == "count":
                answers = [len(ids) for ids in answers]
            size = sum(len(document.encode()) for document in documents)
            speeds = measure(works, documents, answers, size / MEGABYTE)
            ours = speeds.pop("ours")
            ratios.append(ours / max(speeds.values(), default=float("nan")))
        rows.append((f"{kind}, new text", "the best peer", cell(ratios)))
    for language, ratio in beside_english(engines, texts).items():
        rows.append((f"count, new text, {language}, MB/s", "English prose", f"{ratio:.2f}"))
    return rows


def seen_text(name: str, engines: dict[str, dict[str, Work]], texts: Sequence[Path]) -> list[Row]:
    """Measure text that the process has seen, 600,000 characters of each, and decoding."""
    ratios: dict[str, list[float]] = {}
    with contextlib.redirect_stdout(io.StringIO()):
        for path in texts:
            compare(name, path.stem, documents_of(path, CHARACTERS, 600_000), engines, ratios)
    wanted = {
        "list / the best": ("list, seen text", "the best peer"),
        "buffer / gigatoken": ("buffer, seen text", "gigatoken (numpy)"),
        "count / the best": ("count, seen text", "the best peer"),
        "decode / the best": ("decode", "the best peer"),
    }
    return [(*wanted[key], cell(found)) for key, found in ratios.items() if key in wanted]


def loading(name: str) -> Row:
    oracle(name)  # Fills the folder that TIKTOKEN_CACHE_DIR then names.
    ratios = []
    for _ in range(ROUNDS):
        ours, theirs = (load.loaded(module, name)[0] for module in ("bytepair_engine", "tiktoken"))
        ratios.append(theirs / ours)
    return ("load in a new process", "tiktoken, cached", f"{statistics.median(ratios):.2f}")


def after_fork(engines: dict[str, dict[str, Work]], texts: Sequence[Path]) -> list[Row]:
    """Measure lists of a worker's first megabyte beside its second, in short documents that
    alternate between all texts, and the memory of that process; then the same of a worker whose
    parent has encoded a text. Each of the two megabytes comes first in half of the processes,
    because one is harder to encode."""
    by_text = [documents_of(path, 2_000, 600_000) for path in texts]
    mixed = [document for turn in zip_longest(*by_text) for document in turn if document]
    sizes = list(accumulate(len(document.encode()) for document in mixed))
    middle, end = (bisect_left(sizes, megabytes * MEGABYTE) for megabytes in (1, 2))
    if end == len(mixed):
        return []
    encode = engines["list"]["ours"]

    def work(halves: Any) -> Any:
        if isinstance(halves, str):
            return encode(halves)
        seconds = []
        for half in halves:
            start = time.process_time()
            for document in half:
                encode(document)
            seconds.append(time.process_time() - start)
        return [*seconds, *resident_and_shared()]

    halves: Any = [mixed[:middle], mixed[middle:end]]
    rows = []
    for parent in ("", ", parent in use"):
        ratios = []
        for order in (halves, halves[::-1]):
            runs: list[Any] = [in_child(work, [order])[1][0] for _ in range(ROUNDS)]
            first, second, resident, shared = map(statistics.median, zip(*runs, strict=True))
            ratios.append(second / first)
        ratio = statistics.geometric_mean(ratios)
        rows.append((f"list, first megabyte after a fork{parent}", "the second", f"{ratio:.2f}"))
        encode("The parent is in use.")
    memory = f"{resident:.0f} / {shared:.0f}"
    rows.append(("memory of that process, MB", "of which shared", memory))
    return rows


def resident_and_shared() -> tuple[float, float]:
    """Return the resident and the shared megabytes of this process; NaN on systems other than
    Linux."""
    try:
        lines = Path("/proc/self/smaps_rollup").read_text(encoding="ascii").splitlines()[1:]
    except OSError:
        return float("nan"), float("nan")
    kilobytes = {line.split()[0]: int(line.split()[1]) for line in lines}
    shared = kilobytes["Shared_Clean:"] + kilobytes["Shared_Dirty:"]
    return kilobytes["Rss:"] / 1e3, shared / 1e3


def cell(ratios: Sequence[float]) -> str:
    return f"{statistics.median(ratios):.2f} / {min(ratios):.2f}"


if __name__ == "__main__":
    sys.exit(main())
