"""Truncating and splitting text to a number of tokens, and inspecting it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, Literal, Unpack, overload

from bytepair.v1 import context_pb2

from bytepair_client._arguments import (
    NOT_GIVEN,
    Defaults,
    DisallowedSpecial,
    chosen_timeout,
    invalid,
    set_text,
)
from bytepair_client._call import Call, StreamCall, method
from bytepair_client._errors import InvalidUtf8, TokenizerError
from bytepair_client._operations.batches import Batch, TextBatchOptions, text_batch
from bytepair_client._operations.requests import (
    AllTextOptions,
    EncodingOptions,
    Level,
    Pieces,
    TextOptions,
    copied,
    described,
    enum_name,
    has_more_bytes,
    one_text,
    prepared,
    text_call,
    text_stream,
)

TRUNCATE = method("Truncate", attrgetter("text"))
BATCH_TRUNCATE = method("BatchTruncate", TRUNCATE.plain)
SPLIT_STREAM = method(
    "SplitStream",
    lambda response: [_chunk(each, each.text) for each in response.chunks],
    restarts=True,
)
SPLIT = method("Split", SPLIT_STREAM.plain, stream=SPLIT_STREAM)
INSPECT = method("Inspect", lambda response: _inspection(response))

Keep = Literal["start", "end", "both"]


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a text.

    Attributes:
        start: Where it starts, in code points of the text.
        end: Where it ends, exclusive.
        count: The number of its tokens.
        level: The coarsest level that has a boundary at its end, such as "sentence".
        overlap: The number of tokens that it shares with the chunk before it.
        text: The text from `start` to `end`, unchanged.
    """

    start: int
    end: int
    count: int
    level: str
    overlap: int
    text: str


@dataclass(frozen=True, slots=True)
class Finding:
    """A part of a text that makes its count, or a model's reply to it, surprising.

    Attributes:
        code: The kind, such as "TRAILING_WHITESPACE"; `FindingCode` in the API lists all.
        start: Where it starts, in code points.
        end: Where it ends, exclusive.
        token_id: The id of the token; None if the finding is not about a token.
        token: The special token that is spelled, exactly or nearly; otherwise "".
        code_point: The character; None if the finding is not about a character.
    """

    code: str
    start: int
    end: int
    token_id: int | None
    token: str
    code_point: int | None


@dataclass(frozen=True, slots=True)
class Inspection:
    """The findings in a text.

    Attributes:
        findings: In the order of the text; at most a thousand.
        totals: The number of findings of each code.
        count: The number of tokens of the text.
        stable_tokens: The number of tokens at the start that no further text changes.
        stable_end: Where these end, in code points.
    """

    findings: list[Finding]
    totals: Mapping[str, int]
    count: int
    stable_tokens: int
    stable_end: int


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
    own: dict[str, Any] = {"max_tokens": max_tokens, "keep": keep, "level": level, "marker": marker}
    own |= {"unit": "code_point", "disallowed_special": disallowed_special}
    request, seconds = prepared(TRUNCATE, defaults, **own, **options)
    no_fallback = ""
    if keep == "both":
        no_fallback = (
            'keep="both" needs all of the text in one request: keep="start" and keep="end" do not'
        )
    elif request.allowed_special or disallowed_special:
        no_fallback = (
            'allowed_special and disallowed_special="all" need all of the text in one request: '
            "leave them out"
        )
    is_large = not no_fallback and has_more_bytes(text, defaults.max_unary_bytes)
    if not is_large:
        set_text(request, text)

    async def of_part(client: Any, served: Defaults) -> context_pb2.TruncateResponse:
        most = served.max_unary_bytes
        size = max(1, most if text.isascii() else most // 4)
        part = text[-size:] if keep == "end" else text[:size]
        short = context_pb2.TruncateRequest(is_part=len(part) < len(text))
        short.MergeFrom(request)
        try:
            set_text(short, part)
        except InvalidUtf8:
            set_text(short, text)  # raises the error with the offset in `text`
            raise
        response: context_pb2.TruncateResponse = await client._unary(TRUNCATE, short, seconds)
        before = len(text) - len(part) if keep == "end" else 0
        for kept in response.kept:
            kept.start += before
            kept.end += before
        return response

    return Call(TRUNCATE, request, seconds, None if no_fallback else of_part, is_large, no_fallback)


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
    return_exceptions: bool = False,
    **options: Unpack[TruncateBatchOptions],
) -> Batch[context_pb2.BatchTruncateResponse, str | TokenizerError]: ...
def truncate_batch(
    defaults: Defaults, texts: Iterable[str], max_tokens: int, **options: Any
) -> Batch[Any, Any]:
    """Truncate any number of texts, each as `truncate` does.

    The other arguments are those of `truncate` and of `encode_batch`.

    Args:
        texts: Strings. They are read when requests are made.
    Returns:
        The longest text that fits of each text, in order; [] for no texts.
    """
    return text_batch(BATCH_TRUNCATE, truncate, defaults, texts, max_tokens=max_tokens, **options)


