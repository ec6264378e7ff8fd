"""Each limit: one below, at it, and one above."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from bytepair.v1 import chat_pb2, chat_pb2_grpc, context_pb2, text_pb2, tokenizer_pb2
from bytepair_server.config.settings import Settings
from support.failures import failure
from support.plain_http import ask
from support.serving import RunningServer
from support.streaming import DecodeRequest, EncodeRequest, answers_of, decode_config, encode_config

pytestmark = pytest.mark.slow  # it starts servers for few tests

LIMIT = 8
#: Maximum bytes of a chat.
CHAT_BYTES = 100
FLAGS = ("input-bytes", "ids", "batch-items", "segments", "allowed-special", "pending-bytes")


@pytest.fixture(scope="module")
def small() -> Iterator[RunningServer]:
    """A server whose limits on content are all LIMIT."""
    flags = [part for name in FLAGS for part in (f"--max-{name}", str(LIMIT))]
    with RunningServer("--builtin-encodings", "cl100k_base", *flags) as running:
        yield running


@pytest.fixture(scope="module")
def small_chats() -> Iterator[RunningServer]:
    """A server that takes chats of CHAT_BYTES and LIMIT parts, and batches of LIMIT."""
    flags = ("--max-segments", str(LIMIT), "--max-batch-items", str(LIMIT))
    size = ("--max-input-bytes", str(CHAT_BYTES))
    with RunningServer("--builtin-encodings", "cl100k_base", *flags, *size) as running:
        yield running


def text(size: int) -> dict[str, Any]:
    return {"text": "a" * size}


def wide_text(size: int) -> dict[str, Any]:
    """text-embeddings-inference compared a limit in bytes with a number of characters."""
    return {"text": "a" * (size % 2) + "é" * (size // 2)}


def segments(number: int) -> dict[str, Any]:
    return {"segments": [text_pb2.Segment(text="")] * number}


def segment_text(size: int) -> dict[str, Any]:
    return {"segments": [text_pb2.Segment(text="a"), text_pb2.Segment(text="b" * (size - 1))]}


def items(number: int) -> dict[str, Any]:
    return {"items": [text_pb2.TextItem()] * number}


def item_text(size: int) -> dict[str, Any]:
    return {"items": [text_pb2.TextItem(text="a"), text_pb2.TextItem(text="b" * (size - 1))]}


def item_segments(number: int) -> dict[str, Any]:
    half = number // 2
    return {"items": [text_pb2.TextItem(**segments(n)) for n in (half, number - half)]}


def mixed_items(number: int) -> dict[str, Any]:
    return {"items": [text_pb2.TextItem(**segments(1)), *items(number - 1)["items"]]}


def mixed_text(size: int) -> dict[str, Any]:
    return {"items": [text_pb2.TextItem(**segment_text(2)), text_pb2.TextItem(**text(size - 2))]}


def ids(number: int) -> dict[str, Any]:
    return {"ids": [0] * number}


def id_items(number: int) -> dict[str, Any]:
    return {"items": [tokenizer_pb2.IdsItem()] * number}


def item_ids(number: int) -> dict[str, Any]:
    return {
        "items": [tokenizer_pb2.IdsItem(ids=[0]), tokenizer_pb2.IdsItem(ids=[0] * (number - 1))]
    }


@pytest.mark.parametrize(
    ("rpcs", "fill", "field"),
    [
        (("Encode", "Count", "Truncate", "Split", "Inspect"), text, "text"),
        (("Encode", "Count", "Truncate", "Split", "Inspect"), wide_text, "text"),
        (("Encode", "Count"), segments, "segments"),
        (("Encode", "Count"), segment_text, "text"),
        (("BatchEncode", "BatchCount", "BatchTruncate"), items, "items"),
        (("BatchEncode", "BatchCount", "BatchTruncate"), item_text, "items.text"),
        (("BatchEncode", "BatchCount"), mixed_items, "items"),
        (("BatchEncode", "BatchCount"), mixed_text, "items.text"),
        (("BatchEncode", "BatchCount"), item_segments, "items.segments"),
        (("Decode",), ids, "ids"),
        (("BatchDecode",), id_items, "items"),
        (("BatchDecode",), item_ids, "items.ids"),
    ],
)
def test_a_limit_is_inclusive(
    small: RunningServer, rpcs: tuple[str, ...], fill: Any, field: str
) -> None:
    for rpc in rpcs:
        module = tokenizer_pb2 if hasattr(tokenizer_pb2, f"{rpc}Request") else context_pb2
        make, call = getattr(module, f"{rpc}Request"), getattr(small.stub, rpc)
        usual = {"max_tokens": LIMIT} if rpc.endswith(("Truncate", "Split")) else {}
        for size in (LIMIT - 1, LIMIT):
            made = make(encoding="cl100k_base", **usual, **fill(size))
            assert call(made).encoding == "cl100k_base"
        failed = failure(call, make(encoding="cl100k_base", **usual, **fill(LIMIT + 1)))
        assert (failed.code, failed.reason) == (
            grpc.StatusCode.INVALID_ARGUMENT,
            "INPUT_TOO_LARGE",
        )
        assert failed.metadata == {"field": field, "limit": str(LIMIT), "size": str(LIMIT + 1)}
        assert failed.field == field


def test_the_marker_of_a_truncation_is_limited(small: RunningServer) -> None:
    """It is counted for each item of a batch: a large one would cost minutes."""
    options: dict[str, Any] = {"encoding": "cl100k_base", "max_tokens": LIMIT}
    item = text_pb2.TextItem(text="a")
    for make, call, one in (
        (context_pb2.TruncateRequest, small.stub.Truncate, {"text": "a"}),
        (context_pb2.BatchTruncateRequest, small.stub.BatchTruncate, {"items": [item]}),
    ):
        assert call(make(marker="é" * 512, **options, **one)).encoding == "cl100k_base"
        failed = failure(call, make(marker="é" * 512 + "a", **options, **one))
        assert failed.metadata == {"field": "marker", "limit": "1024", "size": "1025"}


def chat_of(rpc: str, messages: list[Any]) -> Any:
    fields: dict[str, Any] = {"encoding": "cl100k_base", "format": "openai-chat"}
    if rpc == "BatchCountChat":
        return chat_pb2.BatchCountChatRequest(
            items=[chat_pb2.ChatItem(messages=messages)], **fields
        )
    return getattr(chat_pb2, f"{rpc}Request")(messages=messages, **fields)


def chat_of_parts(rpc: str, over: int) -> Any:
    return chat_of(rpc, [chat_pb2.ChatMessage(role="user")] * (LIMIT + over))


def chat_of_bytes(rpc: str, over: int) -> Any:
    return chat_of(rpc, [user_message(CHAT_BYTES + over)])


def chat_of_bytes_in_every_text(rpc: str, over: int) -> Any:
    call = chat_pb2.ToolCall(id="i", name="n", arguments_json="{}")
    texts = {
        field.name: "é"
        for field in chat_pb2.ChatMessage.DESCRIPTOR.fields
        if field.cpp_type == field.CPPTYPE_STRING and field.name != "role"
    }
    parts = [chat_pb2.ContentPart(json="{}"), chat_pb2.ContentPart(counted_tokens=1 << 20)]
    message = chat_pb2.ChatMessage(role="user", content=parts, tool_calls=[call], **texts)
    used = 2 * len(texts) + len("in{}") + len("{}") + len("{}")
    made = chat_of(rpc, [message, user_message(CHAT_BYTES + over - used)])
    (made.items[0] if rpc == "BatchCountChat" else made).tools.add(json="{}")
    return made


def user_message(size: int) -> Any:
    return chat_pb2.ChatMessage(role="user", content=[chat_pb2.ContentPart(**text(size))])


@pytest.mark.parametrize("rpc", ["CountChat", "EncodeChat", "FitChat", "BatchCountChat"])
@pytest.mark.parametrize(
    ("make", "limit"),
    [
        (chat_of_parts, LIMIT),
        (chat_of_bytes, CHAT_BYTES),
        (chat_of_bytes_in_every_text, CHAT_BYTES),
    ],
)
def test_the_parts_and_the_size_of_a_chat_are_limited(
    small_chats: RunningServer, rpc: str, make: Any, limit: int
) -> None:
    """At the limits, a call may fail for another reason."""
    stub: Any = chat_pb2_grpc.ChatServiceStub(small_chats.channel)  # type: ignore[no-untyped-call]
    field = "items.messages" if rpc == "BatchCountChat" else "messages"
    for over in (0, 1):
        _, failed = answers_of(lambda given: [getattr(stub, rpc)(*given)], [make(rpc, over)])
        too_large = failed is not None and failed.reason == "INPUT_TOO_LARGE"
        assert too_large == bool(over)
    assert failed is not None
    assert failed.metadata == {"field": field, "limit": str(limit), "size": str(limit + 1)}


def test_options_do_not_count_as_text_of_a_chat(small_chats: RunningServer) -> None:
    stub: Any = chat_pb2_grpc.ChatServiceStub(small_chats.channel)  # type: ignore[no-untyped-call]
    made = chat_of("CountChat", [user_message(CHAT_BYTES)])
    counted = stub.CountChat(made)
    made.expected_fingerprint = counted.fingerprint
    made.expected_format_fingerprint = counted.format_fingerprint
    made.options.add_generation_prompt = True
    assert stub.CountChat(made) == counted


def test_the_pinned_messages_of_a_chat_are_limited(small_chats: RunningServer) -> None:
    stub: Any = chat_pb2_grpc.ChatServiceStub(small_chats.channel)  # type: ignore[no-untyped-call]
    made = chat_of("FitChat", [user_message(1)])
    made.max_tokens = LIMIT
    made.pinned.extend([0] * LIMIT)
    assert stub.FitChat(made).kept == [0]
    made.pinned.append(0)
    assert failure(stub.FitChat, made).metadata["size"] == str(LIMIT + 1)


def test_the_items_of_a_batch_of_chats_are_limited(small_chats: RunningServer) -> None:
    stub: Any = chat_pb2_grpc.ChatServiceStub(small_chats.channel)  # type: ignore[no-untyped-call]
    batch = chat_of("BatchCountChat", [])
    batch.items.extend([chat_pb2.ChatItem()] * (LIMIT - 1))
    assert len(stub.BatchCountChat(batch).results) == LIMIT
    batch.items.add()
    assert failure(stub.BatchCountChat, batch).field == "items"


def test_allowed_special_has_its_own_limit(small: RunningServer) -> None:
    for size, reason in (
        (LIMIT - 1, "SPECIAL_TOKEN_NOT_PERMITTED"),
        (LIMIT, "SPECIAL_TOKEN_NOT_PERMITTED"),
        (LIMIT + 1, "INPUT_TOO_LARGE"),
    ):
        request = tokenizer_pb2.CountRequest(encoding="cl100k_base", allowed_special=["x"] * size)
        assert failure(small.stub.Count, request).reason == reason


@pytest.mark.parametrize(
    ("rpc", "field", "messages"),
    [
        ("DecodeStream", "config.prefill_ids", lambda n: [decode_config(prefill_ids=[0] * n)]),
        ("DecodeStream", "ids", lambda n: [decode_config(), DecodeRequest(ids=[0] * n)]),
        ("EncodeStream", "text", lambda n: [encode_config(), EncodeRequest(text="a" * n)]),
    ],
)
def test_the_message_and_the_pending_text_of_a_stream_are_limited(
    small: RunningServer, rpc: str, field: str, messages: Any
) -> None:
    for size in (LIMIT - 1, LIMIT):
        answers, failed = answers_of(getattr(small.stub, rpc), messages(size))
        assert failed is None
        assert answers[-1].finished
    failed = answers_of(getattr(small.stub, rpc), messages(LIMIT + 1))[1]
    assert failed is not None
    assert failed.reason == "INPUT_TOO_LARGE"
    size_of_message = {} if field == "text" else {"size": str(LIMIT + 1)}
    assert failed.metadata == {"field": field, "limit": str(LIMIT), **size_of_message}


def test_a_message_far_beyond_the_limits_is_rejected_before_it_is_read(
    small: RunningServer,
) -> None:
    far = tokenizer_pb2.CountRequest(encoding="cl100k_base", text="a" * (1 << 20))
    failed = failure(small.stub.Count, far)
    assert (failed.code, failed.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INPUT_TOO_LARGE")
    assert (failed.field, failed.metadata["size"]) == ("message", str(far.ByteSize()))
    near = tokenizer_pb2.CountRequest(encoding="cl100k_base", text="a" * (1 << 16))
    failed = failure(small.stub.Count, near)
    assert (failed.reason, failed.field) == ("INPUT_TOO_LARGE", "text")
    assert "the operator's max_input_bytes decides this limit" in failed.message


def test_a_message_that_decompresses_far_beyond_the_limits_is_rejected(
    small: RunningServer, pytestconfig: pytest.Config
) -> None:
    """tonic #2484, grpc #41996: the limit applied to the compressed size."""
    bomb = tokenizer_pb2.CountRequest(encoding="cl100k_base", text="a" * (1 << 24))
    failed = failure(small.stub.Count, bomb, compression=grpc.Compression.Gzip)
    if pytestconfig.getoption("--transport") == "grpcio":
        assert failed.code is grpc.StatusCode.RESOURCE_EXHAUSTED
        return
    assert (failed.code, failed.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INPUT_TOO_LARGE")
    assert (failed.field, "size" in failed.metadata) == ("message", False)


@pytest.mark.parametrize(("content_type", "field"), [("json", "request"), ("proto", "message")])
def test_a_message_of_unstated_size_is_limited_in_the_same_way(
    server: RunningServer, pytestconfig: pytest.Config, content_type: str, field: str
) -> None:
    if pytestconfig.getoption("--transport") == "grpcio":
        pytest.skip("grpcio does not speak HTTP/1.1")
    counted = {"rpc": "Count", "reason": "INPUT_TOO_LARGE"}
    before = server.metric("bytepair_errors_total", **counted)
    size = 1 + Settings().max_message_bytes
    chunk = b"%x\r\n" % size + bytes(size)
    answer = ask(
        server.target,
        "/bytepair.v1.TokenizerService/Count",
        "POST",
        chunk,
        content_type=f"application/{content_type}",
        transfer_encoding="chunked",
    )
    assert answer.status == 400
    assert f'"message":"{field}: more than '.encode() in answer.body
    server.wait_for_metric("bytepair_errors_total", before + 1, **counted)


def test_metadata_beyond_the_limit_is_rejected_by_grpc(small: RunningServer) -> None:
    request = tokenizer_pb2.CountRequest(encoding="cl100k_base")
    assert small.stub.Count(request, metadata=(("x-small", "a" * 8_000),)).count == 0
    failed = failure(small.stub.Count, request, metadata=(("x-large", "a" * 32_000),))
    assert failed.code is grpc.StatusCode.RESOURCE_EXHAUSTED
