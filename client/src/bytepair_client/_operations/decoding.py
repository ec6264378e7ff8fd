"""Token ids to text or bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Literal, TypedDict, Unpack, overload

from bytepair.v1 import stream_pb2, text_pb2, tokenizer_pb2

from bytepair_client._call import Call, Fallback, method
from bytepair_client._errors import TokenizerError, UnknownTokenId
from bytepair_client._operations.batches import Batch, Item, Progress
from bytepair_client._operations.common import (
    DecodeErrors,
    copied,
    enum_value,
    joined,
    set_encoding,
    timeout_for,
    within,
)
from bytepair_client._operations.streaming import decode_stream_call
from bytepair_client._options import (
    BYTES_PER_ID,
    NOT_GIVEN,
    Defaults,
    Fingerprint,
    Timeout,
    chosen_timeout,
)
from bytepair_client._text import set_ids

DECODE = method(tokenizer_pb2.DecodeResponse, "Decode")
BATCH_DECODE = method(tokenizer_pb2.BatchDecodeResponse, "BatchDecode")


class IdsOptions(TypedDict, total=False):
    """Options of each list of ids of a batch."""

    errors: DecodeErrors
    skip_special_tokens: bool
    encoding: str | None
    expected_fingerprint: Fingerprint


class IdsBatchOptions(IdsOptions, total=False):
    """Options of a batch of lists of ids."""

    progress: Progress | None
    timeout: Timeout


def decode(
    defaults: Defaults,
    ids: Iterable[int],
    *,
    errors: DecodeErrors = "replace",
    skip_special_tokens: bool = False,
    encoding: str | None = None,
    expected_fingerprint: Fingerprint = NOT_GIVEN,
    timeout: Timeout = NOT_GIVEN,
) -> Call[tokenizer_pb2.DecodeResponse, str]:
    """Decode token ids into text.

    The other arguments are those of `encode`.

    Args:
        ids: Each one that the encoding has; any number of them.
        errors: For bytes that are not UTF-8, as ids cut from a longer list may give:
            "replace" puts U+FFFD in place of each maximal invalid sequence, "strict" fails
            with InvalidUtf8.
        skip_special_tokens: True: special tokens give nothing; False: their spelling.
    Returns:
        The text; "" for no ids.
    Raises:
        UnknownTokenId: The encoding does not have one of the ids.
        TokenizerError: See the tree in the documentation.
    """
    request = tokenizer_pb2.DecodeRequest(
        errors=enum_value("errors", errors, DecodeErrors, text_pb2.DecodeErrors),
        skip_special_tokens=skip_special_tokens,
    )
    set_encoding(request, defaults, encoding, expected_fingerprint)
    return _decode_call(defaults, request, ids, _text, timeout)


def decode_bytes(
    defaults: Defaults,
    ids: Iterable[int],
    *,
    skip_special_tokens: bool = False,
    encoding: str | None = None,
    expected_fingerprint: Fingerprint = NOT_GIVEN,
    timeout: Timeout = NOT_GIVEN,
) -> Call[tokenizer_pb2.DecodeResponse, bytes]:
    """Decode token ids into the bytes that they stand for, UTF-8 or not.

    The other arguments are those of `decode`.

    Args:
        ids: Each one that the encoding has; any number of them.
    Returns:
        The bytes; b"" for no ids.
    Raises:
        UnknownTokenId: The encoding does not have one of the ids.
        TokenizerError: See the tree in the documentation.
    """
    request = tokenizer_pb2.DecodeRequest(as_bytes=True, skip_special_tokens=skip_special_tokens)
    set_encoding(request, defaults, encoding, expected_fingerprint)
    return _decode_call(defaults, request, ids, _data, timeout)


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
    return_exceptions: bool,
    **options: Unpack[IdsBatchOptions],
) -> Batch[tokenizer_pb2.BatchDecodeResponse, str | TokenizerError]: ...
def decode_batch(
    defaults: Defaults,
    batch: Iterable[Iterable[int]],
    *,
    return_exceptions: bool = False,
    progress: Progress | None = None,
    timeout: Timeout = NOT_GIVEN,
    **options: Unpack[IdsOptions],
) -> Batch[tokenizer_pb2.BatchDecodeResponse, Any]:
    """Decode any number of lists of ids, each as `decode` would.

    They are sent in requests that the server accepts, several at a time.

    The other arguments are those of `decode` and of `encode_batch`.

    Args:
        batch: The lists, each of any length; read as requests are made.
    Returns:
        The text of each list, in order; [] for no lists.
    Raises:
        TokenizerError: See the tree in the documentation.
    """
    single = decode(defaults, (), **options).request

    def alone(ids: Sequence[int], seconds: Timeout) -> Call[Any, Any]:
        return decode(defaults, ids, timeout=seconds, **options)

    def items() -> Iterator[Item]:
        for index, ids in enumerate(batch):
            numbers = ids if isinstance(ids, list | tuple) else list(ids)
            item = tokenizer_pb2.IdsItem()
            size = len(numbers) * BYTES_PER_ID
            refusal = None
            try:
                if size <= defaults.max_unary_bytes:
                    set_ids(item.ids, numbers)
            except UnknownTokenId as error:
                error.item = index
                size, refusal = defaults.max_unary_bytes + 1, error
            yield Item(item, size, partial(alone, numbers), refusal)

    return Batch(
        defaults,
        BATCH_DECODE,
        copied(single, tokenizer_pb2.BatchDecodeRequest()),
        items(),
        _text,
        timeout=timeout,
        return_exceptions=return_exceptions,
        progress=progress,
    )


def _decode_call(
    defaults: Defaults,
    request: tokenizer_pb2.DecodeRequest,
    ids: Iterable[int],
    plain: Any,
    timeout: Timeout,
) -> Call[tokenizer_pb2.DecodeResponse, Any]:
    """Decode with these options, streamed where the ids are too many for a request."""
    numbers = ids if isinstance(ids, list | tuple) else list(ids)
    size = len(numbers) * BYTES_PER_ID
    is_large = size > defaults.max_unary_bytes
    if not is_large:
        set_ids(request.ids, numbers)

    def fallback(limit: int | None) -> Fallback[tokenizer_pb2.DecodeResponse]:
        served = within(defaults, limit and limit * BYTES_PER_ID)
        config = copied(request, stream_pb2.DecodeStreamConfig())
        seconds = timeout_for(served, timeout, size)
        stream = decode_stream_call(served, config, numbers, seconds)
        return joined(stream, tokenizer_pb2.DecodeResponse)

    return Call(DECODE, request, chosen_timeout(defaults, timeout), plain, fallback, is_large)


def _text(result: tokenizer_pb2.DecodeResponse | tokenizer_pb2.DecodeResult) -> str:
    return result.text


def _data(response: tokenizer_pb2.DecodeResponse) -> bytes:
    return response.data
