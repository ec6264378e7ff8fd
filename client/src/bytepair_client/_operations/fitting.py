"""Text that must fit a number of tokens: truncated, or split into chunks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Unpack

from bytepair.v1 import context_pb2

from bytepair_client._call import Call, Fallback, StreamCall, method
from bytepair_client._operations.batches import Batch, Progress, TextOptions, text_items
from bytepair_client._operations.common import (
    CODE_POINT,
    Level,
    copied,
    enum_name,
    enum_value,
    has_more_bytes,
    one_text,
    set_encoding,
    set_one_text,
    timeout_for,
    tokens,
    within,
)
from bytepair_client._operations.streaming import (
    Pieces,
    one_or_many,
    piece_bytes,
    stream_timeout,
)
from bytepair_client._options import (
    NOT_GIVEN,
    Defaults,
    Fingerprint,
    Timeout,
    chosen_timeout,
)
from bytepair_client._text import (
    AllowedSpecial,
    DisallowedSpecial,
    wire_allowed,
    wire_disallowed,
)
from bytepair_client._text_buffer import TextBuffer

TRUNCATE = method(context_pb2.TruncateResponse, "Truncate")
BATCH_TRUNCATE = method(context_pb2.BatchTruncateResponse, "BatchTruncate")
SPLIT = method(context_pb2.SplitResponse, "Split")
SPLIT_STREAM = method(context_pb2.SplitStreamResponse, "SplitStream", streamed=True)

Keep = Literal["start", "end", "both"]


class SplitOptions(TextOptions, total=False):
    """Options of each text that is split."""

    overlap_tokens: int
    level: Level


class TruncateOptions(TextOptions, total=False):
    """Options of each text that is truncated."""

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
    encoding: str | None = None,
    allowed_special: AllowedSpecial = frozenset(),
    disallowed_special: DisallowedSpecial = (),
    add_special_tokens: bool = False,
    expected_fingerprint: Fingerprint = NOT_GIVEN,
    timeout: Timeout = NOT_GIVEN,
) -> Call[context_pb2.TruncateResponse, str]:
    """Cut a text to at most `max_tokens` tokens, as `count` counts them in what is left.

    `with_raw_response` also gives the count, and which parts were kept.

    The other arguments are those of `count`.

    Args:
        text: Any text that fits a request.
        max_tokens: At least 0.
        keep: "start", "end", or "both": a start, then the longest end that fits beside it.
        level: Where the text may be cut: "code_point", "grapheme" (what people see as characters),
            "word", "sentence", "line" or "paragraph".
        marker: Put where text was left out, and counted, such as " …".
    Returns:
        The longest text that fits; all of it where it does.
    Raises:
        BudgetTooSmall: The text does not fit, and neither does the marker alone.
        TokenizerError: See the tree in the documentation.
    """
    request = context_pb2.TruncateRequest(
        max_tokens=tokens("max_tokens", max_tokens),
        keep=enum_value("keep", keep, Keep, context_pb2.Keep),
        level=enum_value("level", level, Level, context_pb2.CutLevel),
        marker=marker,
        allowed_special=wire_allowed(allowed_special),
        disallowed_special=wire_disallowed(disallowed_special),
        add_special_tokens=add_special_tokens,
        unit=CODE_POINT,
    )
    set_encoding(request, defaults, encoding, expected_fingerprint)
    set_one_text(request, text)
    return Call(TRUNCATE, request, chosen_timeout(defaults, timeout), _text)


def truncate_batch(
    defaults: Defaults,
    texts: Iterable[str],
    max_tokens: int,
    *,
    return_exceptions: bool = False,
    progress: Progress | None = None,
    timeout: Timeout = NOT_GIVEN,
    **options: Unpack[TruncateOptions],
) -> Batch[context_pb2.BatchTruncateResponse, Any]:
    """Cut many texts, each as `truncate` does.

    The other arguments are those of `truncate` and of `encode_batch`.

    Args:
        texts: Any number of strings; read as requests are made.
    Returns:
        The longest text that fits, for each text in order; [] for no texts.
    Raises:
        TokenizerError: See the tree in the documentation.
    """
    single = truncate(defaults, "", max_tokens, **options).request

    def alone(text: Any, seconds: Timeout) -> Call[Any, Any]:
        return truncate(defaults, text, max_tokens, timeout=seconds, **options)

    return Batch(
        defaults,
        BATCH_TRUNCATE,
        copied(single, context_pb2.BatchTruncateRequest()),
        text_items(defaults, texts, alone),
        _text,
        timeout=timeout,
        return_exceptions=return_exceptions,
        progress=progress,
    )


def _text(answer: context_pb2.TruncateResponse | context_pb2.TruncateResult) -> str:
    return answer.text


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a text.

    Attributes:
        start: Where it starts, in code points of the text.
        end: Where it ends.
        count: Its tokens.
        level: The coarsest level at which the text may be cut at its end, such as "sentence".
        overlap: How many tokens it shares with the chunk before it.
        text: The text from `start` to `end`, unchanged.
    """

    start: int
    end: int
    count: int
    level: str
    overlap: int
    text: str


