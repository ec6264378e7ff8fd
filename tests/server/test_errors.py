"""Every reason of the catalogue, over the wire, with its details."""

from __future__ import annotations

import ast
import asyncio
import json
import re
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import grpc
import pytest
from bytepair.v1 import text_pb2, tokenizer_pb2
from bytepair_server.admission.executor import Executor
from bytepair_server.admission.limiter import Limiter
from bytepair_server.auth.callers import Callers
from bytepair_server.auth.quotas import Quotas
from bytepair_server.config.settings import Settings
from bytepair_server.observability import logs
from bytepair_server.observability.metrics import Metrics
from bytepair_server.rpc import status
from bytepair_server.rpc.handler import UnaryHandlers
from bytepair_server.rpc.outcome import Shared
from bytepair_server.transport.interface import Limits, Setup
from bytepair_server.transport.native import NativeTransport
from conftest import Serve
from support.failures import Failed, failure, read
from support.serving import RunningServer
from support.slow import SLOW_FLAGS, WITHOUT_CORE, endless_count

ROOT = Path(__file__).parents[2]
END = "<|endoftext|>"
ENCODE = "/bytepair.v1.TokenizerService/Encode"

Encode = tokenizer_pb2.EncodeRequest
Decode = tokenizer_pb2.DecodeRequest
Code = grpc.StatusCode


def send(server: RunningServer, raw: bytes) -> Failed:
    return failure(server.channel.unary_unary(ENCODE), raw)


#: Requests to a server with the default settings, and the expected errors.
CASES: dict[str, tuple[Callable[[RunningServer], Failed], Code, str, dict[str, str], str]] = {
    "unknown encoding": (
        lambda server: failure(server.stub.Encode, Encode(encoding="cl200k", text="x")),
        Code.NOT_FOUND,
        "UNKNOWN_ENCODING",
        {"encoding": "cl200k"},
        "encoding",
    ),
    "no encoding": (
        lambda server: failure(server.stub.Count, tokenizer_pb2.CountRequest(text="x")),
        Code.NOT_FOUND,
        "UNKNOWN_ENCODING",
        {"encoding": ""},
        "encoding",
    ),
    "an encoding's name that is too long to quote": (
        lambda server: failure(server.stub.Encode, Encode(encoding="e" * 100_000)),
        Code.NOT_FOUND,
        "UNKNOWN_ENCODING",
        {"encoding": "e" * status.MAX_QUOTED_CHARACTERS + "…"},
        "encoding",
    ),
    "special token in text": (
        lambda server: failure(server.stub.Encode, Encode(encoding="gpt-4", text=f"né{END}")),
        Code.INVALID_ARGUMENT,
        "SPECIAL_TOKEN_IN_TEXT",
        {"token": END, "byte_offset": "3"},
        "text",
    ),
    "unknown id": (
        lambda server: failure(server.stub.Decode, Decode(encoding="gpt-4", ids=[1, 100256])),
        Code.INVALID_ARGUMENT,
        "UNKNOWN_TOKEN_ID",
        {"encoding": "cl100k_base", "id": "100256", "index": "1"},
        "ids",
    ),
    "unknown id after skipped special ones": (
        lambda server: failure(
            server.stub.Decode,
            Decode(encoding="gpt-4", ids=[100257, 1, 4294967295], skip_special_tokens=True),
        ),
        Code.INVALID_ARGUMENT,
        "UNKNOWN_TOKEN_ID",
        {"encoding": "cl100k_base", "id": "4294967295", "index": "2"},
        "ids",
    ),
    "strict decoding": (
        lambda server: failure(
            server.stub.Decode,
            Decode(
                encoding="gpt-4", ids=[15339, 9468], errors=text_pb2.DECODE_ERRORS_STRICT
            ),
        ),
        Code.INVALID_ARGUMENT,
        "INVALID_UTF8",
        {"byte_offset": "5"},
        "ids",
    ),
    "text that is not UTF-8": (
        lambda server: send(server, b"\x0a\x05gpt-4\x12\x04abc\xff"),
        Code.INVALID_ARGUMENT,
        "INVALID_UTF8",
        {"byte_offset": "3"},
        "text",
    ),
    "an encoding that is not UTF-8": (
        lambda server: send(server, b"\x0a\x01\xff"),
        Code.INVALID_ARGUMENT,
        "INVALID_UTF8",
        {"byte_offset": "0"},
        "encoding",
    ),
    "a segment that is not UTF-8": (
        lambda server: send(server, b"\x0a\x05gpt-4\x1a\x03\x0a\x01a\x1a\x04\x0a\x02a\xff"),
        Code.INVALID_ARGUMENT,
        "INVALID_UTF8",
        {"byte_offset": "1"},
        "segments[1].text",
    ),
    "bytes that are no message": (
        lambda server: send(server, b"\x12\xff"),
        Code.INVALID_ARGUMENT,
        "INVALID_OPTION",
        {"field": "request"},
        "request",
    ),
    "text and segments": (
        lambda server: failure(
            server.stub.Encode,
            Encode(encoding="gpt-4", text="a", segments=[text_pb2.Segment(text="b")]),
        ),
        Code.INVALID_ARGUMENT,
        "INVALID_OPTION",
        {"field": "segments"},
        "segments",
    ),
    "a segment of nothing": (
        lambda server: failure(
            server.stub.Encode, Encode(encoding="gpt-4", segments=[text_pb2.Segment()])
        ),
        Code.INVALID_ARGUMENT,
        "INVALID_OPTION",
        {"field": "segments[0]"},
        "segments[0]",
    ),
    "an unknown unit of offsets": (
        lambda server: send(server, b"\x0a\x05gpt-4\x30\x09"),
        Code.INVALID_ARGUMENT,
        "INVALID_OPTION",
        {"field": "offsets"},
        "offsets",
    ),
    "an unknown action": (
        lambda server: send(server, b"\x0a\x05gpt-4\x28\x09"),
        Code.INVALID_ARGUMENT,
        "INVALID_OPTION",
        {"field": "disallowed_special"},
        "disallowed_special",
    ),
    "strict bytes": (
        lambda server: failure(
            server.stub.Decode,
            Decode(encoding="gpt-4", errors=text_pb2.DECODE_ERRORS_STRICT, as_bytes=True),
        ),
        Code.INVALID_ARGUMENT,
        "INVALID_OPTION",
        {"field": "errors"},
        "errors",
    ),
    "a special token beyond the ceiling": (
        lambda server: failure(server.stub.Encode, Encode(encoding="gpt-4", allowed_special=[END])),
        Code.PERMISSION_DENIED,
        "SPECIAL_TOKEN_NOT_PERMITTED",
        {"token": END, "encoding": "cl100k_base"},
        "allowed_special",
    ),
    "too large": (
        lambda server: failure(
            server.stub.Encode, Encode(encoding="gpt-4", text="a" * (2**20 + 1))
        ),
        Code.INVALID_ARGUMENT,
        "INPUT_TOO_LARGE",
        {"field": "text", "limit": "1048576", "size": "1048577"},
        "text",
    ),
}  # fmt: skip

