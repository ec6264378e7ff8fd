"""Traces: `traceparent` in the log, and spans as a real OTLP receiver gets them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from queue import Queue
from typing import Any

import grpc
import pytest
from bytepair.v1 import tokenizer_pb2
from bytepair_server.observability.traces import are_wanted, parent_of
from conftest import Serve
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, Span, Status
from support.check_config import check_config
from support.failures import failure
from support.serving import START_SECONDS, RunningServer
from support.streaming import CountRequest, count_config

#: Built by `make test-traces`.
COLLECTOR = Path(__file__).parents[2] / "build" / "collector" / "otelcol"
SECRET = "wombat-7391"
TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
TRACEPARENT = f"00-{TRACE}-{PARENT}-01"
COUNT = tokenizer_pb2.CountRequest(encoding="gpt-4", text=f"{SECRET} {SECRET}")


@pytest.mark.parametrize(
    "header",
    [
        *(None, "", TRACEPARENT.upper(), TRACEPARENT + "-", TRACEPARENT + "-x", TRACEPARENT[:-1]),
        *(f"ff-{TRACE}-{PARENT}-01", f"00-{'0' * 32}-{PARENT}-01", f"00-{TRACE}-{'0' * 16}-01"),
        *(f"00-{TRACE}-{PARENT}-0g", f"00_{TRACE}_{PARENT}_01", f" {TRACEPARENT}", "0" * 100_000),
        *(f"01-{TRACE}-{PARENT}-01x", f"{TRACEPARENT}\n"),
    ],
)
def test_an_invalid_traceparent_is_ignored(header: str | None) -> None:
    assert parent_of(header) == {}


@pytest.mark.parametrize("header", [TRACEPARENT, f"cc-{TRACE}-{PARENT}-01-later"])
def test_a_traceparent_of_any_version_is_parsed(header: str) -> None:
    assert parent_of(header) == {"trace_id": TRACE, "parent_span_id": PARENT}


@given(st.text() | st.from_regex(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-.)?"))
def test_a_parsed_traceparent_can_be_logged(header: str) -> None:
    fields = parent_of(header)
    assert not fields or re.fullmatch(r"[0-9a-f]{32} [0-9a-f]{16}", " ".join(fields.values()))


def test_a_traceparent_is_in_log_lines(serve: Serve) -> None:
    server = serve("--log-calls", "info")
    for number, header in enumerate([TRACEPARENT, TRACEPARENT.upper()]):
        metadata = (("traceparent", header), ("x-request-id", f"r{number}"))
        server.stub.Count(COUNT, metadata=metadata)
    line = server.wait_for_log("call", request_id="r0")
    assert (line["trace_id"], line["parent_span_id"]) == (TRACE, PARENT)
    assert "trace_id" not in server.wait_for_log("call", request_id="r1")
    assert TRACE.upper() not in server.raw_log


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [
        ({}, False),
        ({"OTEL_SERVICE_NAME": "x"}, False),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://x"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_TRACES_EXPORTER": "none"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_SDK_DISABLED": "true"}, False),
    ],
)
def test_spans_are_made_if_the_environment_configures_an_exporter(
    environment: dict[str, str], wanted: bool
) -> None:
    assert are_wanted(environment) is wanted


class Receiver(trace_service_pb2_grpc.TraceServiceServicer):
    """A collector service; `received` has the messages."""

    def __init__(self) -> None:
        self.received: Queue[ResourceSpans] = Queue()

    def Export(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        for spans in request.resource_spans:
            self.received.put(spans)
        return trace_service_pb2.ExportTraceServiceResponse()

    def spans(self) -> dict[str, list[tuple[Span, dict[str, Any]]]]:
        """Return all received spans by name, with their attributes."""
        found: dict[str, list[tuple[Span, dict[str, Any]]]] = {}
        while not self.received.empty():
            for scope in self.received.get().scope_spans:
                for span in scope.spans:
                    found.setdefault(span.name, []).append((span, values(span.attributes)))
        return found


def values(attributes: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}


@pytest.fixture
def receiver() -> Iterator[tuple[Receiver, dict[str, str]]]:
    """An OTLP receiver over gRPC, and the environment that sends spans to it."""
    service = Receiver()
    server = grpc.server(ThreadPoolExecutor(1))
    add = trace_service_pb2_grpc.add_TraceServiceServicer_to_server
    add(service, server)  # type: ignore[no-untyped-call]
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield service, sent_to(port)
    server.stop(None)


def sent_to(port: int) -> dict[str, str]:
    return {
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}",
        "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
        "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=test",
        "BYTEPAIR_BUILTIN_ENCODINGS": "cl100k_base",
    }


@contextmanager
def serving(environment: dict[str, str], *arguments: str) -> Iterator[RunningServer]:
    with RunningServer("--log-calls", "info", *arguments, environment=environment) as server:
        yield server
        server.terminate()
        assert server.wait() == 0


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_call_is_a_span_with_child_spans_for_admission_and_compute(
    receiver: tuple[Receiver, dict[str, str]], workers: str
) -> None:
    service, environment = receiver
    metadata = (("traceparent", TRACEPARENT), ("tracestate", "a=b"), ("x-request-id", "r"))
    with serving(environment, "--workers", workers) as server:
        answer = server.stub.Count(COUNT, metadata=metadata)
        line = server.wait_for_log("call", request_id="r")
    resource = values(service.received.queue[0].resource.attributes)
    assert resource["service.name"] == "bytepair-server"
    assert resource["deployment.environment.name"] == "test"
    spans = service.spans()
    assert set(spans) == {"bytepair.v1.TokenizerService/Count", "admission", "compute"}
    [(span, attributes)] = spans["bytepair.v1.TokenizerService/Count"]
    assert (span.trace_id.hex(), span.parent_span_id.hex()) == (TRACE, PARENT)
    assert span.kind == Span.SPAN_KIND_SERVER
    assert span.trace_state == "a=b"
    assert span.status.code == Status.STATUS_CODE_UNSET
    assert (line["trace_id"], line["span_id"]) == (TRACE, span.span_id.hex())
    assert attributes.pop("network.peer.port") > 0
    assert attributes == {
        "rpc.system.name": "grpc",
        "rpc.method": "bytepair.v1.TokenizerService/Count",
        "rpc.response.status_code": "OK",
        "network.peer.address": "127.0.0.1",
        "bytepair.request_id": "r",
        "bytepair.caller": "anonymous",
        "bytepair.encoding": "cl100k_base",
        "bytepair.reason": "",
        "bytepair.input_bytes": len(COUNT.text),
        "bytepair.tokens": answer.count,
    }
    [(admission, _)], [(compute, _)] = spans["admission"], spans["compute"]
    for child in (admission, compute):
        assert (child.trace_id, child.parent_span_id) == (span.trace_id, span.span_id)
        assert child.kind == Span.SPAN_KIND_INTERNAL
    assert span.start_time_unix_nano == admission.start_time_unix_nano
    assert admission.end_time_unix_nano == compute.start_time_unix_nano
    assert compute.start_time_unix_nano <= compute.end_time_unix_nano <= span.end_time_unix_nano


@pytest.mark.slow
def test_streams_and_failures_are_spans_without_text(
    receiver: tuple[Receiver, dict[str, str]],
) -> None:
    service, environment = receiver
    with serving(environment) as server:
        server.stub.CountStream(iter([count_config("gpt-4"), CountRequest(text=SECRET)]))
        failure(server.stub.Count, tokenizer_pb2.CountRequest(encoding=SECRET, text=SECRET))
    received = list(service.received.queue)
    spans = service.spans()
    [(stream, attributes)] = spans["bytepair.v1.TokenizerService/CountStream"]
    assert attributes["bytepair.tokens"] > 0
    assert not stream.parent_span_id
    [(compute, attributes)] = (
        each for each in spans["compute"] if each[0].parent_span_id == stream.span_id
    )
    assert stream.start_time_unix_nano <= compute.start_time_unix_nano
    assert compute.end_time_unix_nano <= stream.end_time_unix_nano
    took = (compute.end_time_unix_nano - compute.start_time_unix_nano) / 1e9
    assert 0 < attributes["bytepair.compute_seconds"] <= took + 1e-6
    [(failed, attributes)] = spans["bytepair.v1.TokenizerService/Count"]
    assert attributes["rpc.response.status_code"] == "NOT_FOUND"
    assert attributes["bytepair.reason"] == "UNKNOWN_ENCODING"
    assert failed.status.code == Status.STATUS_CODE_UNSET  # an error of the caller
    assert SECRET not in str(received)


@pytest.mark.slow
def test_an_unsampled_trace_is_not_sent(receiver: tuple[Receiver, dict[str, str]]) -> None:
    service, environment = receiver
    with serving(environment) as server:
        server.stub.Count(COUNT, metadata=(("traceparent", TRACEPARENT[:-1] + "0"),))
        server.stub.Count(COUNT, metadata=(("traceparent", "not one"), ("x-request-id", "r")))
        own = server.wait_for_log("call", request_id="r")["trace_id"]
    (sent,) = service.spans()["bytepair.v1.TokenizerService/Count"]
    assert sent[0].trace_id.hex() == own != TRACE


@pytest.mark.slow
def test_a_server_works_and_stops_without_a_collector() -> None:
    with serving(sent_to(1)) as server:
        assert server.stub.Count(COUNT).count > 0


@pytest.mark.slow
def test_without_the_extra_the_log_names_the_package_to_install(tmp_path: Path) -> None:
    (tmp_path / "opentelemetry.py").write_text("raise ImportError(name='opentelemetry')")
    environment = sent_to(1) | {"PYTHONPATH": str(tmp_path)}
    with serving(environment) as server:
        assert server.stub.Count(COUNT).count > 0
        server.wait_for_log("no traces are sent: install bytepair-server[otel]")


@pytest.mark.slow
def test_a_server_with_invalid_variables_serves_without_traces() -> None:
    """OpenTelemetry's default for a batch is larger than this queue."""
    variables = sent_to(1) | {"OTEL_BSP_MAX_QUEUE_SIZE": "16"}
    event = "no traces are sent: correct the OTEL_* variables"
    with serving(variables) as server:
        assert "max_queue_size" in server.wait_for_log(event)["why"]
        assert server.stub.Count(COUNT).count > 0
    assert event in check_config("--builtin-encodings", "r50k_base", **variables).stderr


