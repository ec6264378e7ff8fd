"""Inputs larger than a message are streamed, with the same results."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import bytepair_engine
import pytest
from bytepair.v1 import stream_pb2, text_pb2
from bytepair_client import (
    DeadlineExceeded,
    FingerprintMismatch,
    InputTooLarge,
    InvalidUtf8,
    Segments,
    SpecialTokenInText,
    TokenizerClient,
    UnknownTokenId,
)
from bytepair_client._operations.decoding import MAX_PIECE_IDS
from bytepair_client._operations.requests import has_more_bytes
from bytepair_client._send_buffers import MAX_KEPT_REQUESTS, MIN_CONTEXT_IDS, IdsBuffer
from conftest import Serve
from support.clients import Clients
from support.serving import RunningServer

END = "<|endoftext|>"
TEXT = "naïve 日本語 🙂🙂 삼겹살 \ufffd e\u0301 don't\r\n  x" * 30
MEGABYTES = "The quick brown fox, naïve 日本語 🙂\n" * 200_000


def encoding() -> bytepair_engine.Encoding:
    return bytepair_engine.get_encoding("o200k_base")


@pytest.fixture
def whole(server: RunningServer, clients: Clients) -> TokenizerClient:
    return clients(server.target, encoding="o200k_base")


@pytest.fixture(params=[1, 7, 1000])
def streaming(
    server: RunningServer, clients: Clients, request: pytest.FixtureRequest
) -> TokenizerClient:
    return clients(server.target, encoding="o200k_base", max_unary_bytes=request.param)


@pytest.mark.slow
def test_a_stream_gives_the_answer_of_one_call(
    whole: TokenizerClient, streaming: TokenizerClient, server: RunningServer
) -> None:
    ids = whole.encode(TEXT)
    calls: list[Callable[[Any], Any]] = [
        lambda full: full.encode(TEXT),
        lambda full: full.count(TEXT),
        lambda full: full.count(TEXT, limit=10),
        *(
            partial(lambda limit, full: full.count(TEXT, limit=limit, disallowed_special="all"), n)
            for n in (0, len(ids) - 1, len(ids))
        ),
        lambda full: full.decode(ids),
        lambda full: full.decode(iter(ids[1:])),
        lambda full: full.decode_bytes(tuple(ids[:-1])),
        lambda full: full.encode(f"{TEXT}{END}", disallowed_special=()),
        lambda full: full.count(f"{TEXT}{END}"),
    ]
    for call in calls:
        server.wait_for_metric("bytepair_open_streams", 0)  # earlier streams are counted
        before = streams(server)
        expected = call(whole.with_raw_response)
        assert streams(server) == before
        assert call(streaming.with_raw_response) == expected
        while streams(server) == before:  # the server counts a stream after its last response
            pass
    assert streaming.encode(TEXT) == ids
    assert streaming.count(TEXT) == len(ids)
    assert streaming.decode(ids) == TEXT
    assert streaming.decode_bytes(ids) == TEXT.encode()


def streams(server: RunningServer) -> int:
    """The number of streams of o200k_base that the server has completed."""
    return int(
        sum(
            server.metric("bytepair_requests_total", rpc=rpc, encoding="o200k_base", code="OK")
            for rpc in ("EncodeStream", "DecodeStream", "CountStream")
        )
    )


@pytest.mark.slow
def test_a_stream_fails_as_one_call_does(
    whole: TokenizerClient, streaming: TokenizerClient
) -> None:
    text = f"{TEXT}{END}"
    ids = whole.encode(TEXT)
    cut = [*ids, *whole.encode("𐍈")[:1]]
    cases: list[tuple[type[Exception], str, Callable[[Any], Any]]] = [
        (SpecialTokenInText, "byte_offset", lambda c: c.encode(text)),
        (SpecialTokenInText, "byte_offset", lambda c: c.count(text, disallowed_special="all")),
        (
            SpecialTokenInText,
            "byte_offset",
            lambda c: c.count(text, limit=3, disallowed_special="all"),
        ),
        (InvalidUtf8, "byte_offset", lambda c: c.count(f"{TEXT}é\ud800")),
        (InvalidUtf8, "byte_offset", lambda c: c.count(f"{TEXT}é\ud800", limit=3)),
        (
            InvalidUtf8,
            "byte_offset",
            lambda c: c.decode(cut, errors="strict"),
        ),
        (UnknownTokenId, "index", lambda c: c.decode([*ids, 4_000_000_000])),
        (UnknownTokenId, "index", lambda c: c.decode_bytes([*ids, -1])),
        (FingerprintMismatch, "actual", lambda c: c.count(TEXT, expected_fingerprint="sha256:0")),
    ]
    for kind, fact, call in cases:
        with pytest.raises(kind) as expected:
            call(whole)
        with pytest.raises(kind) as caught:
            call(streaming)
        assert getattr(caught.value, fact) == getattr(expected.value, fact)
        assert type(caught.value) is type(expected.value)


@pytest.mark.slow
def test_a_text_of_megabytes(whole: TokenizerClient) -> None:
    expected = encoding().encode(MEGABYTES)
    assert len(MEGABYTES.encode()) > 8 << 20
    assert whole.count(MEGABYTES) == len(expected)
    assert whole.count(MEGABYTES, limit=100) == 101
    assert whole.encode(MEGABYTES) == expected
    assert whole.decode(expected) == MEGABYTES


def test_a_server_with_a_smaller_limit_gets_a_stream(serve: Serve, clients: Clients) -> None:
    server = serve("--max-input-bytes", "1000", "--max-ids", "131328")
    client = clients(server.target, encoding="cl100k_base")
    cl100k = bytepair_engine.get_encoding("cl100k_base")
    ids = cl100k.encode(TEXT)
    assert client.count(TEXT) == len(ids)
    assert client.encode(TEXT) == ids
    many = ids * 180
    assert len(many) > 131_328
    assert client.decode(many) == TEXT * 180
    assert client.decode_bytes(many) == TEXT.encode() * 180
    assert server.metric("bytepair_requests_total", rpc="Count", code="INVALID_ARGUMENT") == 1
    knowing = clients(server.target, encoding="cl100k_base", max_unary_bytes=1000)
    assert knowing.count(TEXT) == len(ids)
    assert server.metric("bytepair_requests_total", rpc="Count", code="INVALID_ARGUMENT") == 1
    assert "".join(knowing.decode_stream(many)) == TEXT * 180


@pytest.mark.parametrize(
    ("errors", "pieces"),
    [(text_pb2.DECODE_ERRORS_REPLACE, 1), (text_pb2.DECODE_ERRORS_STRICT, 2)],
)
def test_the_ids_before_a_stream_that_is_resumed_are_bounded(
    errors: text_pb2.DecodeErrors, pieces: int
) -> None:
    config = stream_pb2.DecodeStreamConfig(errors=errors)
    buffer = IdsBuffer(config, MAX_PIECE_IDS)
    largest = [[64] * MAX_PIECE_IDS] * MAX_KEPT_REQUESTS
    for requests in *[largest] * pieces, [[64] * (MIN_CONTEXT_IDS - 1)]:
        for ids in requests:
            buffer.put(ids)
            buffer.take()
        buffer.read(stream_pb2.DecodeStreamResponse(text="a", tokens_consumed=buffer.sent))
    assert buffer.can_rewind
    buffer.rewind(None)
    assert len(config.prefill_ids) == buffer.sent
    assert buffer.sent < 131_328  # of which the page of the settings speaks


def test_what_cannot_be_streamed_is_too_large(serve: Serve, clients: Clients) -> None:
    server = serve("--max-input-bytes", "1000")
    client = clients(server.target, encoding="cl100k_base", max_unary_bytes=1000)
    calls: list[Callable[[], object]] = [
        lambda: client.encode(Segments(["a", TEXT])),
        lambda: client.count(Segments([TEXT])),
        lambda: client.encode_with_offsets(TEXT),
    ]
    for call in calls:
        with pytest.raises(InputTooLarge) as caught:
            call()
        assert caught.value.limit == 1000


@pytest.mark.slow
def test_a_word_that_cannot_be_cut_is_too_large(whole: TokenizerClient) -> None:
    with pytest.raises(InputTooLarge) as caught:
        whole.count("a" * 3_000_000)
    assert caught.value.limit == 1 << 20


def test_a_timeout_of_the_call_is_for_the_whole_stream(whole: TokenizerClient) -> None:
    with pytest.raises(DeadlineExceeded):
        whole.count(MEGABYTES, timeout=0.001)


@pytest.mark.parametrize("text", ["", "a" * 100, "é" * 50, "日" * 34, "🙂" * 25, "\ud800" * 34])
def test_sizes_are_bytes(text: str) -> None:
    size = len(text.encode(errors="surrogatepass"))
    assert [has_more_bytes(text, limit) for limit in (size - 1, size, size + 1)] == (
        [True, False, False]
    )
