"""Servers on a core of their own, h2load on another: requests per second, and their cost."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from prometheus_client.parser import text_string_to_metric_families

from bench.service.shapes import ENCODING, Shape

#: Cores of the servers and of the load. The system's own work is on the first one too.
SERVER_CORE, LOAD_CORE = 1, 0
WARM_SECONDS = 0.3
#: Maximum time for an answer; a slower server is not measured.
MAX_SECONDS = 2.0
#: Maximum time that a load runs on after it was stopped.
MAX_LOADED_SECONDS = 60.0
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Server:
    """A running server.

    Attributes:
        pid: Its process, or the one whose children answer.
        port: Of 127.0.0.1; 0 where it has a Unix socket instead.
        is_http: It is called with JSON over HTTP/1.1.
        pages: Where its metrics are, if it shows them; "" if not.
        path: Its Unix socket; "" if it has none.
        prefix: Of the paths of its RPCs.
    """

    pid: int
    port: int
    is_http: bool = False
    pages: str = ""
    path: str = ""
    prefix: str = "/bytepair.v1.TokenizerService/"

    @property
    def pids(self) -> list[int]:
        """The ids of all its processes."""
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text()
        return [self.pid, *map(int, children.split())]

    def cpu_seconds(self) -> float:
        """The CPU time of its processes so far."""
        total = 0
        for pid in self.pids:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            total += int(fields[11]) + int(fields[12])
        return total / _TICKS

    def peak_kib(self) -> int:
        """The sum of the peak memory of its processes, which may be of different moments."""
        lines = [
            line
            for pid in self.pids
            for line in Path(f"/proc/{pid}/status").read_text().splitlines()
        ]
        return sum(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))

    def forget_peak(self) -> None:
        """Reset `peak_kib` to what is resident now (proc(5): clear_refs)."""
        for pid in self.pids:
            Path(f"/proc/{pid}/clear_refs").write_text("5")

    def ended(self) -> Counter[str]:
        """Return how many calls have ended, by status code. Only for a server with metrics. It is
        needed because h2load counts every answer of gRPC as a success."""
        with urllib.request.urlopen(f"http://{self.pages}/metrics") as page:
            families = text_string_to_metric_families(page.read().decode())
        codes: Counter[str] = Counter()
        for family in families:
            for sample in family.samples:
                if sample.name == "bytepair_requests_total":
                    codes[sample.labels["code"]] += int(sample.value)
        return codes


class Stalled(Exception):
    """A server answered nothing within its time."""


@dataclass(frozen=True)
class Figures:
    """The result of one measurement: times in microseconds, peak memory in KiB."""

    per_second: float
    cpu: float
    median: float
    high: float
    peak_kib: int


@contextmanager
def service(
    workers: int,
    core: int | None,
    *,
    encodings: Sequence[str] = (ENCODING,),
    shows_metrics: bool = False,
    command: Sequence[str] = ("-m", "bytepair_server.cli"),
    flags: Sequence[str] = (),
    python: str = sys.executable,
) -> Iterator[Server]:
    """Start the real server, or that of another `python`. Its encodings are loaded on return."""
    http = "127.0.0.1:0" if shows_metrics else "none"
    own = ["--grpc-address", "127.0.0.1:0", "--http-address", http, "--workers", str(workers)]
    own += ["--builtin-encodings", ",".join(encodings)]
    with _running([python, *command, *own, *flags], core, subprocess.PIPE, None) as process:
        assert process.stderr is not None
        for line in process.stderr:
            entry = json.loads(line)
            if entry["event"] == "serving":
                kind, _, last = entry["grpc_address"].rpartition(":")
                port, path = (0, last) if kind == "unix" else (int(last), "")
                threading.Thread(target=_drain, args=(process.stderr,), daemon=True).start()
                yield Server(process.pid, port, pages=entry["http_address"], path=path)
                return
        raise RuntimeError("the server ended")


@contextmanager
def other(module: str, *arguments: str, core: int | None) -> Iterator[Server]:
    """Start a server that prints its port."""
    command = [sys.executable, "-m", module, *arguments]
    with _running(command, core, None, subprocess.PIPE) as process:
        assert process.stdout is not None
        server = Server(process.pid, int(process.stdout.readline()))
        yield replace(server, is_http=True, prefix="/") if "http" in arguments else server


def _drain(lines: IO[str]) -> None:
    """Read the output of a process, so that it never blocks. Runs on the load's core."""
    os.sched_setaffinity(0, {LOAD_CORE})  # of this thread
    with suppress(ValueError):  # it was closed meanwhile
        for _ in lines:
            pass


