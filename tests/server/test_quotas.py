"""Quotas of callers: the answers of a server."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from time import monotonic, sleep
from typing import Any

import grpc
import pytest
from bytepair.v1 import text_pb2, tokenizer_pb2
from bytepair.v1.context_pb2 import SplitRequest
from support.failures import Failed, failure
from support.http2 import (
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    RST_STREAM,
    connection,
    frame,
    headers,
    message,
)
from support.keys import keys_toml, with_key
from support.serving import START_SECONDS, RunningServer, write_config
from support.streaming import (
    CountRequest,
    EncodeRequest,
    Talk,
    answers_of,
    count_config,
    encode_config,
)

#: One caller for each test, so that no test uses up another's quota.
CALLERS = (
    *("free", "requests", "streamed", "under", "exact", "over", "large", "batch", "open", "busy"),
    *("paced", "grouped", "threaded", "pieces", "json", "reset", "invalid"),
    *("unread", "waiting", "empty"),
)
#: Rates so low that no quota refills within a test.
SLOW = 0.001
CONFIG = f"""
api_keys_file = "keys.toml"
builtin_encodings = ["cl100k_base"]

[callers.grouped]
group = "few"
[quotas.few]
requests_per_second = {SLOW}
request_burst = 1
[quotas.requests]
requests_per_second = {SLOW}
request_burst = 3
[quotas.streamed]
requests_per_second = {SLOW}
request_burst = 2
[quotas.invalid]
requests_per_second = {SLOW}
request_burst = 2
[quotas.open]
open_streams = 2
[quotas.busy]
concurrent_requests = 1
[quotas.reset]
concurrent_requests = 1
[quotas.waiting]
concurrent_requests = 1
[quotas.empty]
input_bytes_per_second = {SLOW}
input_burst_bytes = 60
[quotas.paced]
input_bytes_per_second = 1000
input_burst_bytes = 100
""" + "".join(
    f"[quotas.{name}]\ninput_bytes_per_second = {SLOW}\ninput_burst_bytes = 1000\n"
    for name in ("under", "exact", "over", "large", "threaded", "unread", "batch", "pieces", "json")
)


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server whose callers have the quotas above. Each caller's key is its name. A stream waits
    for its quota for longer than it may be idle."""
    folder = tmp_path_factory.mktemp("quotas")
    (folder / "keys.toml").write_text(keys_toml(**{name: name for name in CALLERS}))
    flags = ("--max-queue-seconds", "0", "--work-threads", "1", "--stream-idle-seconds", "2")
    with RunningServer("--config", write_config(folder, CONFIG), *flags) as running:
        yield running


def sized(size: int) -> tokenizer_pb2.CountRequest:
    """Return a request whose message has this size in bytes."""
    empty = tokenizer_pb2.CountRequest(encoding="gpt-4")
    text = size - empty.ByteSize() - 2
    request = tokenizer_pb2.CountRequest(encoding="gpt-4", text="a" * text)
    if request.ByteSize() != size:
        request.text = request.text[: size - request.ByteSize()]
    assert request.ByteSize() == size
    return request


def refused(server: RunningServer, caller: str, size: int) -> Failed:
    failed = failure(server.stub.Count, sized(size), **with_key(caller))
    assert (failed.code, failed.reason) == (
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        "QUOTA_EXCEEDED",
    )
    return failed


@pytest.mark.slow
def test_a_request_beyond_the_quota_is_rejected(limited: RunningServer) -> None:
    for _ in range(3):
        limited.stub.Count(sized(20), **with_key("requests"))
    failed = refused(limited, "requests", 20)
    assert failed.metadata == {"quota": "requests_per_second", "limit": "0.001"}
    assert failed.retry_seconds is not None
    assert 900 < failed.retry_seconds <= 1000
    labels = {"caller": "requests", "rpc": "Count", "quota": "requests_per_second"}
    assert limited.metric("bytepair_quota_exceeded_total", **labels) == 1
    assert limited.metric("bytepair_errors_total", rpc="Count", reason="OVERLOADED") == 0
    limited.stub.Count(sized(20), **with_key("free"))