def split(
    defaults: Defaults,
    text: str,
    max_tokens: int,
    *,
    overlap_tokens: int = 0,
    level: Level = "paragraph",
    encoding: str | None = None,
    allowed_special: AllowedSpecial = frozenset(),
    disallowed_special: DisallowedSpecial = (),
    add_special_tokens: bool = False,
    expected_fingerprint: Fingerprint = NOT_GIVEN,
    timeout: Timeout = NOT_GIVEN,
) -> Call[context_pb2.SplitResponse, list[Chunk]]:
    """Split a text into chunks of at most `max_tokens` tokens, as `count` counts each.

    The other arguments are those of `count`, for each chunk by itself.

    Args:
        text: A text of any length.
        max_tokens: At least 1.
        overlap_tokens: The most tokens that a chunk shares with the one before it, at most half of
            `max_tokens`.
        level: The coarsest level to cut at, see `truncate`. A chunk that would be less than half
            full ends at a finer one.
    Returns:
        Chunks in order; [] for "". Without overlap they join to the text, and
        `text[chunk.start:chunk.end] == chunk.text` for each.
    Raises:
        BudgetTooSmall: A character has more than `max_tokens`.
        TokenizerError: See the tree in the documentation.
    """
    request = context_pb2.SplitRequest(
        max_tokens=tokens("max_tokens", max_tokens),
        overlap_tokens=tokens("overlap_tokens", overlap_tokens),
        level=enum_value("level", level, Level, context_pb2.CutLevel),
        allowed_special=wire_allowed(allowed_special),
        disallowed_special=wire_disallowed(disallowed_special),
        add_special_tokens=add_special_tokens,
        unit=CODE_POINT,
    )
    set_encoding(request, defaults, encoding, expected_fingerprint)
    is_large = has_more_bytes(one_text(text), defaults.max_unary_bytes)
    if not is_large:
        set_one_text(request, text)

    def fallback(limit: int | None) -> Fallback[context_pb2.SplitResponse]:
        served = within(defaults, limit)
        config = copied(request, context_pb2.SplitStreamConfig())
        seconds = timeout_for(served, timeout, len(text))
        return Fallback(_split_call(served, config, (text,), seconds).with_messages(), _joined)

    def chunks(answer: context_pb2.SplitResponse) -> list[Chunk]:
        return [_chunk(each, text[each.start : each.end]) for each in answer.chunks]

    seconds = chosen_timeout(defaults, timeout)
    return Call(SPLIT, request, seconds, chunks, fallback, is_large)


def split_stream(
    defaults: Defaults,
    pieces: Pieces,
    max_tokens: int,
    *,
    timeout: Timeout = NOT_GIVEN,
    **options: Unpack[SplitOptions],
) -> StreamCall[context_pb2.SplitStreamResponse, Chunk]:
    """Split a text that comes in pieces, of any length and cut anywhere.

    If the connection breaks, the text is sent again over another one, where it is short or
    `pieces` can be iterated again, as a list can and a generator cannot; no chunk comes twice.

    The other arguments are those of `split`.

    Args:
        pieces: As for `encode_stream`.
        timeout: Seconds for the whole stream; None, and by default: no deadline.
    Returns:
        An iterator of chunks, as they become certain: those of `split` for the whole text. Its
        `last` has `bytes_consumed`.
    Raises:
        InputTooLarge: A chunk needs more text than the server holds.
        TokenizerError: Chunks before the fault have come.
    """
    config = context_pb2.SplitStreamConfig(with_text=True)
    copied(split(defaults, "", max_tokens, **options).request, config)
    return _split_call(defaults, config, pieces, stream_timeout(timeout))


def _split_call(
    defaults: Defaults,
    config: context_pb2.SplitStreamConfig,
    pieces: Pieces,
    timeout: float | None,
) -> StreamCall[context_pb2.SplitStreamResponse, Chunk]:
    source = one_or_many(pieces)
    can_read_again = isinstance(source, Iterable) and iter(source) is not source
    # From an answer comes a list, from the stream each of its chunks.
    plain: Any = partial(_new_chunks, [])
    return StreamCall(
        SPLIT_STREAM,
        TextBuffer(config, context_pb2.SplitStreamRequest, piece_bytes(defaults)),
        source,
        timeout,
        plain,
        read_again=(lambda: source) if can_read_again else None,
        gives_lists=True,
    )


def _new_chunks(given: list[int], answer: context_pb2.SplitStreamResponse) -> list[Chunk]:
    """The chunks of an answer that were not given before; `given` holds where the last began."""
    chunks = [
        _chunk(each, each.text) for each in answer.chunks if not given or each.start > given[0]
    ]
    if chunks:
        given[:] = [chunks[-1].start]
    return chunks


def _joined(answers: Sequence[context_pb2.SplitStreamResponse]) -> context_pb2.SplitResponse:
    whole = context_pb2.SplitResponse(
        encoding=answers[0].encoding, fingerprint=answers[0].fingerprint
    )
    for answer in answers:
        whole.chunks.extend(
            each
            for each in answer.chunks
            if not whole.chunks or each.start > whole.chunks[-1].start
        )
    return whole


def _chunk(chunk: context_pb2.Chunk, text: str) -> Chunk:
    level = enum_name(chunk.end_level, context_pb2.CutLevel)
    return Chunk(chunk.start, chunk.end, chunk.count, level, chunk.overlap, text)
