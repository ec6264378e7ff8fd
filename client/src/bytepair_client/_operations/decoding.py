"""Decoding token ids: at once, in batches, and in streams."""

from __future__ import annotations

from collections.abc import AsyncIterable, Collection, Iterable, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, Literal, Unpack, overload

from bytepair.v1 import stream_pb2, tokenizer_pb2

from bytepair_client._arguments import (
    BYTES_PER_ID,
    NOT_GIVEN,
    Defaults,
    Timeout,
    checked_iterable,
    invalid,
    listed_ids,
    set_ids,
)
from bytepair_client._call import Call, Method, Plain, StreamCall, method
from bytepair_client._errors import TokenizerError
from bytepair_client._operations.batches import Batch, BatchOptions, Item
from bytepair_client._operations.requests import (
    DecodeErrors,
    EncodingOptions,
    copied,
    joined,
    prepared,
    timeout_for,
)
from bytepair_client._send_buffers import IdsBuffer

DECODE = method("Decode", attrgetter("text"))
DECODE_BYTES = method("Decode", attrgetter("data"))
BATCH_DECODE = method("BatchDecode", DECODE.plain)
DECODE_STREAM = method("DecodeStream", lambda response: (response.data or response.text,))

#: For one request of a stream: large enough that the overhead of a message is negligible.
MAX_PIECE_IDS = 8192

Ids = Iterable[int | Sequence[int]] | AsyncIterable[int | Sequence[int]]


class DecodeStreamOptions(EncodingOptions, total=False):
    """Options of `decode_stream`, except for `as_bytes`."""

    prefill_ids: Iterable[int]
    skip_special_tokens: bool
    stop: Collection[str]
    include_stop: bool
    errors: DecodeErrors


class IdsBatchOptions(EncodingOptions, BatchOptions, total=False):
    """Options of `decode_batch`."""

    errors: DecodeErrors
    skip_special_tokens: bool


def decode(
    defaults: Defaults,
    ids: Iterable[int],
    *,
    errors: DecodeErrors = "replace",
    skip_special_tokens: bool = False,
    **options: Unpack[EncodingOptions],
) -> Call[tokenizer_pb2.DecodeResponse, str]:
    """Decode token ids into text.

    The other arguments are those of `encode`.

    Args:
        ids: Any number of ids of the encoding.
        errors: For bytes that are not UTF-8, for example because the ids were cut from a longer
            list: "replace" puts U+FFFD in place of each maximal invalid sequence, "strict" fails
            with InvalidUtf8.
        skip_special_tokens: Whether to leave out special tokens instead of writing their names.
    Returns:
        The text; "" for no ids.
    Raises:
        UnknownTokenId: The encoding does not have one of the ids.
    """
    return _ids_call(
        DECODE, defaults, ids, errors=errors, skip_special_tokens=skip_special_tokens, **options
    )


def decode_bytes(
    defaults: Defaults,
    ids: Iterable[int],
    *,
    skip_special_tokens: bool = False,
    **options: Unpack[EncodingOptions],
) -> Call[tokenizer_pb2.DecodeResponse, bytes]:
    """Decode token ids into bytes, which need not be UTF-8.

    The other arguments are those of `decode`.

    Args:
        ids: Any number of ids of the encoding.
    Returns:
        The bytes; b"" for no ids.
    Raises:
        UnknownTokenId: The encoding does not have one of the ids.
    """
    return _ids_call(
        DECODE_BYTES,
        defaults,
        ids,
        as_bytes=True,
        skip_special_tokens=skip_special_tokens,
        **options,
    )


