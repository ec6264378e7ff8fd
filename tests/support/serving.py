"""A real server in a process of its own, on ports of loopback that were free."""

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
from typing import Any, Self
from urllib.error import HTTPError
from urllib.request import urlopen

import grpc
from bytepair.v1 import tokenizer_pb2_grpc
from prometheus_client.parser import text_string_to_metric_families

#: A start takes a second or two; this is for a machine that is busy with something else.
START_SECONDS = 60.0

_PREFIX = "BYTEPAIR_"
#: What servers of tests are started with; `pytest --transport` says it.
transport = "auto"
#: Before any variable or configuration file of a test.
_FLAGS = {
    "--grpc-address": "127.0.0.1:0",
    "--http-address": "127.0.0.1:0",
    "--log-level": "debug",
    "--workers": "1",
}


def command(*arguments: str) -> list[str]:
    """The command line of `bytepair-server` with arguments."""
    return [sys.executable, "-m", "bytepair_server.cli", *arguments]


def clean_environment(**variables: str) -> dict[str, str]:
    """This process's environment without the settings of a server, and with `variables`."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(_PREFIX)}
    return kept | variables


def run_to_end(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the server's command until it ends, as it does where it cannot start."""
    return subprocess.run(
        command(*arguments),
        env=clean_environment(**variables),
        capture_output=True,
        text=True,
        timeout=START_SECONDS,
        check=False,
    )


class RunningServer:
    """A server that serves when the constructor returns.

    Attributes:
        target: Where gRPC is served.
        http: The URL of the HTTP port.
        channel: To `target`.
        stub: Of the service, on `channel`.
    """

    def __init__(
        self,
        *arguments: str,
        environment: dict[str, str] | None = None,
        credentials: grpc.ChannelCredentials | None = None,
    ) -> None:
        """Start `bytepair-server`.

        Args:
            arguments: Beside the addresses, the log level and the leave to run without the
                compiled core.
            environment: `BYTEPAIR_*` variables.
            credentials: Of `channel`, for a server that speaks TLS.
        Raises:
            RuntimeError: It ended, or did not serve in time; its output is quoted.
        """
        own = {"--transport": transport, **_FLAGS}
        flags = [part for pair in own.items() for part in pair if pair[0] not in arguments]
        self._lines: list[str] = []
        self._changed = threading.Condition()
        self._process = subprocess.Popen(
            command(*flags, "--allow-reference-backend", *arguments),
            env=clean_environment(**(environment or {})),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
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
        """All that was written to stderr so far."""
        with self._changed:
            return "".join(self._lines)

    def wait_for_log(self, event: str, *, times: int = 1, **values: object) -> dict[str, Any]:
        """Wait until `number` lines have `event` with such values; the last of them.

        Raises:
            RuntimeError: The server ended, or time ran out, before it did.
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
        """Get a page of the HTTP port: status and body."""
        try:
            with urlopen(self.http + path, timeout=START_SECONDS) as answer:
                return answer.status, answer.read().decode()
        except HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def metric(self, name: str, **labels: str) -> float:
        """The value of a metric; 0 if it has no such labels yet."""
        for family in text_string_to_metric_families(self.get("/metrics")[1]):
            for sample in family.samples:
                if sample.name == name and labels.items() <= sample.labels.items():
                    return sample.value
        return 0.0

    def wait_for_metric(self, name: str, value: float) -> None:
        """Wait until a metric has a value.

        Raises:
            AssertionError: It has not come to it in time.
        """
        until = monotonic() + START_SECONDS
        while (found := self.metric(name)) != value:
            assert monotonic() < until, f"{name} is {found}"
            sleep(0.001)

    def terminate(self) -> None:
        """Send SIGTERM and do not wait."""
        self._process.send_signal(signal.SIGTERM)

    def wait(self) -> int:
        """Wait until it ended; its exit status."""
        status = self._process.wait(START_SECONDS)
        self._reader.join(START_SECONDS)
        return status

    def close(self) -> None:
        """Stop it, at once if it does not stop by itself."""
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
    """Write a configuration file; its path."""
    path = folder / "bytepair.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)
