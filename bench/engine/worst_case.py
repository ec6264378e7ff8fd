"""What does the worst text cost? Time per byte, and memory, of texts that were made to be slow.

    make bench-worst-case                          up to 100 MB of each: half an hour
    make bench-worst-case MEGABYTES=16             less of it
    make bench-worst-case SHAPES="spaces digits"   some of the shapes

Counts each shape with cl100k_base on one thread, in sizes that double up to the largest. Prints the
nanoseconds of CPU time per byte at the largest size, the largest factor of a doubling, and the cost
relative to English prose that the process sees for the first and for the third time. Then the peak
memory of encoding beyond that of the text, each in a new process. Ends with status 1 if a doubling
costs more than 2.3 times, a shape more than 50 times new English, or memory more than
docs/performance.md says. English prose is FILE, or the first english_*.txt of bench/texts.py.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import bytepair_engine
from bytepair_engine import Encoding
from support.worst_texts import shapes

from bench.texts import NO_TEXTS, corpora

NAME = "cl100k_base"
MAX_GROWTH = 2.3
MAX_BESIDE_ENGLISH = 50.0
#: Maximum peak memory beyond that of the text, for each byte of its UTF-8. The worst case has a
#: token for each byte: 4 bytes for its id while a pre-token is merged, 4 in the core's list, and 4
#: in the array or 8 in Python's list.
MAX_MEMORY = {"count": 5.0, "encode_array": 13.0, "encode": 18.0}
#: Minimum size of a text: a smaller one takes too little time to be measured.
MIN_BYTES = 3_000_000
#: A text that takes longer is counted only once.
MAX_SECONDS = 5.0
#: Minimum size for the peak memory: that of a smaller text is below the peak of loading.
MIN_MEGABYTES_FOR_MEMORY = 64

#: Prints by how much the process's peak memory grew while one text was processed. It reads Linux's
#: figure of this process, because `ru_maxrss` starts with the peak of the parent.
MEMORY = """
import re, sys
from pathlib import Path
from bytepair_engine import get_encoding
def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) * 1024
unit, size, call = sys.stdin.buffer.read().decode(), int(sys.argv[1]), sys.argv[2]
encode = getattr(get_encoding(%r, threads=1), call)
encode(unit[:1000], disallowed_special=())
text = unit * (size // len(unit.encode()) + 1)
before = peak()
kept = encode(text, disallowed_special=())
print(peak() - before)
"""


def main() -> int:
    """Measure and print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=100, help="the largest size")
    parser.add_argument("--only", nargs="*", metavar="SHAPE", help="the shapes of these names")
    parser.add_argument("--english", type=Path, metavar="FILE")
    parser.add_argument("--skip", choices=("time", "memory"), help="one of the two tables")
    arguments = parser.parse_args()
    encoding = bytepair_engine.get_encoding(NAME, backend="native", threads=1)
    units = shapes(encoding)
    if arguments.only:
        units = {name: units[name] for name in arguments.only}
    missed = 0
    if arguments.skip != "time":
        english = arguments.english or next(
            (file for file in corpora() if file.name.startswith("english_")), None
        )
        if english is None:
            parser.error(NO_TEXTS)
        prose = english.read_text(encoding="utf-8")
        missed += over_time(encoding, units, prose, arguments.megabytes)
    if arguments.skip != "memory":
        missed += over_memory(units, arguments.megabytes)
    return int(missed > 0)


def over_time(encoding: Encoding, units: dict[str, str], prose: str, megabytes: int) -> int:
    """Print what each shape costs. Returns how many exceed their bound."""
    cold, _, warm = (seconds(encoding, prose) * 1e9 / len(prose.encode()) for _ in range(3))
    print(f"English prose: {cold:.1f} ns/byte when new, {warm:.1f} when seen before")
    print(f"\n{'':28}{'ns/byte':>9}{'doubling':>10}{'x new':>8}{'x seen':>8}")
    missed = 0
    for name, unit in units.items():
        cost, growth = measured(encoding, unit, megabytes)
        bad = growth > MAX_GROWTH or cost > MAX_BESIDE_ENGLISH * cold
        missed += bad
        figures = f"{cost:9.1f}{growth:10.2f}{cost / cold:8.1f}{cost / warm:8.1f}"
        print(f"{name:28}{figures}{'   over the bound' if bad else ''}", flush=True)
    return missed


def over_memory(units: dict[str, str], megabytes: int) -> int:
    """Print the peak memory of each shape. Returns how many exceed their bound."""
    missed = 0
    print(f"\npeak memory beyond the text, for each byte of it\n{'':28}", end="")
    print("".join(f"{call:>14}" for call in MAX_MEMORY))
    for name, unit in units.items():
        peaks = {call: memory(unit, megabytes, call) for call in MAX_MEMORY}
        bad = any(peaks[call] > bound for call, bound in MAX_MEMORY.items())
        missed += bad
        figures = "".join(f"{multiple:14.1f}" for multiple in peaks.values())
        print(f"{name:28}{figures}{'   over the bound' if bad else ''}", flush=True)
    return missed


def measured(encoding: Encoding, unit: str, megabytes: int) -> tuple[float, float]:
    """Return the nanoseconds per byte at the largest size, and the largest factor of a doubling."""
    times: list[float] = []
    size = megabytes * 1_000_000
    while size >= MIN_BYTES:
        text = of_size(unit, size)
        times.append(fastest(encoding, text))
        size //= 2
    growth = max((whole / half for whole, half in pairwise(times)), default=0.0)
    return times[0] * 1e9 / (megabytes * 1_000_000), growth


def fastest(encoding: Encoding, text: str) -> float:
    """Return the shortest of three times, or of as many as fit into MAX_SECONDS."""
    times = [seconds(encoding, text)]
    while len(times) < 3 and sum(times) < MAX_SECONDS:
        times.append(seconds(encoding, text))
    return min(times)


def of_size(unit: str, size: int) -> str:
    """Repeat the unit to about `size` bytes of UTF-8."""
    return unit * (size // len(unit.encode()) + 1)


def seconds(encoding: Encoding, text: str) -> float:
    """Return the CPU time of counting the text."""
    start = time.process_time()
    encoding.count(text, disallowed_special=())
    return time.process_time() - start


def memory(unit: str, megabytes: int, call: str) -> float:
    """Return by how many bytes the peak memory of a new process grows for each byte of the text."""
    size = max(megabytes, MIN_MEGABYTES_FOR_MEMORY) * 1_000_000
    done = subprocess.run(
        [sys.executable, "-c", MEMORY % NAME, str(size), call],
        input=unit.encode(),
        capture_output=True,
        check=True,
        timeout=1200,
    )
    return int(done.stdout) / size


if __name__ == "__main__":
    sys.exit(main())
