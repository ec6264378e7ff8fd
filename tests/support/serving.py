"""A real server in a separate process, on free ports of loopback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from itertools import islice
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Final, Self
from urllib.error import HTTPError
from urllib.request import urlopen

import grpc
from bytepair.v1 import tokenizer_pb2_grpc
from prometheus_client.parser import text_string_to_metric_families

from support.starter import Started, Starter

#: A start takes a second or two; the rest is for a busy machine.
START_SECONDS = 60.0

_PREFIX = "BYTEPAIR_"
#: The transport of the servers in tests, set by `pytest --transport`.
transport = "auto"
#: Processes that fork servers, by the PYTHONPATH that they have imported the modules with; None
#: starts each server by its command, as benchmarks do.
starters: dict[str | None, Starter] | None = None
#: A PYTHONPATH with which servers run without the core, and else as without it.
WITHOUT_CORE: Final = os.pathsep.join(
    filter(None, (str(Path(__file__).with_name("without_core")), os.environ.get("PYTHONPATH")))
)
#: Flags that override any variable or configuration file of a test.
_FLAGS = {
    "--grpc-address": "127.0.0.1:0",
    "--http-address": "127.0.0.1:0",
    "--log-level": "debug",
    "--workers": "1",
}


def command(*arguments: str) -> list[str]:
    """Return the command line of `bytepair-server` with arguments."""
    return [sys.executable, "-m", "bytepair_server.cli", *arguments]


def clean_environment(**variables: str) -> dict[str, str]:
    """Return this process's environment without settings of a server, and with `variables`."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(_PREFIX)}
    return kept | variables


def _start(arguments: list[str], environment: dict[str, str]) -> subprocess.Popen[str] | Started:
    """Start `bytepair-server`, with a pipe for standard error."""
    path = environment.get("PYTHONPATH")
    # Any other path has a module that changes the start.
    if starters is not None and path in (os.environ.get("PYTHONPATH"), WITHOUT_CORE):
        if path not in starters:
            starters[path] = Starter(environment)
        return starters[path].start(arguments, environment)
    return subprocess.Popen(
        command(*arguments),
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )


def run_to_end(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the server's command until it ends, for servers that cannot start."""
    return subprocess.run(
        command(*arguments),
        env=clean_environment(**variables),
        capture_output=True,
        text=True,
        timeout=START_SECONDS,
        check=False,
    )


class RunningServer:
    """A server that is ready when the constructor returns.

    Attributes:
        target: Address of gRPC.
        http: URL of the HTTP port.
        channel: A channel to `target`.
        stub: The stub of the service on `channel`.
    """

    def __init__(
        self,
        *arguments: str,
        environment: dict[str, str] | None = None,
        credentials: grpc.ChannelCredentials | None = None,
    ) -> None:
        """Start `bytepair-server`.

        Args:
            arguments: Arguments in addition to the addresses, the log level and the permission to
                run without the compiled core.
            environment: `BYTEPAIR_*` variables.
            credentials: Credentials of `channel`, for a server with TLS.
        Raises:
            RuntimeError: The server ended, or was not ready in time. The message quotes its output.
        """
        own = {"--transport": transport, **_FLAGS}
        flags = [part for pair in own.items() for part in pair if pair[0] not in arguments]
        self._lines: list[str] = []
        self._changed = threading.Condition()
        self._process = _start(
            [*flags, "--allow-reference-backend", *arguments],
            clean_environment(**(environment or {})),
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        try:
            serving = self.wait_for_log("serving")
        except RuntimeError:
            self._process.kill()
            self.wait()
            raise
        self.target: str = serving["grpc_address"]
        self.http = f"http://{serving['http_address']}"
        self.channel = (
            grpc.insecure_channel(self.target)
            if credentials is None
            else grpc.secure_channel(self.target.replace("127.0.0.1", "localhost"), credentials)
        )
        # Generated without types.
        self.stub = tokenizer_pb2_grpc.TokenizerServiceStub(self.channel)  # type: ignore[no-untyped-call]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def log(self) -> list[dict[str, Any]]:
        """The lines of the log so far."""
        with self._changed:
            return [json.loads(line) for line in self._lines if line.startswith("{")]

    @property
    def raw_log(self) -> str:
        """Everything written to stderr so far."""
        with self._changed:
            return "".join(self._lines)

    def wait_for_log(self, event: str, *, times: int = 1, **values: object) -> dict[str, Any]:
        """Wait until `times` lines have `event` and `values`, and return the last of them.

        Raises:
            RuntimeError: The server ended before, or the time is over.
        """

        def found() -> dict[str, Any] | None:
            lines = (json.loads(line) for line in self._lines if line.startswith("{"))
            said = (
                line
                for line in lines
                if line.get("event") == event and values.items() <= line.items()
            )
            return next(islice(said, times - 1, None), None)

        with self._changed:
            self._changed.wait_for(
                lambda: found() is not None or not self._reader.is_alive() or self._ended(),
                START_SECONDS,
            )
            line = found()
        if line is None:
            raise RuntimeError(f"the server never said {event!r}:\n{self.raw_log}")
        return line

    def get(self, path: str) -> tuple[int, str]:
        """Get a page of the HTTP port. Returns status and body."""
        try:
            with urlopen(self.http + path, timeout=START_SECONDS) as answer:
                return answer.status, answer.read().decode()
        except HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def metric(self, name: str, **labels: str) -> float:
        """Return the sum of a metric's values with such labels; 0 if there are none yet."""
        lines = self.get("/metrics")[1].splitlines(keepends=True)
        # Parsing all of the page takes longer than the server needs to write it.
        page = "".join(line for line in lines if line.startswith(name))
        return sum(
            sample.value
            for family in text_string_to_metric_families(page)
            for sample in family.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        )

    def wait_for_metric(self, name: str, value: float, **labels: str) -> None:
        """Wait until a metric has a value.

        Raises:
            AssertionError: The metric has another value after START_SECONDS.
        """
        until = monotonic() + START_SECONDS
        while (found := self.metric(name, **labels)) != value:
            assert monotonic() < until, f"{name} is {found}"
            sleep(0.005)

    def terminate(self) -> None:
        """Send SIGTERM without waiting."""
        self._process.send_signal(signal.SIGTERM)

    def wait(self) -> int:
        """Wait until the server has ended, and return its exit status."""
        status = self._process.wait(START_SECONDS)
        self._reader.join(START_SECONDS)
        return status

    def close(self) -> None:
        """Stop the server, and kill it if it does not stop."""
        self.channel.close()
        if self._process.poll() is None:
            self.terminate()
            try:
                self.wait()
            except subprocess.TimeoutExpired:
                self._process.kill()
                self.wait()

    def _ended(self) -> bool:
        return self._process.poll() is not None

    def _read(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr as stderr:
            for line in stderr:
                with self._changed:
                    self._lines.append(line)
                    self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()


def write_config(folder: Path, text: str) -> str:
    """Write a configuration file, and return its path."""
    path = folder / "bytepair.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)