def test_an_invalid_request_counts_as_one(limited: RunningServer) -> None:
    """Otherwise it would cost its caller nothing, and the server as much as a valid one."""
    count: Any = limited.channel.unary_unary("/bytepair.v1.TokenizerService/Count")
    for _ in range(2):
        with pytest.raises(grpc.RpcError) as caught:
            count(b"\x0a\x01\xff", timeout=20, **with_key("invalid"))
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    refused(limited, "invalid", 20)


def test_a_group_s_quota_applies_to_each_caller_separately(limited: RunningServer) -> None:
    limited.stub.Count(sized(20), **with_key("grouped"))
    refused(limited, "grouped", 20)


def test_a_stream_counts_as_one_request(limited: RunningServer) -> None:
    messages = [count_config(), CountRequest(text="a"), CountRequest(text="b")]
    limited.stub.CountStream(iter(messages), **with_key("streamed"))
    limited.stub.Count(sized(20), **with_key("streamed"))
    refused(limited, "streamed", 20)
    failed = answers_of(
        lambda m: limited.stub.EncodeStream(m, **with_key("streamed")), [encode_config()]
    )[1]
    assert failed is not None
    assert failed.reason == "QUOTA_EXCEEDED"


@pytest.mark.parametrize(("caller", "second"), [("under", 399), ("exact", 400)])
def test_bytes_up_to_the_burst_are_accepted(
    limited: RunningServer, caller: str, second: int
) -> None:
    limited.stub.Count(sized(600), **with_key(caller))
    limited.stub.Count(sized(second), **with_key(caller))


def test_a_json_call_is_charged_its_own_bytes(limited: RunningServer) -> None:
    headers = {"content-type": "application/json", **dict(with_key("json")["metadata"])}
    request = '{"encoding": "cl100k_base"}'.ljust(600)

    def status() -> int:
        with closing(HTTPConnection(limited.target)) as connection:
            connection.request("POST", "/bytepair.v1.TokenizerService/Count", request, headers)
            with connection.getresponse() as answer:
                return answer.status

    assert [status(), status()] == [200, 429]


def test_a_call_beyond_the_byte_quota_is_rejected_and_charged_nothing(
    limited: RunningServer,
) -> None:
    limited.stub.Count(sized(600), **with_key("over"))
    failed = refused(limited, "over", 401)
    assert failed.metadata == {"quota": "input_bytes_per_second", "limit": "0.001"}
    assert failed.retry_seconds is not None
    assert 0 < failed.retry_seconds <= 1000
    limited.stub.Count(sized(400), **with_key("over"))


@pytest.mark.parametrize(
    ("caller", "size"), [("large", 5_000), ("threaded", 100_000), ("unread", 300_000)]
)
def test_a_call_larger_than_the_burst_is_accepted_once_and_leaves_a_debt(
    limited: RunningServer, caller: str, size: int
) -> None:
    """It is charged once, also if a thread computes it."""
    limited.stub.Count(sized(size), **with_key(caller))
    failed = refused(limited, caller, 20)
    assert failed.retry_seconds is not None
    assert (size - 1000) / SLOW < failed.retry_seconds <= size / SLOW


def test_a_batch_is_charged_once_for_all_items(limited: RunningServer) -> None:
    items = [text_pb2.TextItem(text="a" * 400) for _ in range(2)]
    batch = tokenizer_pb2.BatchCountRequest(encoding="gpt-4", items=items)
    limited.stub.BatchCount(batch, **with_key("batch"))
    left = 1000 - batch.ByteSize()
    refused(limited, "batch", left + 1)
    limited.stub.Count(sized(left), **with_key("batch"))


def test_open_streams_have_their_own_quota(limited: RunningServer) -> None:
    def talk() -> Talk:
        return Talk(lambda m: limited.stub.EncodeStream(m, **with_key("open")))

    first, second = talk(), talk()
    first.say(encode_config())
    second.say(encode_config())
    _, failed = talk().last(encode_config())
    assert failed is not None
    assert failed.reason == "QUOTA_EXCEEDED"
    assert failed.metadata == {"quota": "open_streams", "limit": "2"}
    assert failed.retry_seconds == 0.25
    first.close()
    limited.wait_for_metric("bytepair_open_streams", 1)
    third = talk()
    third.say(encode_config())
    for open_stream in (second, third):
        assert open_stream.close()[1] is None


