"""Usage metrics of each caller."""

from __future__ import annotations

from pathlib import Path

import grpc
from bytepair.v1 import context_pb2, tokenizer_pb2
from bytepair_server.observability.metrics import MAX_CALLERS, Metrics
from bytepair_server.shared.metrics import OTHER
from conftest import Serve
from prometheus_client import generate_latest
from support.failures import failure
from support.keys import keys_toml, with_key
from support.serving import RunningServer, write_config
from support.streaming import (
    CountRequest,
    DecodeRequest,
    EncodeRequest,
    Talk,
    answers_of,
    count_config,
    decode_config,
    encode_config,
)

END = "<|endoftext|>"

#: Metric, without its prefix and suffix, to value.
Use = dict[str, float]


def use_of(server: RunningServer, caller: str) -> Use:
    return {
        what: server.metric(f"bytepair_caller_{what}_total", caller=caller)
        for what in ("requests", "input_bytes", "tokens")
    }


def test_usage_is_counted_per_caller(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "keys.toml").write_text(keys_toml(chat="chat-key", billing="billing-key"))
    config = write_config(tmp_path, "api_keys_file = 'keys.toml'\nmax_chunks = 1")
    server = serve("--config", config)
    # Prometheus ignores the first value of a series, so each begins before the first call.
    assert server.get("/metrics")[1].count("bytepair_caller_tokens_total{") == 2
    count, chat = server.stub.Count, with_key("chat-key")
    request = tokenizer_pb2.CountRequest(encoding="gpt-4", text="né é")
    count(request, **chat)
    count(request, **with_key("billing-key"))
    messages = [count_config("gpt-4"), CountRequest(text="né é")]
    server.stub.CountStream(iter(messages), **chat)
    request.encoding = "nope"
    failure(count, request, **chat)
    # A failed call returns nothing.
    split = context_pb2.SplitRequest(encoding="gpt-4", text="né é", max_tokens=1)
    assert failure(server.stub.Split, split, **chat).reason == "INPUT_TOO_LARGE"
    assert use_of(server, "chat") == {"requests": 4, "input_bytes": 18, "tokens": 4}
    assert use_of(server, "billing") == {"requests": 1, "input_bytes": 6, "tokens": 2}
    # An unauthenticated caller has no series.
    assert failure(count, request).code is grpc.StatusCode.UNAUTHENTICATED
    assert server.get("/metrics")[1].count("bytepair_caller_requests_total{") == 2


def test_what_a_stream_processed_is_counted_if_it_fails_or_is_cancelled(serve: Serve) -> None:
    server = serve()
    pieces = [encode_config(), EncodeRequest(text="one two three "), EncodeRequest(text=END)]
    answers, failed = answers_of(server.stub.EncodeStream, pieces)
    assert failed is not None
    ids = sum(len(answer.ids) for answer in answers)
    use = {"requests": 1, "input_bytes": len("one two three "), "tokens": ids}
    assert use_of(server, "anonymous") == use
    talk = Talk(server.stub.DecodeStream)
    talk.say(decode_config())
    assert talk.say(DecodeRequest(ids=[64, 64, 64])).text == "aaa"
    talk.cancel()
    server.wait_for_metric("bytepair_caller_requests_total", 2, caller="anonymous")
    assert use_of(server, "anonymous") == {**use, "requests": 2, "tokens": ids + 3}


def test_the_number_of_callers_in_metrics_is_bounded() -> None:
    metrics = Metrics()
    for number in range(MAX_CALLERS + 5):
        metrics.used(f"caller-{number}", 3, 2)
    metrics.used("caller-0", 3, 2)
    page = generate_latest(metrics.registry).decode()
    assert page.count("bytepair_caller_tokens_total{") == MAX_CALLERS + 1
    assert f'bytepair_caller_tokens_total{{caller="{OTHER}"}} 10.0' in page
    assert 'bytepair_caller_input_bytes_total{caller="caller-0"} 6.0' in page
