"""How fast is an encoding ready in a new process, beside tiktoken?

    PYTHONPATH=tests:. python -m bench.engine.load

Each measurement is the call of `get_encoding` in a new process, after imports. This engine reads
the table in its wheel, tiktoken its cache folder. The two take turns; the ids of one text are
compared first. Prints medians of CPU time, and the median of the ratios within a round.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys

from support.oracle import oracle

from bench.engine.engines import NAMES

ROUNDS = 11
TEXT = "Ready? 好 1234"

#: Prints the CPU seconds that one load takes, then the ids of a text.
LOAD = """
import sys, time
import {module} as engine
start = time.process_time()
encoding = engine.get_encoding({name!r})
print(time.process_time() - start)
print(encoding.encode({text!r}))
"""


def main() -> int:
    for name in NAMES:
        oracle(name)  # Fills the folder that TIKTOKEN_CACHE_DIR then names.
        elapsed: dict[str, list[float]] = {"bytepair_engine": [], "tiktoken": []}
        for _ in range(ROUNDS):
            answers = {module: loaded(module, name) for module in elapsed}
            if len({ids for _, ids in answers.values()}) > 1:
                sys.exit(f"{name}: the ids differ")
            for module, (seconds, _) in answers.items():
                elapsed[module].append(seconds)
        ours, theirs = elapsed.values()
        ratio = statistics.median(their / our for our, their in zip(ours, theirs, strict=True))
        middle = [statistics.median(seconds) * 1e3 for seconds in (ours, theirs)]
        print(f"{name}: {middle[0]:.1f} ms, tiktoken {middle[1]:.1f} ms, {ratio:.2f} times as fast")
    return 0


def loaded(module: str, name: str) -> tuple[float, str]:
    """Return the CPU seconds of loading in a new process, and the printed ids of the text."""
    done = subprocess.run(
        [sys.executable, "-c", LOAD.format(module=module, name=name, text=TEXT)],
        capture_output=True,
        check=True,
        env=dict(os.environ),
        text=True,
        timeout=60,
    )
    seconds, ids = done.stdout.splitlines()
    return float(seconds), ids


if __name__ == "__main__":
    sys.exit(main())
