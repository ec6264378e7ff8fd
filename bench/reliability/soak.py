"""Mixed load with faults for an hour: do memory, threads or descriptors grow?

    make soak                 an hour
    make soak MINUTES=15

Each minute, after its load has paused, prints memory, threads, descriptors and open streams of the
server's processes, and their peak memory in that minute. A round has one minute for each attack. At
the end the last round is compared with the second, because the first one fills caches and the heap.
Fewer than three rounds are not compared, and the command says so.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import signal
import statistics
import subprocess
import sys
import threading
from contextlib import suppress
from time import monotonic, sleep

import grpc
from bytepair.v1 import tokenizer_pb2
from bytepair_client import TokenizerClient, TokenizerError
from support.hostile import ATTACKS
from support.serving import RunningServer

from bench.reliability.watch import (
    COUNT,
    ENCODING,
    TEXT,
    bystanders,
    descriptors_of,
    memory_of,
    threads_of,
    tree,
)

#: Maximum growth of the median from the second round to the last, as a share.
ALLOWED = {"MiB": 0.10, "threads": 0.0, "descriptors": 0.0, "streams": 0.0}
#: Maximum memory of a server with two workers and one encoding during any attack.
MAX_MIB = 512


def mixed(target: str, over: threading.Event, seed: int) -> None:
    """Make calls of every kind and size; cancel some, and abandon some streams."""
    rng = random.Random(seed)
    with TokenizerClient(target, encoding=ENCODING, timeout=20) as client:
        while not over.is_set():
            kind = rng.randrange(6)
            text = TEXT * rng.choice((1, 1, 1, 20, 500))
            with suppress(TokenizerError, grpc.RpcError):
                if kind == 0:
                    assert client.count(TEXT) == COUNT
                elif kind == 1:
                    ids = client.encode(text)
                    assert client.decode(ids) == text
                elif kind == 2:
                    client.count_batch([TEXT] * rng.randrange(50))
                elif kind == 3:
                    assert "".join(client.decode_stream(iter(client.encode(TEXT)))) == TEXT
                elif kind == 4:
                    deltas = client.decode_stream(itertools.cycle([15339, 1917]))
                    for _ in range(rng.randrange(1, 50)):
                        next(deltas)
                    deltas.close()
                else:
                    with TokenizerClient(target, encoding=ENCODING, timeout=0.01) as hasty:
                        hasty.encode(text)
            sleep(0.005)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=60)
    until = monotonic() + 60 * parser.parse_args().minutes
    rows: list[tuple[float, int, int, int]] = []
    peak = 0.0
    names = itertools.cycle(ATTACKS)
    flags = ("--builtin-encodings", ENCODING, "--log-level", "error", "--workers", "2")
    with (
        RunningServer(*flags, "--log-level", "info") as server,
        bystanders(server.target, [server.pid]) as seen,
    ):
        print(
            "| minute | MiB | at most | threads | descriptors | streams | calls | failed | attack |"
        )
        print("|---:|---:|---:|---:|---:|---:|---:|---:|---|", flush=True)
        minute = 0
        while monotonic() < until:
            minute += 1
            over = threading.Event()
            load = [
                threading.Thread(target=mixed, args=(server.target, over, 10 * minute + each))
                for each in range(3)
            ]
            for thread in load:
                thread.start()
            name = next(names)
            attack = [sys.executable, "-m", "bench.reliability.attack", name, server.target, "20"]
            subprocess.run(attack, stdout=subprocess.DEVNULL, timeout=120, check=True)
            if minute % 5 == 0:
                os.kill(tree(server.pid)[1], signal.SIGKILL)
            sleep(25)
            over.set()
            for thread in load:
                thread.join(60)
            sleep(10)  # connections that were left are closed, workers replaced
            streams = int(server.metric("bytepair_open_streams"))
            pid = server.pid
            row = (memory_of(pid) / 2**20, threads_of(pid), descriptors_of(pid), streams)
            rows.append(row)
            most, seen.peak_bytes = seen.peak_bytes / 2**20, 0
            peak = max(peak, most)
            shown = f"| {minute} | {row[0]:.0f} | {most:.0f} | {row[1]} | {row[2]} | {row[3]} "
            print(shown + f"| {seen.calls} | {len(seen.failed)} | {name} |", flush=True)
        request = tokenizer_pb2.CountRequest(encoding=ENCODING, text=TEXT)
        assert server.stub.Count(request).count == COUNT
    grew = peak > MAX_MIB
    print(f"\nMiB at most: {peak:.0f}, allowed {MAX_MIB}")
    a_round = len(ATTACKS)
    if len(rows) < 3 * a_round:
        print(f"too short to tell growth, which takes {3 * a_round} minutes")
    else:
        for index, (what, allowed) in enumerate(ALLOWED.items()):
            before = statistics.median(row[index] for row in rows[a_round : 2 * a_round])
            after = statistics.median(row[index] for row in rows[-a_round:])
            slack = 4 if what in ("threads", "descriptors") else 0
            flat = after <= before * (1 + allowed) + slack
            grew |= not flat
            print(f"{what}: {before:.0f} in the second round, {after:.0f} in the last")
    print(f"{seen.calls} calls of others, {len(seen.failed)} failed, {seen.wrong} wrong")
    for failure in seen.failed[:3]:
        print(f"  {failure}", file=sys.stderr)
    return 1 if grew or seen.wrong or seen.failed else 0


if __name__ == "__main__":
    sys.exit(main())