#: Reasons that need a server of their own, and the test below that provokes each.
PROVOKED_ELSEWHERE = {
    "FINGERPRINT_MISMATCH": "test_a_fingerprint_mismatch_has_both_fingerprints",
    "UNAUTHENTICATED": "test_a_call_without_a_known_key_is_unauthenticated",
    "OVERLOADED": "test_a_call_beyond_the_limit_is_rejected_with_a_retry_delay",
    "QUOTA_EXCEEDED": "test_a_request_beyond_the_quota_is_rejected",
    "STREAM_IDLE": "test_an_idle_stream_ends_after_the_text_that_is_certain",
    "DRAINING": "test_a_new_call_is_rejected_during_the_drain",
    # In test_chat.py:
    "UNKNOWN_CHAT_FORMAT": "test_an_invalid_chat_is_named_by_its_reason",
    "CHAT_FORMAT_MISMATCH": "test_an_invalid_chat_is_named_by_its_reason",
    "TEMPLATE_LIMIT": "test_templates_of_the_configuration_are_formats",
    "INVALID_CHAT": "test_an_invalid_chat_is_named_by_its_reason",
    "CHAT_FORMAT_NOT_PERMITTED": "test_encoding_needs_the_ceiling_and_counting_does_not",
    "BUDGET_TOO_SMALL": "test_a_budget_that_is_too_small_is_an_error_with_the_needed_budget",
}


@pytest.mark.parametrize("case", CASES)
def test_an_error_carries_its_details(server: RunningServer, case: str) -> None:
    provoke, code, reason, metadata, field = CASES[case]
    failed = provoke(server)
    assert (failed.code, failed.reason) == (code, reason)
    assert failed.metadata == metadata
    assert failed.field == field
    assert failed.retry_seconds is None
    assert failed.request_id
    for value in metadata.values():
        assert value in failed.message


def test_a_fingerprint_mismatch_has_both_fingerprints(server: RunningServer) -> None:
    describe = tokenizer_pb2.GetEncodingRequest(encoding="cl100k_base")
    actual = server.stub.GetEncoding(describe).encoding.fingerprint
    expected = "sha256:" + "0" * 64
    for rpc, request in (
        ("Encode", Encode(text=END)),
        ("Count", tokenizer_pb2.CountRequest()),
        ("Decode", Decode(ids=[2**32 - 1])),
        ("BatchEncode", tokenizer_pb2.BatchEncodeRequest()),
        ("BatchDecode", tokenizer_pb2.BatchDecodeRequest()),
        ("BatchCount", tokenizer_pb2.BatchCountRequest()),
    ):
        request.encoding = "cl100k_base"
        request.expected_fingerprint = expected
        failed = failure(getattr(server.stub, rpc), request)
        assert (failed.code, failed.reason) == (Code.FAILED_PRECONDITION, "FINGERPRINT_MISMATCH")
        assert failed.metadata == {
            "encoding": "cl100k_base",
            "expected": expected,
            "actual": actual,
        }
        assert failed.field == "expected_fingerprint"


