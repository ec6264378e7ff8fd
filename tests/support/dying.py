"""Workers that die while they read, and files for their successors."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import sleep


@contextmanager
def killing_its_reader(fifo: Path) -> Iterator[None]:
    """Make a named pipe whose reader is killed, as by the system when memory is exhausted."""
    os.mkfifo(fifo)

    def kill() -> None:
        with fifo.open("wb"):
            while not (found := readers(fifo)):  # /proc shows it with delay
                sleep(0.001)
            (reader,) = found
            os.kill(reader, signal.SIGKILL)

    yield from _meanwhile(kill)


@contextmanager
def feeding(fifo: Path, content: bytes) -> Iterator[None]:
    """Make a named pipe with this content for one reader."""

    def feed() -> None:
        # Opened for both, the pipe keeps its content until it is read. Opened for writing, it could
        # still have had the killed reader, and the content would have been lost.
        with fifo.open("r+b", buffering=0) as pipe:
            pipe.write(content)
            while not readers(fifo):
                sleep(0.001)

    yield from _meanwhile(feed)


def _meanwhile(work: Callable[[], object]) -> Iterator[None]:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    yield
    thread.join(timeout=60)
    assert not thread.is_alive()


def readers(fifo: Path) -> list[int]:
    """Return the other processes that have the file open (Linux)."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        # It may end now, or be of another user. It may also close a file.
        with suppress(OSError):
            for entry in (process / "fd").iterdir():
                with suppress(OSError):
                    if entry.readlink() == fifo.absolute() and process.name != f"{os.getpid()}":
                        found.append(int(process.name))
    return found
