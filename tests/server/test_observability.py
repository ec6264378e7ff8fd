"""Metrics, logs, request ids and reflection of a running server."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import select
import struct
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from io import StringIO
from pathlib import Path
from time import monotonic
from typing import Any

import grpc
import pytest
from bytepair.v1 import chat_pb2, chat_pb2_grpc, text_pb2, tokenizer_pb2
from bytepair_server.config import loader
from bytepair_server.observability import logs
from bytepair_server.rpc import reflection
from bytepair_server.server import Server
from conftest import Serve
from google.protobuf import descriptor_pb2
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from prometheus_client.parser import text_string_to_metric_families
from support import http2
from support.failures import failure
from support.serving import START_SECONDS, RunningServer
from support.slow import ENDLESS, SLOW_FLAGS, WITHOUT_CORE, endless_count

ROOT = Path(__file__).parents[2]
SECRET = "wombat-7391"
COUNT = "/bytepair.v1.TokenizerService/Count"


def test_the_texts_of_chats_are_counted(serve: Serve) -> None:
    server = serve()
    stub: Any = chat_pb2_grpc.ChatServiceStub(server.channel)  # type: ignore[no-untyped-call]
    message = chat_pb2.ChatMessage(role="user", content=[chat_pb2.ContentPart(text="né é")])
    named = chat_pb2.ChatMessage(role="user", name="Zoë")
    options: dict[str, Any] = {"encoding": "gpt-4", "format": "openai-chat"}
    stub.CountChat(chat_pb2.CountChatRequest(**options, messages=[message]))
    stub.FitChat(chat_pb2.FitChatRequest(**options, messages=[message, named], max_tokens=50))
    item = chat_pb2.ChatItem(messages=[message, named])
    stub.BatchCountChat(chat_pb2.BatchCountChatRequest(**options, items=[item, item]))
    for rpc, size in (("CountChat", 6), ("FitChat", 10), ("BatchCountChat", 20)):
        labels = {"rpc": rpc, "encoding": "cl100k_base"}
        assert server.metric("bytepair_input_bytes_total", **labels) == size


def test_calls_are_counted(serve: Serve) -> None:
    server = serve()
    server.stub.Count(tokenizer_pb2.CountRequest(encoding="gpt-4", text="né é"))
    server.stub.Encode(tokenizer_pb2.EncodeRequest(encoding="gpt-4", text="one two three"))
    failure(server.stub.Count, tokenizer_pb2.CountRequest(encoding="caller's own string"))
    cl100k = {"rpc": "Count", "encoding": "cl100k_base"}
    assert server.metric("bytepair_requests_total", **cl100k, code="OK") == 1
    assert server.metric("bytepair_input_bytes_total", **cl100k) == 6
    assert server.metric("bytepair_tokens_total", rpc="Encode", encoding="cl100k_base") == 3
    unknown = {"rpc": "Count", "encoding": "unknown"}
    assert server.metric("bytepair_requests_total", **unknown, code="NOT_FOUND") == 1
    assert server.metric("bytepair_errors_total", rpc="Count", reason="UNKNOWN_ENCODING") == 1
    for labels in (cl100k, unknown):
        assert server.metric("bytepair_request_seconds_count", **labels) == 1
    mismatch = tokenizer_pb2.CountRequest(encoding="gpt-4", expected_fingerprint="another")
    failure(server.stub.Count, mismatch)
    code = "FAILED_PRECONDITION"
    assert server.metric("bytepair_requests_total", **cl100k, code=code) == 1
    assert server.metric("bytepair_in_flight") == 0
    fingerprint = server.stub.GetEncoding(
        tokenizer_pb2.GetEncodingRequest(encoding="gpt-4")
    ).encoding.fingerprint
    assert server.metric("bytepair_encoding_info", fingerprint=fingerprint) == 1
    assert server.metric("bytepair_build_info", grpcio=grpc.__version__) == 1
    assert "caller's own string" not in server.get("/metrics")[1]


def test_an_abandoned_call_is_counted_as_cancelled(serve: Serve) -> None:
    server = serve(*SLOW_FLAGS, "--work-threads", "1", environment=WITHOUT_CORE)
    endless = tokenizer_pb2.CountRequest(encoding="cl100k_base", text=ENDLESS)
    cancelled = {"rpc": "Count", "code": "CANCELLED"}
    with endless_count(server) as running:
        waiting = server.stub.Count.future(endless)
        server.wait_for_metric("bytepair_waiting_for_thread", 1)
        server.wait_for_metric("bytepair_in_flight", 2)
        waiting.cancel()
        server.wait_for_metric("bytepair_requests_total", 1, **cancelled)
        assert not running.done()
    server.wait_for_metric("bytepair_requests_total", 2, **cancelled)
    assert server.metric("bytepair_in_flight") == 0
    # A cancelled call is not a server error.
    assert server.metric("bytepair_errors_total", rpc="Count") == 0


def test_the_documented_metrics_are_the_exported_ones(server: RunningServer) -> None:
    exported = {
        family.name: family
        for family in text_string_to_metric_families(server.get("/metrics")[1])
        if family.name.startswith("bytepair_")
    }
    page = (ROOT / "docs/metrics.md").read_text(encoding="utf-8")
    documented = dict(re.findall(r"^\| `(bytepair_\w+)` \| (\w+) \|", page, re.MULTILINE))
    actual = {
        name + ("_total" if family.type == "counter" else ""): family.type
        for name, family in exported.items()
    }
    assert documented == actual


def test_no_log_line_holds_the_text(serve: Serve) -> None:
    server = serve("--log-level", "debug")
    end = "<|endoftext|>"
    requests = [
        ("Encode", tokenizer_pb2.EncodeRequest(encoding="gpt-4", text=SECRET)),
        ("Encode", tokenizer_pb2.EncodeRequest(encoding="gpt-4", text=f"{SECRET}{end}")),
        ("Count", tokenizer_pb2.CountRequest(encoding="nope", text=SECRET)),
        ("Count", tokenizer_pb2.CountRequest(encoding="gpt-4", text=SECRET * 200_000)),
        (
            "BatchEncode",
            tokenizer_pb2.BatchEncodeRequest(
                encoding="gpt-4", items=[text_pb2.TextItem(text=f"{SECRET}{end}")]
            ),
        ),
    ]
    answers = [getattr(server.stub, rpc).future(request) for rpc, request in requests]
    assert not any(SECRET in str(answer.details()) for answer in answers)
    raw = requests[0][1].SerializeToString() + b"\xff"
    assert SECRET not in failure(server.channel.unary_unary(COUNT), raw).message
    not_utf8 = requests[0][1].SerializeToString().replace(b"7391", b"739\xff")
    assert SECRET[:6] not in failure(server.channel.unary_unary(COUNT), not_utf8).message
    server.terminate()
    assert server.wait() == 0
    calls = [line for line in server.log if line["event"] == "call"]
    assert len(calls) == len(requests) + 2
    assert SECRET[:6] not in server.raw_log


def test_a_traceback_of_a_library_is_logged_without_its_message() -> None:
    """The message may quote the input, as that of a KeyError does."""
    stream = StringIO()
    logs.configure("json", "info", stream)
    try:
        dict[str, int]()[SECRET]
    except KeyError:
        logging.getLogger("grpc").exception("a task failed")
    line = json.loads(stream.getvalue())
    assert line["event"] == "a task failed"
    assert line["error"][-1] == "KeyError"
    assert SECRET not in stream.getvalue()


def test_a_log_line_of_a_library_is_logged_without_its_quotations() -> None:
    """gRPC quotes metadata that is not text, which a damaged key may be."""
    stream = StringIO()
    logs.configure("json", "info", stream)
    logging.getLogger("grpc").error("Invalid encoding on %s", SECRET)
    logging.getLogger("asyncio").error(f"Exception in callback f({SECRET!r})\n{SECRET}")
    logging.getLogger("other").error(KeyError(SECRET))
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    said = ["Invalid encoding on %s", "Exception in callback f", "KeyError"]
    assert [line["event"] for line in lines] == said
    assert [line["logger"] for line in lines] == ["grpc", "asyncio", "other"]
    assert SECRET not in stream.getvalue()


def test_a_deep_exception_is_logged_by_its_first_and_last_frames() -> None:
    def fall(depth: int) -> None:
        if depth:
            fall(depth - 1)
        raise KeyError(SECRET)

    with pytest.raises(KeyError) as caught:
        fall(100)
    lines = logs.frames(caught.value)
    assert len(lines) == logs.MAX_FRAMES + 2
    assert "test_a_deep_exception" in lines[0]
    assert lines[logs.MAX_FRAMES // 2] == f"… {102 - logs.MAX_FRAMES} more"
    assert lines[-1] == "KeyError"


@pytest.mark.skipif(not hasattr(select, "poll"), reason="nothing tells of room in a pipe")
@pytest.mark.parametrize("log_format", ["json", "console"])
def test_log_lines_are_cut_or_dropped_if_the_reader_is_slow(log_format: Any) -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as reader, os.fdopen(writing, "w") as stream:
        os.set_blocking(writing, False)
        with suppress(BlockingIOError):
            while True:
                os.write(writing, bytes(select.PIPE_BUF))
        os.set_blocking(writing, True)
        os.read(reading, select.PIPE_BUF)
        log = logs.configure(log_format, "info", stream)
        long = "x" * 3 * select.PIPE_BUF
        names = [f"name {number}" for number in range(1000)]
        values = {"text": long, "names": names, "number": 1}
        thread = threading.Thread(target=log.error, args=(long,), kwargs=values, daemon=True)
        thread.start()
        thread.join(START_SECONDS)
        assert not thread.is_alive()
        log.error("there is no room for this")
        line = reader.read1(1 << 20).lstrip(b"\0")
        log.error("here is some")
        assert b"here is some" in reader.readline()
        log.error("é" * 200, **dict.fromkeys("abcdef", "é" * 200))
        least = reader.readline()
    if log_format == "console":
        assert len(line) == select.PIPE_BUF
        assert line.endswith("x…\n".encode())
        return
    cut = json.loads(line)
    assert cut["event"] == cut["text"] == 200 * "x" + "…"
    assert cut["names"] == [*names[:4], "… 992 more", *names[-4:]]
    assert (cut["number"], cut["cut"]) == (1, True)
    assert json.loads(least).keys() == {"event", "level", "timestamp", "cut"}


@pytest.mark.slow
def test_threads_can_log_at_the_same_time() -> None:
    """Lines of libraries are included."""
    lines, each = 2_000, 3

    def repeat(tell: Callable[[str], object]) -> None:
        for _ in range(lines):
            tell("logged")

    with tempfile.TemporaryFile("w+") as stream:
        log = logs.configure("json", "info", stream)
        with ThreadPoolExecutor(2 * each) as pool:
            library = logging.getLogger("some.library")
            for tell in (log.info, library.warning):
                for _ in range(each):
                    pool.submit(repeat, tell)
        stream.seek(0)
        assert [json.loads(line)["event"] for line in stream] == ["logged"] * (2 * each * lines)


def test_each_call_can_be_logged(serve: Serve) -> None:
    server = serve("--log-calls", "info", "--log-level", "info")
    server.stub.Count(
        tokenizer_pb2.CountRequest(encoding="gpt-4", text="né é"),
        metadata=(("x-request-id", "mine-1"),),
    )
    line = server.wait_for_log("call", request_id="mine-1")
    assert line.pop("ms") >= 0
    assert line.pop("timestamp")
    assert line == {
        "event": "call",
        "level": "info",
        "rpc": "Count",
        "caller": "anonymous",
        "encoding": "cl100k_base",
        "code": "OK",
        "reason": "",
        "input_bytes": 6,
        "tokens": 2,
        "request_id": "mine-1",
    }


def test_calls_are_not_logged_by_default(serve: Serve) -> None:
    server = serve("--log-level", "info")
    server.stub.Count(tokenizer_pb2.CountRequest(encoding="gpt-4"))
    server.terminate()
    server.wait()
    assert "call" not in [line["event"] for line in server.log]
    assert "no authentication is configured: anyone who can reach the port may call" in [
        line["event"] for line in server.log
    ]
    for line in server.raw_log.splitlines():
        json.loads(line)


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("abc-123_./:+=", True),
        ("a" * 64, True),
        ("a" * 65, False),
        ("with space", False),
        ("", False),
    ],
)
def test_request_ids_are_returned(server: RunningServer, sent: str, kept: bool) -> None:
    request = tokenizer_pb2.CountRequest(encoding="gpt-4")
    _, call = server.stub.Count.with_call(request, metadata=(("x-request-id", sent),))
    (got,) = [value for key, value in call.trailing_metadata() if key == "x-request-id"]
    assert (got == sent) is kept
    assert re.fullmatch(r"[A-Za-z0-9._:/+=-]{1,64}", got)
    _, call = server.stub.Count.with_call(request)
    assert dict(call.trailing_metadata())["x-request-id"] != got


def reflected(server: RunningServer) -> list[str]:
    stub: Any = reflection_pb2_grpc.ServerReflectionStub(server.channel)
    request = reflection_pb2.ServerReflectionRequest(list_services="")
    (answer,) = stub.ServerReflectionInfo(iter([request]))
    return [service.name for service in answer.list_services_response.service]


def file_containing(server: RunningServer, version: str, symbol: str) -> str:
    """The name of the file that one version of reflection finds."""
    request = reflection_pb2.ServerReflectionRequest(file_containing_symbol=symbol)
    ask: Any = server.channel.stream_stream(
        f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo",
        reflection_pb2.ServerReflectionRequest.SerializeToString,
        reflection_pb2.ServerReflectionResponse.FromString,
    )
    (answer,) = ask(iter([request]))
    assert answer.original_request == request
    file = descriptor_pb2.FileDescriptorProto()
    file.ParseFromString(answer.file_descriptor_response.file_descriptor_proto[0])
    return file.name


def test_reflection_is_off_by_default(server: RunningServer, serve: Serve) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        reflected(server)
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
    assert "bytepair.v1.TokenizerService" in reflected(serve("--reflection"))


@pytest.mark.parametrize("version", ["v1", "v1alpha"])
def test_reflection_finds_each_service_and_its_methods(serve: Serve, version: str) -> None:
    server = serve("--reflection")
    tokenizer, both = "bytepair.v1.TokenizerService", "grpc.reflection.{}.ServerReflection"
    files = {
        tokenizer: "bytepair/v1/tokenizer.proto",
        f"{tokenizer}.Count": "bytepair/v1/tokenizer.proto",
        both.format("v1"): "grpc_reflection/v1/reflection.proto",
        both.format("v1alpha"): "grpc_reflection/v1alpha/reflection.proto",
    }
    assert {symbol: file_containing(server, version, symbol) for symbol in files} == files
    assert set(files) - set(reflected(server)) == {f"{tokenizer}.Count"}


def test_a_stream_of_reflection_without_messages_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reflection, "IDLE_SECONDS", 1)
    flags = ["--grpc-address", "127.0.0.1:0", "--http-address", "none", "--reflection"]

    async def run() -> None:
        server = Server(loader.load(flags, {}), logs.configure("json", "error", StringIO()))
        await server.start()
        try:
            async with grpc.aio.insecure_channel(server.grpc_address) as channel:
                stub: Any = reflection_pb2_grpc.ServerReflectionStub(channel)  # type: ignore[arg-type]
                stream = stub.ServerReflectionInfo()
                await stream.write(reflection_pb2.ServerReflectionRequest(list_services=""))
                assert (await stream.read()).list_services_response.service
                assert await stream.read() is grpc.aio.EOF
                assert await stream.code() is grpc.StatusCode.OK
        finally:
            await server.stop()

    asyncio.run(run())


def test_a_stream_of_reflection_whose_answer_is_not_read_leaves_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reflection, "IDLE_SECONDS", 0.2)
    monkeypatch.setattr(reflection, "MAX_STREAMS", 1)
    flags = ["--grpc-address", "127.0.0.1:0", "--http-address", "none", "--reflection"]
    request = reflection_pb2.ServerReflectionRequest(list_services="")
    service = f"/{reflection.SERVICE_NAMES[0]}/"
    said = http2.headers("ServerReflectionInfo", service=service)
    no_room = struct.pack(">HI", http2.INITIAL_WINDOW_SIZE, 0)

    def later(target: str) -> str:
        """The status of a later call, once one succeeds."""
        until = monotonic() + START_SECONDS
        with http2.connection(target, hello=http2.PREFACE) as link:
            link.sendall(
                http2.frame(http2.SETTINGS, 0, 0, no_room)
                + http2.frame(http2.HEADERS, http2.END_HEADERS, 1, said)
                + http2.frame(http2.DATA, 0, 1, http2.message(request.SerializeToString()))
            )
            next(kind for kind, *_ in http2.frames(link) if kind == http2.HEADERS)  # answered
            status = ""
            while status != "0" and monotonic() < until:
                with http2.connection(target) as other:
                    called = http2.frame(http2.HEADERS, http2.END_HEADERS, 1, said)
                    other.sendall(called + http2.frame(http2.DATA, http2.END_STREAM, 1))
                    status = http2.status(other)
        return status

    async def run() -> None:
        server = Server(loader.load(flags, {}), logs.configure("json", "error", StringIO()))
        await server.start()
        try:
            assert await asyncio.to_thread(later, server.grpc_address) == "0"
        finally:
            await server.stop()

    asyncio.run(run())