def test_a_call_beyond_the_limit_is_rejected_with_a_retry_delay(serve: Serve) -> None:
    flags = (*SLOW_FLAGS, "--max-in-flight", "1", "--max-queued", "0")
    server = serve(*flags, environment=WITHOUT_CORE)
    empty = tokenizer_pb2.CountRequest(encoding="cl100k_base")
    with endless_count(server):
        failed, _ = (failure(server.stub.Count, empty) for _ in range(2))
    assert (failed.code, failed.reason) == (Code.RESOURCE_EXHAUSTED, "OVERLOADED")
    assert failed.retry_seconds == 0.25
    assert failed.metadata == {"setting": "max_queued"}
    assert "queued calls (max_queued of its configuration)" in failed.message
    assert server.metric("bytepair_errors_total", rpc="Count", reason="OVERLOADED") == 2
    event = "calls are rejected with OVERLOADED"
    server.wait_for_log(event, rpc="Count", setting="max_queued")
    assert [line["event"] for line in server.log].count(event) == 1
    server.wait_for_metric("bytepair_in_flight", 0)
    assert server.stub.Count(empty).count == 0


def test_every_documented_reason_is_provoked() -> None:
    provoked = {case[2] for case in CASES.values()} | set(PROVOKED_ELSEWHERE)
    files = [ROOT / f"proto/bytepair/v1/{name}.proto" for name in ("tokenizer", "chat")]
    proto = "\n".join(file.read_text(encoding="utf-8") for file in files)
    in_proto = set(re.findall(r"^//   ([A-Z0-9_]+) +[A-Z_]+", proto, re.MULTILINE))
    in_docs = documented_reasons()
    assert provoked | {"INTERNAL"} == in_proto == set(in_docs)
    statuses = {case[2]: case[1].name for case in CASES.values()}
    assert statuses.items() <= in_docs.items()
    here = Path(__file__).parent
    tests = "".join(path.read_text(encoding="utf-8") for path in here.glob("test_*.py"))
    for name in PROVOKED_ELSEWHERE.values():
        assert f"def {name}(" in tests


def documented_reasons() -> dict[str, str]:
    """Return reason to status, from the table in docs/errors.md."""
    page = (ROOT / "docs/errors.md").read_text(encoding="utf-8")
    return dict(re.findall(r"^\| `([A-Z0-9_]+)` \| ([A-Z_]+) \|", page, re.MULTILINE))


def test_the_page_lists_every_rule_of_invalid_chat() -> None:
    calls = [
        node
        for folder in ("engine/python/bytepair_engine/chat", "server/python")
        for file in (ROOT / folder).rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        if isinstance(node.func, ast.Name) and node.func.id == "InvalidChat"
    ]
    given = [node for call in calls for node in ast.walk(call.args[2])]
    rules = {node.value for node in given if isinstance(node, ast.Constant)}
    only_in_the_library = {"not_a_list", "not_text_or_parts"}
    page = (ROOT / "docs/errors.md").read_text(encoding="utf-8")
    _, _, rest = page.partition("The values of `rule` with INVALID_CHAT:\n")
    listed = re.findall(r"`(\w+)`", rest.partition("\n## ")[0])
    assert len(listed) == len(set(listed)) > 30
    assert set(listed) == rules - only_in_the_library


def test_an_unexpected_error_is_bland_and_logged_without_the_text() -> None:
    """The handler without a service fails with an exception that the table does not contain."""
    log = StringIO()

    async def call() -> Failed:
        settings = Settings()
        limiter = Limiter(settings)
        limiter.open()
        shared = Shared(
            limiter=limiter,
            callers=Callers(),
            quotas=Quotas({}, Callers()),
            executor=Executor(1, 1000),
            metrics=Metrics(),
            log=logs.configure("json", "info", log),
            settings=settings,
        )
        handlers = UnaryHandlers(shared)
        faults: list[BaseException] = []
        setup = Setup(handlers.methods(), Limits.of(settings), faults.append, lambda *_: None)
        transport = NativeTransport(setup)
        address = await transport.start("127.0.0.1:0", shares_port=False, unix_socket_mode="0600")
        async with grpc.aio.insecure_channel(address) as channel:
            method: Any = channel.unary_unary(ENCODE)
            request = Encode(encoding="secret-name", text="secret text").SerializeToString()
            try:
                await method(request, metadata=(("x-request-id", "mine"),))
            except grpc.RpcError as error:
                return read(error)
            finally:
                await transport.stop()
                assert not faults
        raise AssertionError("the call did not fail")

    failed = asyncio.run(call())
    assert (failed.code, failed.reason) == (Code.INTERNAL, "INTERNAL")
    assert failed.metadata == {"request_id": "mine"}
    assert failed.message == "internal error; quote request id mine to the operator"
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    (line,) = [line for line in lines if line["event"] == "unexpected error"]
    assert line["request_id"] == "mine"
    assert line["error"][-1] == "AssertionError"
    assert any("handler.py" in place for place in line["error"])
    assert "secret" not in log.getvalue()
