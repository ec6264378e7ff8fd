"""Streams while replicas are killed: how many break, or return another text.

    PYTHONPATH=tests:. python -m bench.reliability.replicas [STREAMS]

Three servers behind one target are killed and restarted one after the other. Ends with status 1 if
any stream breaks.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from time import monotonic, sleep

from bytepair_client import TokenizerClient
from support.serving import RunningServer

from bench.reliability.watch import ENCODING, TEXT, free_port

STREAMS, AT_ONCE = 1000, 16
#: Each stream takes a second or two, so that most of them lose a replica.
IDS, PAUSE_SECONDS = 300, 0.005
FLAGS = ("--builtin-encodings", ENCODING, "--log-level", "info")


class Replicas:
    """Three servers that are killed in turn.

    Attributes:
        target: Of all of them.
        pids: Of those that run now.
        kills: How many there were.
    """

    def __init__(self) -> None:
        ports = [free_port() for _ in range(3)]
        self.target = "ipv4:" + ",".join(ports)
        self.kills = 0
        self._start = [partial(RunningServer, *FLAGS, "--grpc-address", port) for port in ports]
        self._running = [start() for start in self._start]
        self.pids = [server.pid for server in self._running]

    def kill_until(self, over: threading.Event) -> None:
        """Kill and restart one replica after another."""
        while not over.is_set():
            index = self.kills % 3
            os.kill(self._running[index].pid, signal.SIGKILL)
            self._running[index].close()
            self._running[index] = self._start[index]()
            self.pids[index] = self._running[index].pid
            self.kills += 1
            sleep(0.2)

    def close(self) -> None:
        """Stop all replicas."""
        for server in self._running:
            server.close()


@contextmanager
def killed_in_turn() -> Iterator[Replicas]:
    """Run three servers, and kill one after the other while the block runs."""
    over = threading.Event()
    replicas = Replicas()
    killer = threading.Thread(target=replicas.kill_until, args=(over,))
    killer.start()
    try:
        yield replicas
    finally:
        over.set()
        killer.join()
        replicas.close()


def outcome(client: TokenizerClient, ids: list[int], text: str) -> str:
    """Run one stream; returns its outcome."""

    def slowly() -> Iterator[int]:
        for token_id in ids:
            yield token_id
            sleep(PAUSE_SECONDS)

    try:
        got = "".join(client.decode_stream(slowly(), stop=["\n\n\n never"]))
    except Exception as error:
        return f"broken: {type(error).__name__}"
    return "whole" if got == text else "another text"


def stream(target: str, streams: int) -> Counter[str]:
    """Run a number of streams, several at once; returns their outcomes."""
    with TokenizerClient(target, encoding=ENCODING) as client:
        ids = client.encode(TEXT)[:IDS]
        text = client.decode(ids)
        with ThreadPoolExecutor(AT_ONCE) as threads:
            return Counter(threads.map(lambda _: outcome(client, ids, text), range(streams)))


def main() -> int:
    began = monotonic()
    with killed_in_turn() as replicas:
        outcomes = stream(replicas.target, int(sys.argv[1]) if sys.argv[1:] else STREAMS)
    for name, count in outcomes.most_common():
        print(f"{count} {name}")
    print(f"{replicas.kills} kills in {monotonic() - began:.0f} s")
    return 0 if set(outcomes) == {"whole"} else 1


if __name__ == "__main__":
    sys.exit(main())
