"""Time and memory of training beside its peers.

    make bench-train                            10 and 100 MB, 8k and 32k: an hour
    python -m bench.train.measure --sizes 10    a smaller run

Each trainer runs in a new process on the same documents, alternately, several times. First the
tables are compared if the tie rules are equal: those of tokenizers with ours, and those of rustbpe
with ours when the ids of bytes are their values. The tables of others differ: bpeasy counts the
first pre-token of a pair once, however often it occurs, and sentencepiece merges characters within
words. Time is elapsed time, on all cores; CPU time is that of the process; memory is the peak
beyond what the process had after reading the documents.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from bench.texts import REPOSITORY
from bench.train.corpus import documents
from bench.train.trainers import SAME, TRAINERS

Found = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[10, 100], help="megabytes")
    parser.add_argument("--vocabularies", type=int, nargs="+", default=[8192, 32768])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit", type=int, default=600, help="seconds for one training")
    parser.add_argument("--trainers", nargs="+", choices=TRAINERS, default=list(TRAINERS))
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        one(*args.one)
        return
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    for megabytes in args.sizes:
        documents(megabytes)
        for vocabulary in args.vocabularies:
            cell(megabytes, vocabulary, args.trainers, args.rounds, args.limit)


def cell(megabytes: int, vocabulary: int, names: list[str], rounds: int, limit: int) -> None:
    """Measure and print one size of text and vocabulary."""
    results: dict[str, list[Found]] = {name: [] for name in names}
    for number in range(rounds):
        for name in names:
            if len(results[name]) == number:
                one_more = run(name, megabytes, vocabulary, limit)
                results[name] += [one_more] if one_more else []
    print(f"\n{megabytes} MB, {vocabulary} tokens: seconds, CPU seconds, MB of memory, times ours")
    ours = results.get("bytepair", [])
    for name, found in results.items():
        if not found:
            print(f"  {name:14} not finished in {limit} s, or failed")
            continue
        wall, cpu, memory = (
            statistics.median(item[key] for item in found) for key in ("wall", "cpu", "memory")
        )
        ratios = [a["wall"] / b["wall"] for a, b in zip(found, ours, strict=False)]
        ratio = f"{statistics.median(ratios):8.1f}" if ratios else ""
        same = ""
        if name in SAME and ours:
            key = "by_value" if name == "rustbpe" else "table"
            same = " identical" if found[0]["table"] == ours[0][key] else " DIFFERENT"
        print(f"  {name:14} {wall:8.2f} {cpu:8.2f} {memory:8.0f} {ratio}{same}", flush=True)


def run(name: str, megabytes: int, vocabulary: int, limit: int) -> Found | None:
    """Train once in a new process; None if that fails or takes too long."""
    command = [sys.executable, "-m", "bench.train.measure"]
    try:
        done = subprocess.run(
            [*command, "--one", name, str(megabytes), str(vocabulary)],
            cwd=REPOSITORY,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=limit,
            check=True,
        )
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError):
        return None
    found: Found = json.loads(done.stdout.splitlines()[-1])
    return found


def one(name: str, megabytes: str, vocabulary: str) -> None:
    """Train once, in this process, and print the measures as JSON."""
    texts, size = documents(int(megabytes)), int(vocabulary)
    Path("/proc/self/clear_refs").write_text("5")  # reset the peak (Linux)
    before = memory("VmRSS")
    start, cpu = time.perf_counter(), time.process_time()
    table = TRAINERS[name](texts, size)
    found: Found = {
        "wall": time.perf_counter() - start,
        "cpu": time.process_time() - cpu,
        "memory": memory("VmHWM") - before,
        "table": digest(table),
    }
    if name == "bytepair":
        found["by_value"] = digest(SAME["rustbpe"](texts, size))
    print("\n" + json.dumps(found))


def memory(field: str) -> float:
    """A field of this process's status, in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1000 for line in lines if line.startswith(field))


def digest(table: list[bytes] | None) -> str:
    return hashlib.sha256(repr(table).encode()).hexdigest()


if __name__ == "__main__":
    main()