@contextmanager
def _running(
    command: Sequence[str], core: int | None, stderr: int | None, stdout: int | None
) -> Iterator[subprocess.Popen[str]]:
    prefix = [] if core is None else ["taskset", "-c", str(core)]
    process = subprocess.Popen([*prefix, *command], stdout=stdout, stderr=stderr, text=True)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def measure(
    server: Server, shape: Shape, in_flight: int, seconds: float, *, connections: int, core: int
) -> Figures:
    """Send one shape for some seconds.

    Args:
        server: Where to.
        shape: What.
        in_flight: Requests under way at any time, over all connections.
        seconds: How long, after a little that does not count.
        connections: How many; to HTTP/1.1 always one for each request in flight.
        core: Where the load runs.
    Raises:
        Stalled: Nothing was answered.
        RuntimeError: An answer was not a good one.
    """
    with tempfile.NamedTemporaryFile() as request, tempfile.NamedTemporaryFile("r") as log:
        command = _h2load(server, shape, in_flight, connections, core, Path(request.name))
        subprocess.run(
            [*command, "-D", _duration(WARM_SECONDS)], check=True, stdout=subprocess.DEVNULL
        )
        server.forget_peak()
        before = server.cpu_seconds()
        subprocess.run(
            [*command, "-D", _duration(seconds), "--log-file", log.name],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        used, peak = server.cpu_seconds() - before, server.peak_kib()
        rows = [line.split() for line in log]
    times = sorted(int(row[2]) for row in rows if row[1] == "200")
    if len(times) < len(rows):
        raise RuntimeError(f"{shape.name}: {len(rows) - len(times)} of {len(rows)} failed")
    if not times or not used:  # too short for the clock of a busy machine
        if seconds > MAX_SECONDS:
            raise Stalled(f"{shape.name}: nothing came back in {seconds:.0f} s")
        how_long = 4 * seconds
        return measure(server, shape, in_flight, how_long, connections=connections, core=core)
    done = len(times)
    high = times[min(done - 1, done * 99 // 100)]
    return Figures(done / seconds, used / done * 1e6, times[done // 2], high, peak)


@contextmanager
def loaded(server: Server, shape: Shape, in_flight: int, core: int) -> Iterator[Callable[[], int]]:
    """Send one shape on a connection of its own while the block runs.

    Returns:
        How many requests were answered so far.
    """
    with tempfile.NamedTemporaryFile() as request, tempfile.NamedTemporaryFile("r") as log:
        command = _h2load(server, shape, in_flight, 1, core, Path(request.name))
        command += ["-D", _duration(MAX_LOADED_SECONDS), "--log-file", log.name]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            yield lambda: len(Path(log.name).read_bytes().splitlines())
        finally:
            process.terminate()
            process.wait()


def _h2load(
    server: Server, shape: Shape, in_flight: int, connections: int, core: int, request: Path
) -> list[str]:
    """Return the command without its duration; the request is written to a file."""
    if shutil.which("h2load") is None:
        sys.exit("h2load is not on PATH: apt-get install nghttp2-client brings it")
    content = shape.body if server.is_http else shape.framed
    assert content is not None  # every shape that is sent has it
    request.write_bytes(content)
    if server.is_http:
        how = ["--h1", "-c", str(in_flight), "-H", "content-type: application/json"]
    else:
        connections = min(connections, in_flight)
        how = ["-c", str(connections), "-m", str(in_flight // connections)]
        how += ["-H", "content-type: application/grpc", "-H", "te: trailers"]
    if server.path:
        how += ["--base-uri", f"unix:{server.path}"]
    url = f"http://127.0.0.1:{server.port}{server.prefix}{shape.rpc}"
    return ["taskset", "-c", str(core), "h2load", *how, "-d", str(request), url]


def _duration(seconds: float) -> str:
    return f"{seconds * 1000:.0f}ms"
