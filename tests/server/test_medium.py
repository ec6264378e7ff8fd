"""Calls that are first tried on the event loop, and move to a thread."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from bytepair.v1 import text_pb2
from bytepair.v1.context_pb2 import SplitRequest
from bytepair.v1.tokenizer_pb2 import BatchCountRequest, CountRequest
from support.failures import failure
from support.keys import keys_toml, with_key
from support.oracle import oracle
from support.serving import RunningServer, write_config

pytestmark = pytest.mark.slow  # it starts servers for few tests

#: The hard ones exceed the time limit of the attempt and move to the thread.
TEXTS = {
    "ordinary": "Counts of medium size, as they come. " * 2000,
    "one pre-token": "ab" * 38_000,
    "hard, and it names a special token": "xyzzy" * 15_000 + "<|endoftext|>",
}
BYTES = {name: len(text.encode()) for name, text in TEXTS.items()}
CONFIG = f"""
api_keys_file = "keys.toml"
builtin_encodings = ["cl100k_base"]
[quotas.split]
requests_per_second = 0.001
request_burst = 2
concurrent_requests = 1
[quotas.exact]
input_bytes_per_second = 0.001
input_burst_bytes = {2 * max(BYTES.values()) + 1000}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("medium")
    callers = {
        name: name for name in ("free", "exact", "split", *(f"c{n}" for n in range(len(TEXTS))))
    }
    (folder / "keys.toml").write_text(keys_toml(**callers))
    with RunningServer("--config", write_config(folder, CONFIG), "--work-threads", "1") as running:
        yield running


def counted(text: str) -> int:
    return len(oracle("cl100k_base").encode(text, disallowed_special=()))


@pytest.mark.parametrize("kind", TEXTS)
def test_a_medium_text_is_counted_once_and_correctly(server: RunningServer, kind: str) -> None:
    caller, text = f"c{[*TEXTS].index(kind)}", TEXTS[kind]
    request = CountRequest(encoding="cl100k_base", text=text)
    assert server.stub.Count(request, **with_key(caller)).count == counted(text)
    used = {
        name: server.metric(f"bytepair_caller_{name}_total", caller=caller)
        for name in ("requests", "input_bytes", "tokens")
    }
    assert used == {"requests": 1, "input_bytes": BYTES[kind], "tokens": counted(text)}
    spelled = server.metric("bytepair_policy_total", caller=caller, action="as_text")
    assert spelled == ("<|" in text)


def test_a_medium_batch_is_counted_correctly(server: RunningServer) -> None:
    texts = ["", *(text[: BYTES[kind] // 3] for kind, text in TEXTS.items())]
    items = [text_pb2.TextItem(text=text) for text in texts]
    request = BatchCountRequest(encoding="cl100k_base", items=items)
    results = server.stub.BatchCount(request, **with_key("free")).results
    assert [result.count for result in results] == [*map(counted, texts)]


def test_a_medium_text_that_is_not_utf8_is_rejected(server: RunningServer) -> None:
    text = b"a" * 50_000 + b"\xff"
    empty = CountRequest(encoding="cl100k_base").SerializeToString()
    prefix = b"\x12" + bytes((len(text) & 127 | 128, len(text) >> 7 & 127 | 128, len(text) >> 14))
    call: Any = server.channel.unary_unary("/bytepair.v1.TokenizerService/Count")
    failed = failure(call, empty + prefix + text, **with_key("free"))
    assert failed.reason == "INVALID_UTF8"
    assert failed.metadata["byte_offset"] == "50000"


def test_a_medium_text_is_charged_once(server: RunningServer) -> None:
    request = CountRequest(encoding="cl100k_base", text=TEXTS["one pre-token"])
    server.stub.Count(request, **with_key("exact"))
    server.stub.Count(request, **with_key("exact"))
    assert failure(server.stub.Count, request, **with_key("exact")).reason == "QUOTA_EXCEEDED"


def test_a_costly_small_call_is_charged_once(server: RunningServer) -> None:
    request = SplitRequest(encoding="cl100k_base", text="qz" * 5000, max_tokens=2)
    for _ in range(2):
        chunks = server.stub.Split(request, **with_key("split")).chunks
        assert sum(chunk.end - chunk.start for chunk in chunks) == len(request.text)
    failed = failure(server.stub.Split, request, **with_key("split"))
    assert failed.metadata["quota"] == "requests_per_second"
    assert server.metric("bytepair_caller_requests_total", caller="split") == 3
    tokens = server.metric("bytepair_caller_tokens_total", caller="split")
    assert tokens == 2 * sum(chunk.count for chunk in chunks)
