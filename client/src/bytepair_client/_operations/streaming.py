"""Texts and ids that come in pieces."""

from __future__ import annotations

from collections.abc import AsyncIterable, Collection, Iterable, Iterator, Sequence
from typing import Any, Literal, Unpack, overload

from bytepair.v1 import stream_pb2

from bytepair_client._call import Call, Fallback, StreamCall, method
from bytepair_client._operations.requests import DecodeErrors, EncodingOptions, TextOptions, fill
from bytepair_client._options import (
    BYTES_PER_ID,
    NOT_GIVEN,
    Defaults,
    Timeout,
    checked_timeout,
    invalid,
)
from bytepair_client._streams.ids import IdsBuffer
from bytepair_client._streams.text import Pieces, TextStream
from bytepair_client._text import DisallowedSpecial, set_ids

ENCODE_STREAM = method(stream_pb2.EncodeStreamResponse, "EncodeStream", streamed=True)
DECODE_STREAM = method(stream_pb2.DecodeStreamResponse, "DecodeStream", streamed=True)
COUNT_STREAM = method(stream_pb2.CountStreamResponse, "CountStream", streamed=True)

ENCODING = TextStream(
    ENCODE_STREAM, stream_pb2.EncodeStreamRequest, lambda answer: list(answer.ids)
)
COUNTING = TextStream(
    COUNT_STREAM,
    stream_pb2.CountStreamRequest,
    lambda answer: answer.count,
    answers_each=False,
    restarts=True,
)

#: In one request: enough that the cost of a message is negligible.
MAX_PIECE_IDS = 8192

Ids = Iterable[int | Sequence[int]] | AsyncIterable[int | Sequence[int]]


class DecodeStreamOptions(EncodingOptions, total=False):
    """Options of `decode_stream`, whatever it gives."""

    prefill_ids: Iterable[int]
    skip_special_tokens: bool
    stop: Collection[str]
    include_stop: bool
    errors: DecodeErrors
    timeout: Timeout


@overload
def decode_stream(
    defaults: Defaults,
    ids: Ids,
    *,
    as_bytes: Literal[False] = False,
    **options: Unpack[DecodeStreamOptions],
) -> StreamCall[stream_pb2.DecodeStreamResponse, str]: ...
@overload
def decode_stream(
    defaults: Defaults,
    ids: Ids,
    *,
    as_bytes: Literal[True],
    **options: Unpack[DecodeStreamOptions],
) -> StreamCall[stream_pb2.DecodeStreamResponse, bytes]: ...
def decode_stream(
    defaults: Defaults,
    ids: Ids,
    *,
    prefill_ids: Iterable[int] = (),
    skip_special_tokens: bool = False,
    stop: Collection[str] = (),
    include_stop: bool = False,
    errors: DecodeErrors = "replace",
    as_bytes: bool = False,
    timeout: Timeout = NOT_GIVEN,
    **options: Unpack[EncodingOptions],
) -> StreamCall[stream_pb2.DecodeStreamResponse, Any]:
    """Decode token ids as they come, for example from a model.

    If the connection breaks, the stream resumes over another one: nothing is lost or repeated.

    The other arguments are those of `decode`.

    Args:
        ids: Ids one by one, or lists of them; of a generator for example. Those that have
            come while a message was being sent go together in the next one; none waits.
        prefill_ids: Ids that came before, such as those of the prompt. They give no text, but
            bytes at their end that begin a character are completed by the first of `ids`.
        stop: The text ends before the first of these strings in it. None may be empty.
        include_stop: True: it ends after the string and not before.
        errors: For bytes that are not UTF-8: "replace" gives U+FFFD as soon as nothing can
            complete them, "strict" fails with InvalidUtf8.
        as_bytes: True: give the bytes as they come.
        timeout: Seconds for the whole stream; None, and by default: no deadline.
    Returns:
        An iterator of pieces of the text: whole characters, never empty; joined they are what
        `decode` gives for all ids, up to the stop string. Its `last` has `stop_matched`,
        `tokens_consumed` and `finished`.
    Raises:
        UnknownTokenId: After the text of the ids before; `index` counts all of `ids`.
        TokenizerError: After the text that was certain.
    """
    if isinstance(stop, str):
        raise invalid("stop", "must be a collection of strings, not one string")
    config = fill(
        stream_pb2.DecodeStreamConfig(),
        defaults,
        skip_special_tokens=skip_special_tokens,
        stop=list(stop),
        include_stop=include_stop,
        errors=errors,
        as_bytes=as_bytes,
        **options,
    )
    set_ids(config.prefill_ids, prefill_ids)
    return decode_stream_call(defaults, config, ids, stream_timeout(timeout))


