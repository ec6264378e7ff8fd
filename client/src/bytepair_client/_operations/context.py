"""Truncating and splitting text to a number of tokens, and inspecting it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Literal, Unpack, overload

from bytepair.v1 import context_pb2

from bytepair_client._call import Call, Fallback, StreamCall, method
from bytepair_client._errors import InvalidUtf8, TokenizerError
from bytepair_client._models import Chunk, Finding, Inspection, described
from bytepair_client._operations.batches import Batch, TextBatchOptions, text_batch
from bytepair_client._operations.requests import (
    CODE_POINT,
    AllTextOptions,
    EncodingOptions,
    Level,
    Pieces,
    TextOptions,
    TextStream,
    copied,
    enum_name,
    fill,
    has_more_bytes,
    one_text,
    text_call,
    within,
)
from bytepair_client._options import NOT_GIVEN, Defaults, Timeout, chosen_timeout, stream_timeout
from bytepair_client._text import DisallowedSpecial, set_text

TRUNCATE = method(context_pb2.TruncateResponse, "Truncate")
BATCH_TRUNCATE = method(context_pb2.BatchTruncateResponse, "BatchTruncate")
SPLIT = method(context_pb2.SplitResponse, "Split")
SPLIT_STREAM = method(context_pb2.SplitStreamResponse, "SplitStream", streamed=True)
INSPECT = method(context_pb2.InspectResponse, "Inspect")

Keep = Literal["start", "end", "both"]


class SplitOptions(AllTextOptions, total=False):
    """Options of `split_stream`."""

    overlap_tokens: int
    level: Level


class TruncateBatchOptions(TextBatchOptions, total=False):
    """Options of `truncate_batch`."""

    keep: Keep
    level: Level
    marker: str


def truncate(
    defaults: Defaults,
    text: str,
    max_tokens: int,
    *,
    keep: Keep = "start",
    level: Level = "grapheme",
    marker: str = "",
    disallowed_special: DisallowedSpecial = (),
    timeout: Timeout = NOT_GIVEN,
    **options: Unpack[TextOptions],
) -> Call[context_pb2.TruncateResponse, str]:
    """Truncate a text to at most `max_tokens` tokens, as `count` counts the result.

    `with_raw_response` also gives the count and the parts that were kept.

    The other arguments are those of `count`.

    Args:
        text: A text that fits into one request. It may be longer if `keep` is "start" or "end",
            special tokens are ordinary text, and the result fits into one request: only that part
            is sent.
        max_tokens: At least 0.
        keep: "start", "end", or "both": a start, then the longest end that fits beside it.
        level: Where the text may be cut: "code_point", "grapheme" (a user-perceived character),
            "word", "sentence", "line" or "paragraph".
        marker: Replaces the text that was left out, and counts, such as " …".
    Returns:
        The longest text that fits; `text` if all of it fits.
    Raises:
        BudgetTooSmall: Neither the text nor the marker alone fits.
        InputTooLarge: The text is too large for a request, and the result may be too.
    """
    one_text(text)
    request = fill(
        context_pb2.TruncateRequest(unit=CODE_POINT),
        defaults,
        max_tokens=max_tokens,
        keep=keep,
        level=level,
        marker=marker,
        disallowed_special=disallowed_special,
        **options,
    )
    seconds = chosen_timeout(defaults, timeout)
    needs_all = keep == "both" or bool(request.allowed_special or disallowed_special)
    is_large = not needs_all and has_more_bytes(text, defaults.max_unary_bytes)
    if not is_large:
        set_text(request, text)

    def of_part(limit: int | None) -> Fallback[context_pb2.TruncateResponse]:
        most = within(defaults, limit).max_unary_bytes
        size = max(1, most if text.isascii() else most // 4)
        part = text[-size:] if keep == "end" else text[:size]
        short = context_pb2.TruncateRequest(is_part=len(part) < len(text))
        short.MergeFrom(request)
        try:
            set_text(short, part)
        except InvalidUtf8:
            set_text(short, text)  # raises the error with the offset in `text`
            raise
        before = len(text) - len(part) if keep == "end" else 0
        call: Call[Any, Any] = Call(TRUNCATE, short, seconds, lambda response: response.text)
        return Fallback(call, lambda responses: _moved(responses[0], before))

    fallback = None if needs_all else of_part
    return Call(TRUNCATE, request, seconds, lambda response: response.text, fallback, is_large)


def _moved(response: context_pb2.TruncateResponse, before: int) -> context_pb2.TruncateResponse:
    """The response for a part, as that for the text, of which `before` code points precede it."""
    for kept in response.kept:
        kept.start += before
        kept.end += before
    return response


@overload
def truncate_batch(
    defaults: Defaults,
    texts: Iterable[str],
    max_tokens: int,
    *,
    return_exceptions: Literal[False] = False,
    **options: Unpack[TruncateBatchOptions],
) -> Batch[context_pb2.BatchTruncateResponse, str]: ...
@overload
def truncate_batch(
    defaults: Defaults,
    texts: Iterable[str],
    max_tokens: int,
    *,
    return_exceptions: bool,
    **options: Unpack[TruncateBatchOptions],
) -> Batch[context_pb2.BatchTruncateResponse, str | TokenizerError]: ...
def truncate_batch(
    defaults: Defaults,
    texts: Iterable[str],
    max_tokens: int,
    *,
    return_exceptions: bool = False,
    **options: Unpack[TruncateBatchOptions],
) -> Batch[context_pb2.BatchTruncateResponse, Any]:
    """Truncate any number of texts, each as `truncate` does.

    The other arguments are those of `truncate` and of `encode_batch`.

    Args:
        texts: Strings. They are read when requests are made.
    Returns:
        The longest text that fits of each text, in order; [] for no texts.
    """
    return text_batch(
        BATCH_TRUNCATE,
        context_pb2.BatchTruncateRequest(),
        truncate,
        texts,
        defaults,
        return_exceptions=return_exceptions,
        max_tokens=max_tokens,
        **options,
    )


def split(
    defaults: Defaults,
    text: str,
    max_tokens: int,
    *,
    overlap_tokens: int = 0,
    level: Level = "paragraph",
    disallowed_special: DisallowedSpecial = (),
    timeout: Timeout = NOT_GIVEN,
    **options: Unpack[TextOptions],
) -> Call[context_pb2.SplitResponse, list[Chunk]]:
    """Split a text into chunks of at most `max_tokens` tokens, as `count` counts each chunk.

    The other arguments are those of `count`.

    Args:
        text: A text of any length.
        max_tokens: At least 1.
        overlap_tokens: Maximum number of tokens that a chunk shares with the chunk before it, at
            most half of `max_tokens`.
        level: The coarsest level to cut at, as in `truncate`. A finer one is used if the chunk
            would be less than half full.
    Returns:
        The chunks in order; [] for "". `text[chunk.start:chunk.end] == chunk.text`, and without
        overlap the chunks join to the text.
    Raises:
        BudgetTooSmall: A character has more than `max_tokens` tokens.
    """
    request = fill(
        context_pb2.SplitRequest(unit=CODE_POINT),
        defaults,
        max_tokens=max_tokens,
        overlap_tokens=overlap_tokens,
        level=level,
        disallowed_special=disallowed_special,
        **options,
    )
    return text_call(
        SPLIT,
        request,
        one_text(text),
        lambda response: [_chunk(each, text[each.start : each.end]) for each in response.chunks],
        defaults,
        timeout,
        stream=_splitting(),
        join=_joined,
    )


def split_stream(
    defaults: Defaults,
    pieces: Pieces,
    max_tokens: int,
    *,
    timeout: Timeout = NOT_GIVEN,
    **options: Unpack[SplitOptions],
) -> StreamCall[context_pb2.SplitStreamResponse, Chunk]:
    """Split a text that arrives in pieces, of any length and cut anywhere.

    If the connection breaks, the text is sent again over another one, provided that it is short or
    `pieces` can be iterated again, like a list and unlike a generator. No chunk is repeated.

    The other arguments are those of `split`.

    Args:
        pieces: As for `encode_stream`.
        timeout: Seconds for the whole stream; None, and by default, for no deadline.
    Returns:
        An iterator of chunks, each as soon as it is final: those of `split` for the whole text.
        Its `last` has `bytes_consumed`.
    Raises:
        InputTooLarge: A chunk needs more text than the server buffers.
        TokenizerError: After the chunks that were final.
    """
    config = context_pb2.SplitStreamConfig(with_text=True)
    copied(split(defaults, "", max_tokens, **options).request, config)
    return _splitting().call(defaults, config, pieces, stream_timeout(timeout))


def inspect(
    defaults: Defaults,
    text: str,
    *,
    timeout: Timeout = NOT_GIVEN,
    **options: Unpack[EncodingOptions],
) -> Call[context_pb2.InspectResponse, Inspection]:
    """Find what makes the count of a text, or a model's reply to it, surprising.

    Examples are control tokens in the text and invisible characters. The other arguments are those
    of `encode`.

    Args:
        text: A text that fits into one request.
    Returns:
        The findings, the count, and the number of tokens that no further text changes.
    """
    request = fill(context_pb2.InspectRequest(unit=CODE_POINT), defaults, **options)
    set_text(request, one_text(text))
    return Call(INSPECT, request, chosen_timeout(defaults, timeout), _inspection)


def _splitting() -> TextStream[context_pb2.SplitStreamResponse, Chunk]:
    # `plain` returns a list for each response; the stream returns its chunks one by one.
    plain: Any = partial(_new_chunks, [])
    request = context_pb2.SplitStreamRequest
    return TextStream(SPLIT_STREAM, request, plain, gives_lists=True, restarts=True)


def _new_chunks(given: list[int], response: context_pb2.SplitStreamResponse) -> list[Chunk]:
    """The chunks of a response that are new; `given` holds the start of the last one."""
    chunks = [
        _chunk(each, each.text) for each in response.chunks if not given or each.start > given[0]
    ]
    if chunks:
        given[:] = [chunks[-1].start]
    return chunks


def _joined(responses: Sequence[context_pb2.SplitStreamResponse]) -> context_pb2.SplitResponse:
    whole = context_pb2.SplitResponse(
        encoding=responses[0].encoding, fingerprint=responses[0].fingerprint
    )
    for response in responses:
        whole.chunks.extend(
            each
            for each in response.chunks
            if not whole.chunks or each.start > whole.chunks[-1].start
        )
    return whole


def _chunk(chunk: context_pb2.Chunk, text: str) -> Chunk:
    level = enum_name(chunk.end_level, context_pb2.CutLevel)
    return Chunk(chunk.start, chunk.end, chunk.count, level, chunk.overlap, text)


def _inspection(response: context_pb2.InspectResponse) -> Inspection:
    findings = [
        described(Finding, each, code=_code(each.code), code_point=each.code_point or None)
        for each in response.findings
    ]
    totals = {_code(each.code): each.total for each in response.totals}
    return described(Inspection, response, findings=findings, totals=totals)


def _code(code: context_pb2.FindingCode) -> str:
    return context_pb2.FindingCode.Name(code).removeprefix("FINDING_CODE_")