@overload
def decode_batch(
    defaults: Defaults,
    batch: Iterable[Iterable[int]],
    *,
    return_exceptions: Literal[False] = False,
    **options: Unpack[IdsBatchOptions],
) -> Batch[tokenizer_pb2.BatchDecodeResponse, str]: ...
@overload
def decode_batch(
    defaults: Defaults,
    batch: Iterable[Iterable[int]],
    *,
    return_exceptions: bool = False,
    **options: Unpack[IdsBatchOptions],
) -> Batch[tokenizer_pb2.BatchDecodeResponse, str | TokenizerError]: ...
def decode_batch(
    defaults: Defaults, batch: Iterable[Iterable[int]], **options: Any
) -> Batch[Any, Any]:
    """Decode any number of lists of ids, each as `decode` does.

    The other arguments are those of `decode` and of `encode_batch`.

    Args:
        batch: The lists, each of any length. They are read when requests are made.
    Returns:
        The text of each list, in order; [] for no lists.
    """

    def measured(ids: Iterable[int], name: str) -> Item:
        message, ids = tokenizer_pb2.IdsItem(), listed_ids(ids, name)
        size = len(ids) * BYTES_PER_ID
        if size <= defaults.max_unary_bytes:
            set_ids(message.ids, ids, name)
        return Item(ids, message, size)

    one = partial(decode, defaults)
    return Batch(BATCH_DECODE, one, (), "batch", batch, measured, defaults, **options)


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
    defaults: Defaults, ids: Ids, *, as_bytes: Literal[True], **options: Unpack[DecodeStreamOptions]
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
    **options: Unpack[EncodingOptions],
) -> StreamCall[stream_pb2.DecodeStreamResponse, Any]:
    """Decode token ids when they arrive, for example from a model.

    If the connection breaks, the stream resumes over another one. Nothing is lost or repeated.

    The other arguments are those of `decode`.

    Args:
        ids: Single ids or lists of ids. Each is sent as soon as the message before it is sent;
            all that arrive meanwhile share a message. An empty list sends an empty message, which
            keeps the stream from being idle.
        prefill_ids: Ids before the first of `ids`, such as those of the prompt. They give no text,
            but `ids` may complete a character that they begin.
        stop: The text ends before the first occurrence of one of these strings; none may be empty.
        include_stop: Whether the text ends after the string instead.
        errors: For bytes that are not UTF-8: "replace" gives U+FFFD as soon as no further byte can
            complete them, "strict" fails with InvalidUtf8.
        as_bytes: Whether to return bytes instead of text, as soon as they arrive.
        timeout: Seconds for the whole stream. Default: None, no deadline.
    Returns:
        An iterator of pieces of the text: complete characters, never empty. Joined they are the
        result of `decode` for all ids, up to the stop string. Its `last` has `stop_matched`,
        `tokens_consumed` and `finished`.
    Raises:
        UnknownTokenId: After the text of the ids before it; `index` counts all of `ids`.
        TokenizerError: After the text that was final.
    """
    if isinstance(stop, str):
        raise invalid("stop", "must be a collection of strings, not one string")
    config, timeout = prepared(
        DECODE_STREAM,
        defaults,
        skip_special_tokens=skip_special_tokens,
        stop=list(checked_iterable("stop", stop)),
        include_stop=include_stop,
        errors=errors,
        as_bytes=as_bytes,
        **options,
    )
    set_ids(config.prefill_ids, prefill_ids, "prefill_ids")
    return _stream_call(defaults, config, checked_iterable("ids", ids), timeout)


def _stream_call(
    defaults: Defaults, config: stream_pb2.DecodeStreamConfig, ids: Ids, timeout: float | None
) -> StreamCall[stream_pb2.DecodeStreamResponse, Any]:
    """The call of DecodeStream with this configuration."""
    size = max(1, min(MAX_PIECE_IDS, defaults.max_unary_bytes // BYTES_PER_ID))
    source: Ids = ids
    if isinstance(ids, Sequence):
        source = (ids[start : start + size] for start in range(0, len(ids), size))
    return StreamCall(DECODE_STREAM, IdsBuffer(config, size), source, timeout)


def _ids_call(
    method: Method[tokenizer_pb2.DecodeResponse, Plain],
    defaults: Defaults,
    ids: Iterable[int],
    *,
    timeout: Timeout = NOT_GIVEN,
    **fields: Any,
) -> Call[tokenizer_pb2.DecodeResponse, Plain]:
    """The call for one list of ids, which uses a stream if it is too large for one request."""
    request, seconds = prepared(method, defaults, timeout=timeout, **fields)
    numbers = listed_ids(ids)
    size = len(numbers) * BYTES_PER_ID
    is_large = size > defaults.max_unary_bytes
    if not is_large:
        set_ids(request.ids, numbers)

    async def fallback(client: Any, served: Defaults) -> tokenizer_pb2.DecodeResponse:
        config = copied(request, stream_pb2.DecodeStreamConfig())
        seconds = timeout_for(served, timeout, size)
        parts = await client._responses(_stream_call(served, config, numbers, seconds))
        whole: tokenizer_pb2.DecodeResponse = joined(DECODE, parts)
        if request.as_bytes:
            whole.data = b"".join(part.data for part in parts)
        else:
            whole.text = "".join(part.text for part in parts)
        return whole

    return Call(method, request, seconds, fallback, is_large)
