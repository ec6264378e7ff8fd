"""Busy streams beside what else is measured: each sends a message as soon as it has an answer.

    python -m bench.server_shape.streams PORT SECONDS

Prints how many answers a second came.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from typing import TypeVar

from bench.streams.http2 import Connection

T = TypeVar("T")
OPEN = 100
#: As long as a message of one id.
MESSAGE = b"\x12\x02\xeb\x77"


def messages_per_second(
    port: int, core: str, seconds: int, beside: Callable[[], T]
) -> tuple[float, T]:
    """Keep the streams busy from a process of their own.

    Args:
        port: Where to.
        core: Of that process.
        seconds: How long.
        beside: What is done meanwhile; it should take a little less.
    Returns:
        Messages answered a second, and what `beside` gave.
    """
    command = ["taskset", "-c", core, sys.executable, "-m", "bench.server_shape.streams"]
    with subprocess.Popen(
        [*command, str(port), str(seconds)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()  # they are open
        found = beside()
        return float(process.stdout.readline()), found


def main(port: int, seconds: float) -> None:
    """Keep them busy for so long."""
    connection = Connection(port)
    for _ in range(OPEN):
        connection.send(connection.open("/bench.Bench/Echo"), MESSAGE)
    answered = 0
    print("open", flush=True)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for stream, message in connection.receive():
            answered += 1
            connection.send(stream, message)
    print(answered / seconds, flush=True)
    connection.close()


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