def test_each_message_of_a_stream_is_charged(limited: RunningServer) -> None:
    talk = Talk(lambda m: limited.stub.EncodeStream(m, **with_key("pieces")))
    talk.say(encode_config())
    for _ in range(10):
        talk.say(EncodeRequest(text=" word" * 20))
    talk.cancel()
    refused(limited, "pieces", 20)


def test_an_empty_message_of_a_stream_is_charged_a_byte(limited: RunningServer) -> None:
    talk = Talk(lambda m: limited.stub.EncodeStream(m, **with_key("empty")))
    config = encode_config()
    talk.say(config)
    for _ in range(20):
        talk.say(EncodeRequest())
    left = 40 - config.ByteSize()
    refused(limited, "empty", left + 1)
    limited.stub.Count(sized(left), **with_key("empty"))
    talk.cancel()


@pytest.mark.slow
def test_a_stream_beyond_its_quota_waits_without_loss_while_calls_are_rejected(
    limited: RunningServer,
) -> None:
    talk = Talk(lambda m: limited.stub.EncodeStream(m, **with_key("paced")))
    talk.say(encode_config())
    answers = [talk.say(EncodeRequest(text="word " * 600))]
    refused(limited, "paced", 20)
    answers.append(talk.say(EncodeRequest(text="word " * 3)))
    # It was read once the debt of the first was paid: its own bytes at most are owed now.
    late = answers_of(lambda m: [limited.stub.Count(*m, **with_key("paced"))], [sized(20)])[1]
    assert late is None or (late.retry_seconds or 0) < 1
    rest, failed = talk.close()
    assert failed is None
    answers += rest
    got = [token_id for answer in answers for token_id in answer.ids]
    expected = limited.stub.Encode(
        tokenizer_pb2.EncodeRequest(encoding="gpt-4", text="word " * 603), **with_key("free")
    ).ids
    assert got == list(expected)


def test_an_answered_call_no_longer_counts_as_concurrent(limited: RunningServer) -> None:
    for size in (20, 20, 100_000, 100_000, 20):
        limited.stub.Count(sized(size), **with_key("busy"))


def test_a_call_counts_as_concurrent_while_it_holds_a_slot_for_its_message(
    limited: RunningServer, pytestconfig: pytest.Config
) -> None:
    """Otherwise one caller could hold all slots by messages that never come."""
    if pytestconfig.getoption("--transport") == "grpcio":
        pytest.skip("it reads messages before their calls are admitted")
    with connection(limited.target) as link:
        begun = frame(DATA, 0, 1, message(b"", length=1_000_000))
        link.sendall(frame(HEADERS, END_HEADERS, 1, headers("Count", key="waiting")) + begun)
        limited.wait_for_metric("bytepair_in_flight", 1)
        failed = refused(limited, "waiting", 20)
        assert failed.metadata == {"quota": "concurrent_requests", "limit": "1"}
        refused(limited, "waiting", 300_000)
    limited.wait_for_metric("bytepair_in_flight", 0)
    limited.stub.Count(sized(20), **with_key("waiting"))


def test_calls_that_are_reset_at_any_time_leave_the_quota(limited: RunningServer) -> None:
    request = SplitRequest(encoding="cl100k_base", text="qz" * 2000, max_tokens=1)
    costly = tokenizer_pb2.CountRequest(encoding="cl100k_base", text="xyzzy" * 3000)
    said = headers("Split", key="reset")
    body = message(request.SerializeToString())
    with connection(limited.target) as link:
        for number in range(60):
            stream = 2 * number + 1
            others = [limited.stub.Count.future(costly, **with_key("free")) for _ in range(20)]
            sleep(0.002)  # the event loop is busy now
            link.sendall(
                frame(HEADERS, END_HEADERS, stream, said) + frame(DATA, END_STREAM, stream, body)
            )
            sleep(0.0005 * (number % 8))
            link.sendall(frame(RST_STREAM, 0, stream, struct.pack(">I", 8)))
            for other in others:
                other.result()
    until = monotonic() + START_SECONDS
    while True:  # the last ones may still run
        try:
            limited.stub.Count(costly, **with_key("reset"))
            return
        except grpc.RpcError:
            assert monotonic() < until, "the quota is never free again"
            sleep(0.1)
