"""What traces cost a server: CPU of a small call without them, and with OpenTelemetry.

The spans go to a receiver of OTLP that drops them, on the load's core.
"""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc

from bench.service.load import LOAD_CORE, SERVER_CORE, Server, measure, service
from bench.service.shapes import shapes

SHAPE, IN_FLIGHT, SECONDS, ROUNDS = "Count 1,000 B", 16, 2.0, 5


class Receiver(trace_service_pb2_grpc.TraceServiceServicer):
    """A collector that drops what it receives."""

    def Export(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        del request, context
        return trace_service_pb2.ExportTraceServiceResponse()


def main() -> None:
    """Measure and print."""
    receiver = grpc.server(ThreadPoolExecutor(1))
    add = trace_service_pb2_grpc.add_TraceServiceServicer_to_server
    add(Receiver(), receiver)  # type: ignore[no-untyped-call]
    endpoint = f"http://127.0.0.1:{receiver.add_insecure_port('127.0.0.1:0')}"
    receiver.start()
    on = {"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}
    some = {"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.01"}
    ways = {"no traces": {}, "1 % of calls": on | some, "every call": on}
    (shape,) = (each for each in shapes() if each.name == SHAPE)
    cpu: dict[str, list[float]] = {way: [] for way in ways}
    with ExitStack() as stack:
        servers = {way: stack.enter_context(traced(variables)) for way, variables in ways.items()}
        for _ in range(ROUNDS):
            for way, server in servers.items():
                found = measure(server, shape, IN_FLIGHT, SECONDS, connections=1, core=LOAD_CORE)
                cpu[way].append(found.cpu)
    receiver.stop(None)
    print(
        f"{time.strftime('%Y-%m-%d')}, Python {platform.python_version()}, {SHAPE}, "
        f"median of {ROUNDS}\n\n| traces | CPU µs of a call | more |\n|---|---:|---:|"
    )
    off = statistics.median(cpu["no traces"])
    for way, rounds in cpu.items():
        each = statistics.median(rounds)
        print(f"| {way} | {each:,.0f} | {each - off:,.0f} |")


@contextmanager
def traced(variables: dict[str, str]) -> Iterator[Server]:
    """Start a server with these environment variables."""
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        with service(1, SERVER_CORE) as server:
            os.environ.clear()
            os.environ.update(before)
            yield server
    finally:
        os.environ.clear()
        os.environ.update(before)


if __name__ == "__main__":
    main()
