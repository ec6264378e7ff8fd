"""What is too large for one request, as a stream that gives the same answer.

The answer of a stream needs no limit on the server's side: it holds a bounded part of the text.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from bytepair.v1 import stream_pb2, tokenizer_pb2

from bytepair_client._call import Call, StreamCall, Whole
from bytepair_client._operations.common import Timeout, chosen_timeout
from bytepair_client._options import NOT_GIVEN, Defaults


def has_more_bytes(text: str, limit: int) -> bool:
    """Whether the UTF-8 of `text` is longer than `limit`; lone surrogates count three bytes."""
    if len(text) > limit or text.isascii():
        return len(text) > limit
    return len(text) * 4 > limit and len(text.encode(errors="surrogatepass")) > limit


def within(defaults: Defaults, limit: int | None) -> Defaults:
    """The client's defaults, for a server of which `limit` is known: bytes, or None for nothing."""
    return defaults if limit is None else replace(defaults, max_unary_bytes=max(1, limit))


def timeout_for(defaults: Defaults, timeout: Timeout, size: int) -> float | None:
    """The seconds that a large input gets: what the caller says, or else the client's timeout
    for each `max_unary_bytes` of it.

    Args:
        size: At least about how many bytes there are.
    """
    if timeout is not NOT_GIVEN or defaults.timeout is None:
        return chosen_timeout(defaults, timeout)
    return defaults.timeout * max(1, math.ceil(size / defaults.max_unary_bytes))


def whole_count(
    call: Call[stream_pb2.CountStreamResponse, int],
) -> Whole[tokenizer_pb2.CountResponse]:
    """The answer of Count, by CountStream."""
    assert call.whole is not None  # it is how count_stream is carried out
    return Whole(call.whole(None).stream, _count)


def whole_encode(
    stream: StreamCall[stream_pb2.EncodeStreamResponse, Any],
) -> Whole[tokenizer_pb2.EncodeResponse]:
    """The answer of Encode, by EncodeStream."""
    return Whole(stream.whole_answers(), _encode)


def whole_decode(
    stream: StreamCall[stream_pb2.DecodeStreamResponse, Any],
) -> Whole[tokenizer_pb2.DecodeResponse]:
    """The answer of Decode, by DecodeStream."""
    return Whole(stream.whole_answers(), _decode)


def _count(answers: Sequence[stream_pb2.CountStreamResponse]) -> tokenizer_pb2.CountResponse:
    last = answers[-1]
    return tokenizer_pb2.CountResponse(
        count=last.count,
        limit_exceeded=last.limit_exceeded,
        encoding=last.encoding,
        fingerprint=last.fingerprint,
    )


def _encode(answers: Sequence[stream_pb2.EncodeStreamResponse]) -> tokenizer_pb2.EncodeResponse:
    first = answers[0]
    whole = tokenizer_pb2.EncodeResponse(encoding=first.encoding, fingerprint=first.fingerprint)
    for answer in answers:
        whole.ids.MergeFrom(answer.ids)
    return whole


def _decode(answers: Sequence[stream_pb2.DecodeStreamResponse]) -> tokenizer_pb2.DecodeResponse:
    first = answers[0]
    whole = tokenizer_pb2.DecodeResponse(encoding=first.encoding, fingerprint=first.fingerprint)
    if first.WhichOneof("content") == "data":
        whole.data = b"".join(answer.data for answer in answers)
    else:
        whole.text = "".join(answer.text for answer in answers)
    return whole
