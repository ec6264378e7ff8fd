"""Servers forked from a process that has imported their modules, which takes most of a start.

The supervisor forks its workers in the same state: before any thread, and anything of gRPC. Each
forked server runs `cli.main` with its own arguments, environment, working directory and output.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from select import select

#: A server inherits whether these are ignored.
STOPPING = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)


class Started:
    """A server; the part of `subprocess.Popen` that tests use.

    Attributes:
        pid: Of the process.
        stderr: What it writes to standard error, as text.
    """

    def __init__(self, control: socket.socket, stderr: int) -> None:
        self._control, self._lock = control, threading.Lock()
        self._status: int | None = None
        self.stderr = os.fdopen(stderr, encoding="utf-8")
        self.pid = int(control.recv(20))

    def poll(self) -> int | None:
        """Return the exit status, -N after signal N; None while it runs."""
        return self._ended(0)

    def wait(self, timeout: float) -> int:
        """Wait until it has ended. Raises TimeoutExpired after `timeout` seconds."""
        status = self._ended(timeout)
        if status is None:
            raise subprocess.TimeoutExpired(f"server {self.pid}", timeout)
        return status

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            # It may end now, and its starter reap it at once.
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """Send SIGKILL, unless it has ended."""
        self.send_signal(signal.SIGKILL)

    def _ended(self, timeout: float) -> int | None:
        with self._lock:
            if self._status is None and select([self._control], [], [], timeout)[0]:
                self._status = int(self._control.recv(20))
                self._control.close()
            return self._status


class Starter:
    """The process that forks. It ends by `close`, or with the process that made it."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """Import the modules in an `environment`, whose other variables each server has anew."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control = ours
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "support.starter", str(theirs.fileno())],
                env={**environment, "PYTHONPATH": _path(environment)},
                pass_fds=[theirs.fileno()],
            )

    def start(self, arguments: list[str], environment: dict[str, str]) -> Started:
        """Start a server with the arguments of `bytepair-server`."""
        request = {
            "arguments": arguments,
            "environment": environment,
            "folder": str(Path.cwd()),
            "descriptors": resource.getrlimit(resource.RLIMIT_NOFILE),
            "ignored": [each for each in STOPPING if signal.getsignal(each) is signal.SIG_IGN],
        }
        control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        stderr, written = os.pipe()
        with theirs:
            data = json.dumps(request).encode()
            socket.send_fds(self._control, [data], [theirs.fileno(), written])
        os.close(written)
        return Started(control, stderr)

    def close(self) -> None:
        """End the process; its servers are not ended."""
        self._control.close()
        self._process.kill()
        self._process.wait()


def _path(environment: Mapping[str, str]) -> str:
    """PYTHONPATH with this folder's parent behind it."""
    given = environment.get("PYTHONPATH")
    return os.pathsep.join([*([given] if given else []), str(Path(__file__).parents[1])])


def _next_server(control: socket.socket) -> list[str]:
    """Fork for each request, and return its arguments in the forked process."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the parents of servers
    while True:
        data, descriptors, _, _ = socket.recv_fds(control, 1 << 20, 2)
        if not data:
            os._exit(0)
        if os.fork() == 0:
            break
        for descriptor in descriptors:
            os.close(descriptor)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    control.close()
    status = socket.socket(fileno=descriptors[0])
    request = json.loads(data)
    pid = os.fork()
    if pid:
        os.close(descriptors[1])
        status.send(str(pid).encode())
        ended = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        status.send(str(ended).encode())
        os._exit(0)
    status.close()
    null = os.open(os.devnull, os.O_RDWR)
    for number, target in ((0, null), (1, null), (2, descriptors[1])):
        os.dup2(target, number)
    os.closerange(3, max(null, *descriptors) + 1)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    resource.setrlimit(resource.RLIMIT_NOFILE, request["descriptors"])
    for number in STOPPING:
        usual = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
        signal.signal(number, signal.SIG_IGN if number in request["ignored"] else usual)
    return list(request["arguments"])


def main() -> int:
    """Run as a server whenever one is requested on the socket whose descriptor is the argument."""
    os.environ["GRPC_VERBOSITY"] = "NONE"  # as `cli.main` sets it before the imports
    from bytepair_server import cli, command  # noqa: F401

    sys.argv[1:] = _next_server(socket.socket(fileno=int(sys.argv[1])))
    return cli.main()


if __name__ == "__main__":
    sys.exit(main())
