"""Traces: the caller's `traceparent`, and OpenTelemetry spans if the environment enables them.

Spans are made after a call has ended, from the times that it recorded, so calls cost nothing where
traces are off. Attributes hold names, numbers and ids, never text.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from importlib import import_module
from time import perf_counter, time_ns
from typing import TYPE_CHECKING, Final

from bytepair_server import __version__
from bytepair_server.observability import logs

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.util.types import AttributeValue

    from bytepair_server.call import Call
    from bytepair_server.transport.interface import Call as Incoming

#: W3C Trace Context: headers of a call.
TRACEPARENT: Final = "traceparent"
TRACESTATE: Final = "tracestate"

_EXPORTER: Final = "OTEL_TRACES_EXPORTER"
_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS: Final = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
#: OpenTelemetry's default.
_HTTP: Final = "http/protobuf"
_SERVICE: Final = "bytepair-server"
#: Time for a stopping server to send its last spans.
_CLOSE_SECONDS: Final = 5.0
#: Those of our statuses that count as server errors by the conventions for gRPC.
_FAULTS: Final = frozenset({"DEADLINE_EXCEEDED", "INTERNAL", "UNAVAILABLE"})

#: Version 00 ends after the flags; later ones may go on.
_WELL_FORMED: Final = re.compile(
    r"(00|(?!ff)[0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f]{2}(-.*)?"
)


def parent_of(header: str | None) -> dict[str, str]:
    """The log's fields for the caller's span in a `traceparent` header; none if it is absent or
    malformed."""
    found = None if header is None else _WELL_FORMED.fullmatch(header)
    if found is None or (found[1] == "00" and found[4]):
        return {}
    return {"trace_id": found[2], "parent_span_id": found[3]}


def _peer_attributes(peer: str) -> dict[str, AttributeValue]:
    """Span attributes of a peer, which gRPC names "ipv4:127.0.0.1:5000" or "unix:/path"."""
    address = peer.partition(":")[2]
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        return {"network.peer.address": address}
    return {"network.peer.address": host.strip("[]"), "network.peer.port": int(port)}


class Tracer:
    """Makes spans and sends them in the background."""

    def __init__(self, provider: TracerProvider) -> None:
        from opentelemetry import trace
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self._api: Final = trace
        self._provider: Final = provider
        self._tracer: Final = provider.get_tracer(_SERVICE, __version__)
        self._extract: Final = TraceContextTextMapPropagator().extract

    def record(
        self, method: str, incoming: Incoming, call: Call, code: str, reason: str
    ) -> dict[str, str]:
        """Make the spans of a call that has ended: its own, and within it `admission` and
        `compute`.

        Args:
            method: Service and RPC, such as "bytepair.v1.TokenizerService/Count".
            incoming: The transport's call, whose headers may name a parent.
            call: The call, which recorded its times.
            code: Its status code's name.
            reason: The reason of its failure; "" for none.
        Returns:
            The fields that name the trace and the span in the log.
        """
        api, start_span = self._api, self._tracer.start_span
        # Calls record a monotonic clock; spans have the time of day.
        ended = time_ns()
        offset = ended - round(perf_counter() * 1e9)
        started = offset + round(call.started * 1e9)
        headers = {name: incoming.header(name) for name in (TRACEPARENT, TRACESTATE)}
        context = self._extract({name: each for name, each in headers.items() if each})
        span = start_span(method, context, api.SpanKind.SERVER, start_time=started)
        if span.is_recording():
            span.set_attributes(
                {
                    "rpc.method": method,
                    "rpc.response.status_code": code,
                    "rpc.system.name": "connectrpc" if incoming.is_json else "grpc",
                    **_peer_attributes(call.peer),
                    "bytepair.request_id": call.request_id,
                    "bytepair.caller": call.caller,
                    "bytepair.encoding": call.encoding,
                    "bytepair.reason": reason,
                    "bytepair.input_bytes": call.input_bytes,
                    "bytepair.tokens": call.tokens,
                }
            )
            if code in _FAULTS:
                span.set_attribute("error.type", code)
                span.set_status(api.StatusCode.ERROR)
            within = api.set_span_in_context(span)
            admitted = ended if call.admitted is None else offset + round(call.admitted * 1e9)
            start_span("admission", within, start_time=started).end(admitted)
            if call.computed is not None:
                computed = offset + round(call.computed * 1e9)
                compute = start_span("compute", within, start_time=admitted)
                if call.stream_seconds is not None:
                    compute.set_attribute("bytepair.compute_seconds", call.stream_seconds)
                compute.end(computed)
        span.end(ended)
        found = span.get_span_context()
        return {"trace_id": f"{found.trace_id:032x}", "span_id": f"{found.span_id:016x}"}

    def close(self) -> None:
        """Send the remaining spans, for some seconds at most."""
        # Without a collector, shutdown waits for half a minute.
        closing = threading.Thread(target=self._provider.shutdown, daemon=True)
        closing.start()
        closing.join(_CLOSE_SECONDS)


def are_wanted(environment: Mapping[str, str]) -> bool:
    """Whether the environment enables spans: it names a collector or an exporter."""
    exporter = environment.get(_EXPORTER, "").strip().lower()
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true" or exporter == "none":
        return False
    return exporter == "otlp" or any(environment.get(name) for name in _ENDPOINTS)


def tracer(environment: Mapping[str, str], log: logs.Log) -> Tracer | None:
    """Make a tracer that sends spans by OTLP, configured by the standard `OTEL_*` variables; None
    if they do not enable spans, or, with a warning, if they are invalid or the extra `otel` is not
    installed."""
    if not are_wanted(environment):
        return None
    named = next(filter(None, map(environment.get, _PROTOCOLS)), _HTTP)
    if named not in ("grpc", _HTTP):
        log.warning(
            f"unknown OTEL_EXPORTER_OTLP_PROTOCOL: spans are sent by {_HTTP}; set that, or grpc",
            protocol=named,
        )
    protocol = "grpc" if named == "grpc" else "http"
    try:
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        module = import_module(f"opentelemetry.exporter.otlp.proto.{protocol}.trace_exporter")
    except ImportError as error:
        log.warning("no traces are sent: install bytepair-server[otel]", missing=error.name)
        return None
    resource: dict[str, AttributeValue] = {"service.version": __version__}
    if not environment.get("OTEL_SERVICE_NAME") and "service.name=" not in environment.get(
        "OTEL_RESOURCE_ATTRIBUTES", ""
    ):
        resource["service.name"] = _SERVICE  # or it would be "unknown_service"
    try:
        provider = TracerProvider(resource=Resource.create(resource), shutdown_on_exit=False)
        provider.add_span_processor(BatchSpanProcessor(module.OTLPSpanExporter()))
    except ValueError as error:
        log.warning("no traces are sent: correct the OTEL_* variables", why=str(error))
        return None
    return Tracer(provider)
