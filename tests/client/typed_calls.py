"""The types of results that mypy infers for calls. `make types` checks them; nothing runs."""

from __future__ import annotations

from typing import assert_type

from bytepair.v1 import context_pb2, stream_pb2, tokenizer_pb2
from bytepair_client import (
    AsyncStream,
    AsyncTokenizerClient,
    Chunk,
    IdsWithOffsets,
    Stream,
    TokenizerClient,
    TokenizerError,
)


def plain_values(client: TokenizerClient) -> None:
    assert_type(client.encode("a", allowed_special={"b"}), list[int])
    assert_type(client.encode_with_offsets("a", unit="byte"), IdsWithOffsets)
    assert_type(client.count("a", limit=3, timeout=None), int)
    assert_type(client.decode([1], errors="strict"), str)
    assert_type(client.decode_bytes([1]), bytes)
    assert_type(client.fit_chat([], 9, format="harmony", pinned=[1]), list[int])
    assert_type(client.truncate("a", 9, keep="end"), str)
    assert_type(client.split("a", 9), list[Chunk])


def batches(client: TokenizerClient, returns: bool) -> None:
    assert_type(client.encode_batch(["a"]), list[list[int]])
    assert_type(
        client.encode_batch(["a"], return_exceptions=True), list[list[int] | TokenizerError]
    )
    assert_type(client.count_batch(["a"], limit=3), list[int])
    assert_type(client.count_batch(["a"], return_exceptions=returns), list[int | TokenizerError])
    assert_type(client.decode_batch([[1]]), list[str])
    assert_type(client.decode_batch([[1]], return_exceptions=True), list[str | TokenizerError])
    assert_type(client.truncate_batch(["a"], 9, marker="b"), list[str])
    assert_type(client.truncate_batch(["a"], 9, return_exceptions=True), list[str | TokenizerError])
    assert_type(client.count_chat_batch([], format="harmony"), list[int])


def streams(client: TokenizerClient) -> None:
    text = client.decode_stream([1], stop=["a"])
    assert_type(text, Stream[stream_pb2.DecodeStreamResponse, str])
    data = client.decode_stream([1], as_bytes=True)
    assert_type(data, Stream[stream_pb2.DecodeStreamResponse, bytes])
    chunks = client.split_stream(["a"], 9)
    assert_type(chunks, Stream[context_pb2.SplitStreamResponse, Chunk])
    assert_type(client.count_stream(["a"]), int)


def messages(client: TokenizerClient) -> None:
    raw = client.with_raw_response
    assert_type(raw.count("a"), tokenizer_pb2.CountResponse)
    assert_type(raw.encode_batch(["a"]), tokenizer_pb2.BatchEncodeResponse)
    assert_type(raw.truncate_batch(["a"], 9), context_pb2.BatchTruncateResponse)
    answers = raw.decode_stream([1])
    assert_type(answers, Stream[stream_pb2.DecodeStreamResponse, stream_pb2.DecodeStreamResponse])


async def awaited(client: AsyncTokenizerClient) -> None:
    assert_type(await client.count("a"), int)
    assert_type(await client.count_batch(["a"]), list[int])
    mixed = await client.truncate_batch(["a"], 9, return_exceptions=True)
    assert_type(mixed, list[str | TokenizerError])
    text = client.decode_stream([1])
    assert_type(text, AsyncStream[stream_pb2.DecodeStreamResponse, str])
    assert_type(await client.with_raw_response.count("a"), tokenizer_pb2.CountResponse)