def split(
    defaults: Defaults,
    text: str,
    max_tokens: int,
    *,
    overlap_tokens: int = 0,
    level: Level = "paragraph",
    disallowed_special: DisallowedSpecial = (),
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
    one_text(text)

    def plain(response: context_pb2.SplitResponse) -> list[Chunk]:  # responses have no text
        return [_chunk(each, text[each.start : each.end]) for each in response.chunks]

    own: dict[str, Any] = {
        "max_tokens": max_tokens,
        "overlap_tokens": overlap_tokens,
        "level": level,
    }
    own |= {"unit": "code_point", "disallowed_special": disallowed_special}
    call = text_call(replace(SPLIT, plain=plain), defaults, text, **own, **options)
    request: Any = call.request
    if not request.max_tokens:
        raise invalid("max_tokens", "must be 1 or more, not 0")
    if request.overlap_tokens > (most := request.max_tokens // 2):
        problem = f"must be 0 to {most}, half of max_tokens, not {request.overlap_tokens}"
        raise invalid("overlap_tokens", problem)
    return call


def split_stream(
    defaults: Defaults, pieces: Pieces, max_tokens: int, **options: Unpack[SplitOptions]
) -> StreamCall[context_pb2.SplitStreamResponse, Chunk]:
    """Split a text that arrives in pieces, of any length and cut anywhere.

    If the connection breaks, the text is sent again over another one, provided that it is short or
    `pieces` can be iterated again, like a list and unlike a generator. No chunk is repeated.

    The other arguments are those of `split`.

    Args:
        pieces: As for `encode_stream`.
        timeout: Seconds for the whole stream. Default: None, no deadline.
    Returns:
        An iterator of chunks, each as soon as it is final: those of `split` for the whole text.
        Its `last` has `bytes_consumed`.
    Raises:
        InputTooLarge: A chunk needs more text than the server buffers.
        TokenizerError: After the chunks that were final.
    """
    config = context_pb2.SplitStreamConfig(with_text=True)
    copied(split(defaults, "", max_tokens, **options).request, config)
    return text_stream(
        SPLIT_STREAM,
        defaults,
        config,
        pieces,
        chosen_timeout(None, options.get("timeout", NOT_GIVEN)),
    )


def inspect(
    defaults: Defaults, text: str, **options: Unpack[EncodingOptions]
) -> Call[context_pb2.InspectResponse, Inspection]:
    """Find what makes the count of a text, or a model's reply to it, surprising.

    Examples are control tokens in the text and invisible characters. The other arguments are those
    of `encode`.

    Args:
        text: A text that fits into one request.
    Returns:
        The findings, the count, and the number of tokens that no further text changes.
    """
    request, seconds = prepared(INSPECT, defaults, unit="code_point", **options)
    set_text(request, one_text(text))
    return Call(INSPECT, request, seconds)


def _chunk(chunk: context_pb2.Chunk, text: str) -> Chunk:
    level = enum_name(chunk.end_level, context_pb2.CutLevel.DESCRIPTOR)
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