def encode_stream(
    defaults: Defaults,
    pieces: Pieces,
    *,
    disallowed_special: DisallowedSpecial = "all",
    timeout: Timeout = NOT_GIVEN,
    **options: Unpack[TextOptions],
) -> StreamCall[stream_pb2.EncodeStreamResponse, list[int]]:
    """Encode a text that comes in pieces, of any length and cut anywhere.

    If the connection breaks, the stream resumes over another one: nothing is lost or repeated.

    The other arguments are those of `encode`.

    Args:
        pieces: Strings, or UTF-8 that may be cut within a character, such as a file opened in
            binary mode. Those that have come while a message was being sent go together.
        timeout: Seconds for the whole stream; None, and by default: no deadline.
    Returns:
        An iterator of lists of ids, as they become certain; none is empty, and joined they
        are what `encode` gives for the whole text. Its `last` has `bytes_consumed`.
    Raises:
        InputTooLarge: More text than the server holds can only be encoded together, such as
            a word of megabytes.
        TokenizerError: Ids before the fault may have come.
    """
    config = stream_pb2.EncodeStreamConfig()
    fill(config, defaults, disallowed_special=disallowed_special, **options)
    return ENCODING.call(defaults, config, pieces, stream_timeout(timeout))


def count_stream(
    defaults: Defaults,
    pieces: Pieces,
    *,
    limit: int | None = None,
    disallowed_special: DisallowedSpecial = (),
    timeout: Timeout = NOT_GIVEN,
    **options: Unpack[TextOptions],
) -> Call[stream_pb2.CountStreamResponse, int]:
    """Count the tokens of a text that comes in pieces, of any length and cut anywhere.

    If the connection breaks, the text is sent again over another one, where it is short or
    `pieces` can be iterated again, as a list can and a generator cannot.

    The other arguments are those of `count`, and the `timeout` of `encode_stream`.

    Args:
        pieces: As for `encode_stream`.
        limit: As for `count`. No more pieces are taken once it is exceeded.
    Returns:
        The number of tokens, at most `limit` + 1; 0 for no text.
    Raises:
        InputTooLarge: As for `encode_stream`.
    """
    config = stream_pb2.CountStreamConfig()
    fill(config, defaults, limit=limit, disallowed_special=disallowed_special, **options)
    stream = COUNTING.call(defaults, config, pieces, stream_timeout(timeout))
    fallback = Fallback(stream.with_messages(), lambda answers: answers[-1])
    first = stream_pb2.CountStreamRequest(config=config)
    return Call(
        COUNT_STREAM, first, stream.timeout, stream.plain, lambda _: fallback, is_large=True
    )


def decode_stream_call(
    defaults: Defaults,
    config: stream_pb2.DecodeStreamConfig,
    ids: Ids,
    timeout: float | None,
) -> StreamCall[stream_pb2.DecodeStreamResponse, Any]:
    """DecodeStream with this configuration."""
    size = max(1, min(MAX_PIECE_IDS, defaults.max_unary_bytes // BYTES_PER_ID))
    plain = _data if config.as_bytes else _text
    source = _slices(ids, size) if isinstance(ids, Sequence) else ids
    return StreamCall(DECODE_STREAM, IdsBuffer(config, size), source, timeout, plain)


def stream_timeout(timeout: Timeout) -> float | None:
    """The seconds for a whole stream; None for no deadline."""
    return None if timeout is NOT_GIVEN else checked_timeout(timeout)


def _slices(ids: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    return (ids[start : start + size] for start in range(0, len(ids), size))


def _text(answer: stream_pb2.DecodeStreamResponse) -> str:
    return answer.text


def _data(answer: stream_pb2.DecodeStreamResponse) -> bytes:
    return answer.data
