"""How fast is a pattern without a scanner of its own? Compares the regex engine with tiktoken.

    PYTHONPATH=tests:. python -m bench.engine.unknown_patterns          all texts of bench/texts.py
    PYTHONPATH=tests:. python -m bench.engine.unknown_patterns FILE…    texts of your own

The encodings are the built-in ones with an empty group before their pattern, so that it is not
recognised. Ids are compared first. Then the engines take turns, one thread, ids to a list; the
median of the rounds is shown, as MB/s and as a ratio to tiktoken's.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import bytepair_engine
from bytepair_engine import EncodingSpec, load_encoding
from support.oracle import oracle

from bench.texts import parsed

NAMES = ("cl100k_base", "o200k_base")
ROUNDS = 7
MAX_CHARACTERS = 2_000_000

Encode = Callable[[str], list[int]]


def main() -> int:
    """Compare, measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    _, texts = parsed(parser)
    print(
        f"{time.strftime('%Y-%m-%d')}, Python {platform.python_version()}, {os.cpu_count()} cores"
    )
    print(f"{'':40}{'tiktoken':>10}{'unknown':>10}{'ratio':>8}{'scanner':>10}   (MB/s)")
    ratios = []
    for name in NAMES:
        scanned, peer = bytepair_engine.get_encoding(name), oracle(name)
        file = Path(str(files("bytepair_engine") / "data" / f"{name}.tiktoken"))
        pattern = f"(?:){scanned.pattern}"
        unknown = load_encoding(EncodingSpec(name=f"{name}-unknown", file=file, pattern=pattern))
        if unknown.splitter != "regex":
            sys.exit(f"the splitter is {unknown.splitter}")
        encoders: list[Encode] = [
            peer.encode_ordinary,
            unknown.encode_ordinary,
            scanned.encode_ordinary,
        ]
        for file in texts:
            text = file.read_text(encoding="utf-8", errors="replace")[:MAX_CHARACTERS]
            expected = peer.encode_ordinary(text)
            if any(encode(text) != expected for encode in encoders):
                sys.exit(f"{name}: the ids of {file.name} differ")
            theirs, ours, best = (len(text.encode()) / s / 1e6 for s in medians(encoders, text))
            ratios.append(ours / theirs)
            figures = f"{theirs:10.1f}{ours:10.1f}{ours / theirs:8.2f}{best:10.1f}"
            print(f"{name:15}{file.stem:25}{figures}")
    print(f"ratio to tiktoken: median {statistics.median(ratios):.2f}, least {min(ratios):.2f}")
    return 0


def medians(encoders: list[Encode], text: str) -> list[float]:
    """Return the median seconds of each, over alternating rounds."""
    seconds: list[list[float]] = [[] for _ in encoders]
    for _ in range(ROUNDS):
        for encode, elapsed in zip(encoders, seconds, strict=True):
            start = time.perf_counter()
            encode(text)
            elapsed.append(time.perf_counter() - start)
    return [statistics.median(elapsed) for elapsed in seconds]


if __name__ == "__main__":
    sys.exit(main())
