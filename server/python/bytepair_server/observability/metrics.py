"""The metrics. Names and labels are described in `docs/metrics.md`.

Every label value comes from a closed set: RPC names of the proto, canonical names of loaded
encodings, authenticated callers, status codes, reasons. The exception: a few
names of encodings that are not served, so that the operator learns of them.
"""

from __future__ import annotations

import os
import platform
import re
import resource
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Final

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from bytepair_server import __version__
from bytepair_server.catalog import Catalog
from bytepair_server.shared.memory import Block
from bytepair_server.shared.metrics import (
    OTHER,
    Cell,
    Counter,
    Distribution,
    Gauge,
    Histogram,
)

#: Callers that each process counts by name; further ones are OTHER.
MAX_CALLERS: Final = 1000
#: Unknown encodings that each process counts by name; further ones are OTHER.
MAX_UNKNOWN_NAMES: Final = 32
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,63}")

#: The policy's action, by the reason of the failure that it causes.
POLICY_ACTIONS: Final = {
    "SPECIAL_TOKEN_IN_TEXT": "rejected",
    "SPECIAL_TOKEN_NOT_PERMITTED": "denied",
    "CHAT_FORMAT_NOT_PERMITTED": "denied",
}

#: Upper bounds in seconds: from an empty call to the largest input on the slow backend.
_SECONDS: Final = (
    *(0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05),
    *(0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
)
#: How process metrics are combined; the others are summed. The descriptor limit is per process,
#: so the process with the most open ones is shown.
_COMBINED: Final[Mapping[str, Callable[[Iterable[float]], float]]] = {
    "process_start_time_seconds": min,
    "process_max_fds": min,
    "process_open_fds": max,
}
_CPU: Final = "process_cpu_seconds"
_MEMORY: Final = "process_resident_memory_bytes"


class Metrics:
    """The metrics of one server.

    Attributes:
        registry: The metrics of `/metrics`, summed over all blocks.
        processes: The metrics of the operating system.
    """

    def __init__(self, blocks: Sequence[Block] = ()) -> None:
        """Make the metrics. `blocks` has the shared memory of each process, this one's first;
        without any, only this process counts."""
        self._blocks: Final = blocks or (Block(),)
        self.registry: Final = CollectorRegistry()
        self._gauges: Final[list[Gauge]] = []
        self.processes: Final = Processes()
        self.registry.register(self.processes)
        counter, gauge, by_encoding = self._counter, self._gauge, ("rpc", "encoding")
        self.requests: Final = counter(
            "requests", "Calls that ended, by status code.", *by_encoding, "code"
        )
        self.errors: Final = counter("errors", "Calls that failed.", "rpc", "reason")
        self.seconds: Final = Histogram(
            self._blocks,
            "bytepair_request_seconds",
            "Time from a request's arrival at the handler to its answer.",
            by_encoding,
            _SECONDS,
        )
        self.registry.register(self.seconds)
        self.input_bytes: Final = counter(
            "input_bytes", "UTF-8 bytes of text in calls that were answered.", *by_encoding
        )
        self.tokens: Final = counter(
            "tokens", "Token ids that were returned, counted or decoded.", *by_encoding
        )
        self.policy: Final = counter(
            "policy",
            "Calls by what the special-token policy did: allowed, as_text, denied or rejected.",
            *("caller", *by_encoding, "action"),
        )
        self.quota_exceeded: Final = counter(
            "quota_exceeded", "Calls rejected with QUOTA_EXCEEDED.", "caller", "rpc", "quota"
        )
        self._of_callers: Final = (
            counter("caller_requests", "Calls that ended, of each caller.", "caller"),
            counter("caller_input_bytes", "UTF-8 bytes of text, of each caller.", "caller"),
            counter("caller_tokens", "Token ids, of each caller.", "caller"),
        )
        self._usage: Final[dict[str, tuple[Cell, ...]]] = {}
        self._unknown: Final = counter(
            "unknown_encoding", "Calls for an encoding that is not served.", "requested"
        )
        self._reloads: Final = counter(
            "reloads", "Changed files that were read again.", "what", "outcome"
        )
        self.reload_failed: Final = gauge(
            "reload_failed",
            "1 while files are invalid and their earlier content stays in use.",
            "what",
            merge=max,
        )
        self.in_flight: Final = gauge(
            "in_flight", "Calls that are being read, computed or waiting for a thread."
        )
        self.queued: Final = gauge("queued", "Calls in the admission queue.")
        self.waiting_for_thread: Final = gauge(
            "waiting_for_thread",
            "Calls in flight, and large messages of streams, that wait for a thread.",
        )
        self.open_streams: Final = gauge("open_streams", "Streaming calls that are open.")
        self.ready: Final = gauge("ready", "1 while calls are accepted.", merge=max)
        self.workers: Final = gauge("workers", "Processes that accept calls.")
        self.workers_lost: Final = counter(
            "workers_lost", "Processes that ended unexpectedly."
        ).labels()
        self.lost_log_lines: Final = counter(
            "lost_log_lines", "Log lines that could not be written."
        ).labels()
        self.evicted_connections: Final = counter(
            "evicted_connections", "Connections that were closed for breaking a limit or HTTP/2."
        ).labels()
        self.refused_connections: Final = counter(
            "refused_connections", "Connections that were refused, by setting.", "setting"
        )
        self.handshake_failures: Final = counter(
            "tls_handshake_failures", "TLS handshakes that failed.", "reason"
        )
        self.certificate_expiry: Final = gauge(
            "tls_certificate_expiry_timestamp_seconds",
            "Unix time at which the first certificate of a setting expires.",
            "setting",
            merge=lambda times: min(filter(None, times), default=0.0),
        )
        self._encodings: Final = gauge(
            "encoding_info",
            "1 for each encoding that is served.",
            *("encoding", "fingerprint", "backend"),
            merge=max,
        )
        self._failed: Final = gauge(
            "encoding_failed",
            "1 for each encoding that is configured, could not be loaded and is not served.",
            "encoding",
            merge=max,
        )
        gauge(
            "build_info",
            "1, with the versions that run.",
            *("version", "python", "grpcio"),
            merge=max,
        ).labels(__version__, platform.python_version(), version("grpcio")).set(1)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        counter = Counter(self._blocks, f"bytepair_{name}", text, labels)
        self.registry.register(counter)
        return counter

    def _gauge(
        self,
        name: str,
        text: str,
        *labels: str,
        merge: Callable[[Iterable[float]], float] = sum,
    ) -> Gauge:
        gauge = Gauge(self._blocks, f"bytepair_{name}", text, labels, merge)
        self.registry.register(gauge)
        self._gauges.append(gauge)
        return gauge

    def refresh(self) -> None:
        """Write gauges that have a function to shared memory, for the supervisor."""
        for gauge in self._gauges:
            gauge.refresh()

    def forget(self, block: Block) -> None:
        """Reset the gauges of a process that has ended. Its counters stay, and `reload_failed`
        until the next one has read the files."""
        for gauge in self._gauges:
            if gauge is not self.reload_failed:
                gauge.forget(block)

    def reloaded(self, what: str, *, ok: bool) -> None:
        """Count a reload of changed files."""
        self._reloads.labels(what, "ok" if ok else "failed").inc()
        self.reload_failed.labels(what).set(not ok)

    def used(self, caller: str, input_bytes: int, tokens: int) -> None:
        """Count a call that ended, for its caller."""
        requests, all_bytes, all_tokens = self._usage.get(caller) or self._usage_of(caller)
        requests.inc()
        all_bytes.inc(input_bytes)
        all_tokens.inc(tokens)

    def expect(self, callers: Iterable[str]) -> None:
        """Show callers before their first calls. Prometheus ignores the first value of a series."""
        for caller in sorted(set(callers) - self._usage.keys()):
            self._usage_of(caller)

    def show_limits(self, settings: Iterable[str]) -> None:
        """Show the limits on connections before one is reached, for the same reason."""
        for setting in settings:
            self.refused_connections.labels(setting)

    def _usage_of(self, caller: str) -> tuple[Cell, ...]:
        if len(self._usage) >= MAX_CALLERS:
            caller = OTHER
        cells = tuple(counter.labels(caller) for counter in self._of_callers)
        return self._usage.setdefault(caller, cells)

    def unknown_encoding(self, name: str) -> str | None:
        """Count a call for an encoding that is not served; `name` is any text. Returns the name if
        this process counts it by name for the first time; else None."""
        known = self._blocks[0].rows(self._unknown.name)
        if (name,) not in known and (len(known) >= MAX_UNKNOWN_NAMES or not _NAME.fullmatch(name)):
            name = OTHER
        is_new = (name,) not in known
        self._unknown.labels(name).inc()
        # Where the block is full, a new name was counted as OTHER.
        counted = self._blocks[0].rows(self._unknown.name)
        return name if is_new and name != OTHER and (name,) in counted else None

    def show_encodings(self, catalog: Catalog) -> None:
        """Export the encodings."""
        for entry in catalog.entries:
            labels = (entry.name, entry.fingerprint, entry.encoding.backend)
            self._encodings.labels(*labels).set(1)
        for name in catalog.failed:
            self._failed.labels(name).set(1)


class RpcMetrics:
    """The metrics of one RPC. Label lookups of successful calls are cached."""

    def __init__(self, metrics: Metrics, rpc: str) -> None:
        self._metrics: Final = metrics
        self._rpc: Final = rpc
        self._succeeded: Final[dict[str, tuple[Cell, Cell, Cell, Distribution]]] = {}

    def succeeded(self, encoding: str, seconds: float, input_bytes: int, tokens: int) -> None:
        """Count a call that was answered."""
        children = self._succeeded.get(encoding)
        if children is None:
            children = self._succeeded[encoding] = (
                self._metrics.requests.labels(self._rpc, encoding, "OK"),
                self._metrics.input_bytes.labels(self._rpc, encoding),
                self._metrics.tokens.labels(self._rpc, encoding),
                self._metrics.seconds.labels(self._rpc, encoding),
            )
        requests, all_bytes, all_tokens, all_seconds = children
        requests.inc()
        if input_bytes:
            all_bytes.inc(input_bytes)
        if tokens:
            all_tokens.inc(tokens)
        all_seconds.observe(seconds)

    def failed(self, encoding: str, seconds: float, code: str, reason: str) -> None:
        """Count a call that failed, or was cancelled, which has no reason."""
        self._metrics.requests.labels(self._rpc, encoding, code).inc()
        if reason:
            self._metrics.errors.labels(self._rpc, reason).inc()
        self._metrics.seconds.labels(self._rpc, encoding).observe(seconds)


class Processes(Collector):
    """CPU time, memory, open files and start time, on Linux.

    Attributes:
        ids: Returns the process ids at each scrape.
    """

    def __init__(self) -> None:
        """Cover this process."""
        self.ids: Callable[[], Iterable[int]] = lambda: (os.getpid(),)

    def collect(self) -> Iterator[Metric]:
        ids = tuple(self.ids())
        families: dict[str, Metric] = {}
        values: dict[str, list[float]] = {}
        for process in ids:
            for family in ProcessCollector(registry=None, pid=partial(int, process)).collect():
                families.setdefault(family.name, family)
                values.setdefault(family.name, []).append(family.samples[0].value)
        for name, family in families.items():
            value = _COMBINED.get(name, sum)(values[name])
            if name == _CPU and len(ids) > 1:
                value += _ended_cpu_seconds()  # of workers that have ended
            elif name == _MEMORY and len(ids) > 1:
                # Count shared pages once.
                shares = [_proportional_bytes(process) for process in ids]
                value = sum(shares) if all(shares) else value
            family.samples = [family.samples[0]._replace(value=value)]
            yield family


def _ended_cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _proportional_bytes(process: int) -> int:
    """A process's proportional set size; 0 if the kernel does not say."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
