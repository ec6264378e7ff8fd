"""Time, processor time and memory of counting the pre-tokens of a corpus: on processes of this
machine, on Ray, and on Spark where it is installed (pip install pyspark pandas; it needs Java).

Memory is the peak of all processes together; shared pages are counted once (Linux).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import uuid
from importlib.util import find_spec
from pathlib import Path

from bench.corpus.partitions import partitions
from bench.texts import REPOSITORY

_MARK = "BENCH_CORPUS_RUN"
_RUN = "import sys; from bytepair_client._cli import main; sys.exit(main())"
_TICKS = os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--partitions", type=int, default=16)
    parser.add_argument("--workers", default="2")
    parser.add_argument("--encode", action="store_true", help="measure encode and count too")
    parser.add_argument(
        "--only", nargs="+", metavar="RUN", help="some of the lines, by their names"
    )
    args = parser.parse_args()
    corpus = str(partitions(args.megabytes, args.partitions))
    (REPOSITORY / "build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=REPOSITORY / "build") as folder:
        bytepair = [sys.executable, "-c", _RUN, "corpus"]
        counting = [*bytepair, "count-pretokens", corpus, "--pattern", "gpt2"]
        counting += ["--workers", args.workers]
        encoding = [corpus, "--encoding", "o200k_base", "--disallowed-special", "as-text"]
        encoding += ["--workers", args.workers]
        runs = {
            "processes": [*counting, "--output", f"{folder}/processes"],
            "Ray": [*counting, "--ray", "local", "--output", f"{folder}/ray"],
        }
        if find_spec("pyspark") is not None:
            spark = [sys.executable, "-m", "bench.corpus.spark"]
            runs["Spark"] = [*spark, corpus, f"{folder}/spark", args.workers]
        if args.encode:
            for task in ("encode", "count"):
                runs[task] = [*bytepair, task, *encoding, "--output", f"{folder}/{task}"]
        print(f"{args.megabytes} MB, {args.workers} workers: seconds, CPU seconds, MB of memory")
        for name, command in runs.items():
            if args.only and name not in args.only:
                continue
            seconds, cpu, memory = run(command)
            print(f"  {name:10} {seconds:8.1f} {cpu:8.1f} {memory:8.0f}", flush=True)


def run(command: list[str]) -> tuple[float, float, float]:
    """Run a command and measure all of its processes."""
    mark = uuid.uuid4().hex
    cpu: dict[int, float] = {}
    peak, start = 0.0, time.monotonic()
    with subprocess.Popen(
        command, cwd=REPOSITORY, env=os.environ | {_MARK: mark}, stdout=subprocess.DEVNULL
    ) as process:
        while process.poll() is None:
            memory = 0.0
            for folder in Path("/proc").glob("[0-9]*"):
                try:
                    if mark.encode() not in (folder / "environ").read_bytes():
                        continue
                    rollup = (folder / "smaps_rollup").read_text()
                    fields = (folder / "stat").read_text().rpartition(")")[2].split()
                except OSError:  # it ended meanwhile
                    continue
                pss = next(line for line in rollup.splitlines() if line.startswith("Pss:"))
                memory += int(pss.split()[1]) / 1000
                cpu[int(folder.name)] = (int(fields[11]) + int(fields[12])) / _TICKS
            peak = max(peak, memory)
            time.sleep(0.1)
        seconds = time.monotonic() - start
    if process.returncode:
        raise SystemExit(f"{command}: ended with {process.returncode}")
    return seconds, sum(cpu.values()), peak


if __name__ == "__main__":
    main()
