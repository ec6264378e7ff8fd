"""The fault matrix: faults, and their effect on ordinary callers.

    make reliability

Prints one table; docs/reliability.md has the last one. Each fault has servers of its own, and two
bystanders, which count 1 KiB in a loop with the project's client and its retries.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import sys
from time import monotonic

from bench.reliability.faults import all_faults

HEADER = "| fault | sent | calls of others | failed | wrong or lost | p99 | worst | peak memory | |"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", help="Faults whose name holds this.", default="")
    only = parser.parse_args().only
    began, bad = monotonic(), 0
    print(f"{datetime.date.today()}, {platform.machine()}, {os.cpu_count()} cores\n")
    print(HEADER)
    print("|---|---|---:|---:|---:|---:|---:|---:|---|")
    for name, fault in all_faults():
        if only not in name:
            continue
        row = fault()
        seen = row.seen
        bad += len(seen.failed) + seen.wrong + row.lost
        print(
            f"| {row.fault} | {row.sent} | {seen.calls} | {len(seen.failed)} | "
            f"{seen.wrong + row.lost} | {seen.percentile_ms(99):.0f} ms | {seen.worst_ms:.0f} ms | "
            f"{seen.peak_bytes / 2**20:.0f} MiB | {row.note} |",
            flush=True,
        )
        for failure in seen.failed[:2]:
            print(f"  {failure}", file=sys.stderr)
    print(f"\n{monotonic() - began:.0f} s")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
