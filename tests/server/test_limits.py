"""Each limit: one below, at it, and one above."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from bytepair.v1 import text_pb2, tokenizer_pb2
from support.failures import failure
from support.serving import RunningServer
from support.streaming import DecodeRequest, EncodeRequest, answers_of, decode_config, encode_config

LIMIT = 8
FLAGS = ("input-bytes", "ids", "batch-items", "segments", "allowed-special", "pending-bytes")


@pytest.fixture(scope="module")
def small() -> Iterator[RunningServer]:
    """A server whose limits on content are all LIMIT."""
    flags = [part for name in FLAGS for part in (f"--max-{name}", str(LIMIT))]
    with RunningServer("--builtin-encodings", "cl100k_base", *flags) as running:
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


def ids(number: int) -> dict[str, Any]:
    return {"ids": [0] * number}


def id_items(number: int) -> dict[str, Any]:
    return {"items": [tokenizer_pb2.IdsItem()] * number}


def item_ids(number: int) -> dict[str, Any]:
    return {
        "items": [tokenizer_pb2.IdsItem(ids=[0]), tokenizer_pb2.IdsItem(ids=[0] * (number - 1))]
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rpcs", "fill", "field"),
    [
        (("Encode", "Count"), text, "text"),
        (("Encode", "Count"), wide_text, "text"),
        (("Encode", "Count"), segments, "segments"),
        (("Encode", "Count"), segment_text, "text"),
        (("BatchEncode", "BatchCount"), items, "items"),
        (("BatchEncode", "BatchCount"), item_text, "items.text"),
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
        make, call = getattr(tokenizer_pb2, f"{rpc}Request"), getattr(small.stub, rpc)
        for size in (LIMIT - 1, LIMIT):
            assert call(make(encoding="cl100k_base", **fill(size))).encoding == "cl100k_base"
        failed = failure(call, make(encoding="cl100k_base", **fill(LIMIT + 1)))
        assert (failed.code, failed.reason) == (
            grpc.StatusCode.INVALID_ARGUMENT,
            "INPUT_TOO_LARGE",
        )
        assert failed.metadata == {"field": field, "limit": str(LIMIT), "size": str(LIMIT + 1)}
        assert failed.field == field


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
    assert failure(small.stub.Count, near).reason == "INPUT_TOO_LARGE"


def test_a_message_that_decompresses_far_beyond_the_limits_is_rejected_by_grpc(
    small: RunningServer,
) -> None:
    """tonic #2484, grpc #41996: the limit applied to the compressed size."""
    bomb = tokenizer_pb2.CountRequest(encoding="cl100k_base", text="a" * (1 << 24))
    failed = failure(small.stub.Count, bomb, compression=grpc.Compression.Gzip)
    assert failed.code is grpc.StatusCode.RESOURCE_EXHAUSTED


@pytest.mark.slow
def test_metadata_beyond_the_limit_is_rejected_by_grpc(small: RunningServer) -> None:
    request = tokenizer_pb2.CountRequest(encoding="cl100k_base")
    assert small.stub.Count(request, metadata=(("x-small", "a" * 8_000),)).count == 0
    failed = failure(small.stub.Count, request, metadata=(("x-large", "a" * 32_000),))
    assert failed.code is grpc.StatusCode.RESOURCE_EXHAUSTED