@pytest.mark.slow
@pytest.mark.parametrize(("protocol", "warned"), [("gRPC", 1), ("grpc", 0), ("http/protobuf", 0)])
def test_an_unknown_protocol_of_spans_is_a_warning(protocol: str, warned: int) -> None:
    variables = sent_to(1) | {"OTEL_EXPORTER_OTLP_PROTOCOL": protocol}
    said = check_config("--builtin-encodings", "r50k_base", **variables).stderr
    assert said.count("spans are sent by http/protobuf; set that, or grpc") == warned


@pytest.mark.slow
def test_opentelemetry_is_not_imported_if_traces_are_off() -> None:
    code = "import sys, bytepair_server.server; print('opentelemetry' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"


@pytest.mark.slow
@pytest.mark.skipif(not COLLECTOR.exists(), reason="make test-traces builds the collector")
@pytest.mark.parametrize("protocol", ["grpc", "http/protobuf"])
def test_the_opentelemetry_collector_accepts_the_spans(tmp_path: Path, protocol: str) -> None:
    config = tmp_path / "collector.yaml"
    config.write_text(
        """
receivers: {otlp: {protocols: {grpc: {endpoint: "127.0.0.1:0"}, http: {endpoint: "127.0.0.1:0"}}}}
exporters: {debug: {verbosity: detailed}}
service:
  telemetry: {metrics: {level: none}}
  pipelines: {traces: {receivers: [otlp], exporters: [debug]}}
"""
    )
    command = [str(COLLECTOR), "--config", f"file:{config}"]
    collector = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=dict(os.environ))
    assert collector.stderr is not None
    name, said = ("GRPC" if protocol == "grpc" else "HTTP"), ""
    try:
        for line in collector.stderr:
            said += line
            if "Everything is ready" in line:
                break
        else:
            raise AssertionError(said)
        endpoint = re.search(rf'Starting {name} server.*"127.0.0.1:(\d+)"', said)
        assert endpoint is not None, said
        environment = sent_to(int(endpoint[1])) | {"OTEL_EXPORTER_OTLP_PROTOCOL": protocol}
        with serving(environment) as server:
            server.stub.Count(COUNT, metadata=(("traceparent", TRACEPARENT),))
        collector.terminate()
        said = collector.stderr.read()
        assert collector.wait(START_SECONDS) == 0
    finally:
        collector.kill()
        collector.stderr.close()
    assert f"Trace ID       : {TRACE}" in said
    assert "rpc.method: Str(bytepair.v1.TokenizerService/Count)" in said
    assert SECRET not in said
