"""Text as chunks of a number of tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from bytepair.v1 import context_pb2

from bytepair_client._call import Call, Fallback, StreamCall, method
from bytepair_client._operations.common import (
    CODE_POINT,
    PREFIX,
    Level,
    copied,
    has_more_bytes,
    set_encoding,
    set_one_text,
    timeout_for,
    tokens,
    wire_level,
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
from bytepair_client._send_buffer import TextBuffer
from bytepair_client._text import (
    AllowedSpecial,
    DisallowedSpecial,
    wire_allowed,
    wire_disallowed,
)

SPLIT = method(context_pb2.SplitResponse, "Split")
SPLIT_STREAM = method(context_pb2.SplitStreamResponse, "SplitStream", streamed=True)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a text.

    Attributes:
        start: Where it starts, in code points of the text.
        end: Where it ends.
        count: Its tokens.
        level: The coarsest level that has a border at its end, such as "sentence".
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

    Args:
        text: A text of any length.
        max_tokens: At least 1.
        overlap_tokens: The most tokens that a chunk shares with the one before it, at most half of
            `max_tokens`.
        level: The coarsest border to cut at, see `truncate`. A chunk that would be less than half
            full ends at a finer one.
        encoding: As for `truncate`, like all that follow.
        allowed_special: Special tokens that count as one where the text contains them.
        disallowed_special: () to count the others as ordinary text, "all" to fail.
        add_special_tokens: Whether to count the tokens that frame each chunk too.
        expected_fingerprint: What the encoding must be.
        timeout: Seconds; None for no deadline.
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
        level=wire_level(level),
        allowed_special=wire_allowed(allowed_special),
        disallowed_special=wire_disallowed(disallowed_special),
        add_special_tokens=add_special_tokens,
        unit=CODE_POINT,
    )
    set_encoding(request, defaults, encoding, expected_fingerprint)
    is_large = has_more_bytes(text, defaults.max_unary_bytes)
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
    overlap_tokens: int = 0,
    level: Level = "paragraph",
    encoding: str | None = None,
    allowed_special: AllowedSpecial = frozenset(),
    disallowed_special: DisallowedSpecial = (),
    add_special_tokens: bool = False,
    expected_fingerprint: Fingerprint = NOT_GIVEN,
    timeout: Timeout = NOT_GIVEN,
) -> StreamCall[context_pb2.SplitStreamResponse, Chunk]:
    """Split a text that comes in pieces, of any length and cut anywhere.

    If the connection breaks, the text is sent again over another one, where it is short or
    `pieces` can be iterated again, as a list can and a generator cannot; no chunk comes twice.

    Args:
        pieces: As for `encode_stream`.
        max_tokens: As for `split`, like all that follow.
        overlap_tokens: The most tokens that a chunk shares with the one before it.
        level: The coarsest border to cut at.
        encoding: Name or alias; None for the client's.
        allowed_special: Special tokens that count as one where the text contains them.
        disallowed_special: () to count the others as ordinary text, "all" to fail.
        add_special_tokens: Whether to count the tokens that frame each chunk too.
        expected_fingerprint: What the encoding must be.
        timeout: Seconds for the whole stream; None, and by default: no deadline.
    Returns:
        An iterator of chunks, as they become certain: those of `split` for the whole text. Its
        `last` tells of `bytes_consumed`.
    Raises:
        InputTooLarge: A chunk needs more text than the server holds.
        TokenizerError: Chunks before the fault have come.
    """
    config = context_pb2.SplitStreamConfig(
        max_tokens=tokens("max_tokens", max_tokens),
        overlap_tokens=tokens("overlap_tokens", overlap_tokens),
        level=wire_level(level),
        allowed_special=wire_allowed(allowed_special),
        disallowed_special=wire_disallowed(disallowed_special),
        add_special_tokens=add_special_tokens,
        unit=CODE_POINT,
        with_text=True,
    )
    set_encoding(config, defaults, encoding, expected_fingerprint)
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
    level = context_pb2.CutLevel.Name(chunk.end_level).removeprefix(PREFIX).lower()
    return Chunk(chunk.start, chunk.end, chunk.count, level, chunk.overlap, text)
