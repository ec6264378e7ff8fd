"""Token ids to text or bytes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, overload

from bytepair.v1 import tokenizer_pb2

from bytepair_client._call import Call, Whole, method
from bytepair_client._errors import TokenizerError
from bytepair_client._ids import batch_ids, set_ids
from bytepair_client._operations.common import (
    DecodeErrors,
    Fingerprint,
    Timeout,
    chosen_timeout,
    outcomes,
    set_encoding,
    wire_errors,
)
from bytepair_client._operations.streaming import decode_stream
from bytepair_client._operations.whole import timeout_for, whole_decode, within
from bytepair_client._options import BYTES_PER_ID, NOT_GIVEN, Defaults

DECODE = method(tokenizer_pb2.DecodeResponse, "Decode")
BATCH_DECODE = method(tokenizer_pb2.BatchDecodeResponse, "BatchDecode")


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

    Args:
        ids: Each one that the encoding has; any number of them.
        errors: For bytes that are not UTF-8, as ids cut from a longer list may give:
            "replace" puts U+FFFD in place of each maximal invalid sequence, "strict" fails
            with InvalidUtf8.
        skip_special_tokens: True: special tokens give nothing; False: their spelling.
        encoding: Name or alias; None for the client's.
        expected_fingerprint: See `bytepair_client.operations`, as for `timeout`.
        timeout: Seconds; None for no deadline.
    Returns:
        The text; "" for no ids.
    Raises:
        UnknownTokenId: The encoding does not have one of the ids.
        TokenizerError: See `bytepair_client.errors`.
    """
    request = tokenizer_pb2.DecodeRequest(
        errors=wire_errors(errors), skip_special_tokens=skip_special_tokens
    )
    set_encoding(request, defaults, encoding, expected_fingerprint)
    numbers = ids if isinstance(ids, list | tuple) else list(ids)
    is_large = len(numbers) * BYTES_PER_ID > defaults.max_unary_bytes
    if not is_large:
        set_ids(request.ids, numbers)

    def whole(limit: int | None) -> Whole[tokenizer_pb2.DecodeResponse]:
        served = within(defaults, limit and limit * BYTES_PER_ID)
        return whole_decode(
            decode_stream(
                served,
                numbers,
                encoding=encoding,
                errors=errors,
                skip_special_tokens=skip_special_tokens,
                expected_fingerprint=expected_fingerprint,
                timeout=timeout_for(served, timeout, len(numbers) * BYTES_PER_ID),
            )
        )

    return Call(DECODE, request, chosen_timeout(defaults, timeout), _text, whole, is_large)


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

    Args:
        ids: Each one that the encoding has; any number of them.
        skip_special_tokens: True: special tokens give nothing; False: their spelling.
        encoding: Name or alias; None for the client's.
        expected_fingerprint: See `bytepair_client.operations`, as for `timeout`.
        timeout: Seconds; None for no deadline.
    Returns:
        The bytes; b"" for no ids.
    Raises:
        UnknownTokenId: The encoding does not have one of the ids.
        TokenizerError: See `bytepair_client.errors`.
    """
    request = tokenizer_pb2.DecodeRequest(as_bytes=True, skip_special_tokens=skip_special_tokens)
    set_encoding(request, defaults, encoding, expected_fingerprint)
    numbers = ids if isinstance(ids, list | tuple) else list(ids)
    is_large = len(numbers) * BYTES_PER_ID > defaults.max_unary_bytes
    if not is_large:
        set_ids(request.ids, numbers)

    def whole(limit: int | None) -> Whole[tokenizer_pb2.DecodeResponse]:
        served = within(defaults, limit and limit * BYTES_PER_ID)
        return whole_decode(
            decode_stream(
                served,
                numbers,
                encoding=encoding,
                as_bytes=True,
                skip_special_tokens=skip_special_tokens,
                expected_fingerprint=expected_fingerprint,
                timeout=timeout_for(served, timeout, len(numbers) * BYTES_PER_ID),
            )
        )

    return Call(DECODE, request, chosen_timeout(defaults, timeout), _data, whole, is_large)


@overload
def decode_batch(
    defaults: Defaults,
    batch: Iterable[Iterable[int]],
    *,
    errors: DecodeErrors = "replace",
    skip_special_tokens: bool = False,
    encoding: str | None = None,
    return_exceptions: Literal[False] = False,
    expected_fingerprint: Fingerprint = NOT_GIVEN,
    timeout: Timeout = NOT_GIVEN,
) -> Call[tokenizer_pb2.BatchDecodeResponse, list[str]]: ...
@overload
def decode_batch(
    defaults: Defaults,
    batch: Iterable[Iterable[int]],
    *,
    errors: DecodeErrors = "replace",
    skip_special_tokens: bool = False,
    encoding: str | None = None,
    return_exceptions: bool,
    expected_fingerprint: Fingerprint = NOT_GIVEN,
    timeout: Timeout = NOT_GIVEN,
) -> Call[tokenizer_pb2.BatchDecodeResponse, list[str | TokenizerError]]: ...
def decode_batch(
    defaults: Defaults,
    batch: Iterable[Iterable[int]],
    *,
    errors: DecodeErrors = "replace",
    skip_special_tokens: bool = False,
    encoding: str | None = None,
    return_exceptions: bool = False,
    expected_fingerprint: Fingerprint = NOT_GIVEN,
    timeout: Timeout = NOT_GIVEN,
) -> Call[tokenizer_pb2.BatchDecodeResponse, Any]:
    """Decode many lists of ids in one call, each as `decode` would.

    Args:
        batch: The lists.
        errors: As for `decode`, like the two that follow.
        skip_special_tokens: True: special tokens give nothing; False: their spelling.
        encoding: Name or alias; None for the client's.
        return_exceptions: True: the error of an item that fails is returned in its place;
            False: the first one is raised, its index in `item`.
        expected_fingerprint: What the encoding must be.
        timeout: Seconds, for the whole call; None for no deadline.
    Returns:
        The text of each list, in order; [] for no lists.
    Raises:
        TokenizerError: See `bytepair_client.errors`.
    """
    request = tokenizer_pb2.BatchDecodeRequest(
        items=batch_ids(batch),
        errors=wire_errors(errors),
        skip_special_tokens=skip_special_tokens,
    )
    set_encoding(request, defaults, encoding, expected_fingerprint)
    return Call(
        BATCH_DECODE,
        request,
        chosen_timeout(defaults, timeout),
        lambda response: outcomes(response.results, _text, return_exceptions),
    )


def _text(result: tokenizer_pb2.DecodeResponse | tokenizer_pb2.DecodeResult) -> str:
    return result.text


def _data(response: tokenizer_pb2.DecodeResponse) -> bytes:
    return response.data
