"""Helpers of the checks: free ports, processes that run during a block, and waiting."""

import contextlib
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

LOOPBACK = "127.0.0.1"


def free_port(host: str = LOOPBACK) -> int:
    """Return a port of `host` that no process listens on at this moment."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
        return port


def fetch(url: str) -> str:
    """Return the body of a GET.

    Raises:
        OSError: No answer within 5 s, or a status other than 2xx.
    """
    with urllib.request.urlopen(url, timeout=5) as answer:
        body: str = answer.read().decode()
        return body


def until(what: str, done: Callable[[], Any], seconds: float = 60) -> Any:
    """Call `done` until it returns something true, and return that.

    Raises:
        SystemExit: It did not within `seconds`.
    """
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(OSError):
            if result := done():
                return result
        time.sleep(0.2)
    raise SystemExit(f"FAILED: {what} did not happen within {seconds:g} s")


@contextlib.contextmanager
def running(command: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run `command` with its output in `log`, whose end is shown if the block fails.

    The process is ended when the block is left.
    """
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
    try:
        yield process
    except SystemExit:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        print(f"the end of {log.name}:", *lines[-10:], sep="\n  ")
        raise
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
