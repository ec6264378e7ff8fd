"""How many tokens text has."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, overload

from bytepair.v1 import stream_pb2, tokenizer_pb2

from bytepair_client._call import Call, Fallback, method
from bytepair_client._errors import TokenizerError
from bytepair_client._operations.batches import Batch, Progress, text_items
from bytepair_client._operations.common import (
    copied,
    has_more_bytes,
    joined,
    set_encoding,
    timeout_for,
    within,
)
from bytepair_client._operations.streaming import count_stream_call
from bytepair_client._options import (
    NOT_GIVEN,
    Defaults,
    Fingerprint,
    Timeout,
    checked_limit,
    chosen_timeout,
)
from bytepair_client._text import (
    AllowedSpecial,
    DisallowedSpecial,
    Text,
    set_text,
    wire_allowed,
    wire_disallowed,
)

COUNT = method(tokenizer_pb2.CountResponse, "Count")
BATCH_COUNT = method(tokenizer_pb2.BatchCountResponse, "BatchCount")


def count(
    defaults: Defaults,
    text: Text,
    *,
    limit: int | None = None,
    encoding: str | None = None,
    allowed_special: AllowedSpecial = frozenset(),
    disallowed_special: DisallowedSpecial = (),
    add_special_tokens: bool = False,
    expected_fingerprint: Fingerprint = NOT_GIVEN,
    timeout: Timeout = NOT_GIVEN,
) -> Call[tokenizer_pb2.CountResponse, int]:
    """Count the tokens of `text`. By default this never fails on what the text contains.

    Args:
        text: As for `encode`, and of any length.
        limit: At least 0. Counting may stop once there are known to be more tokens than this;
            the answer is then `limit` + 1. None: count all.
        encoding: Name or alias; None for the client's.
        allowed_special: Special tokens that count as one where the text contains them.
        disallowed_special: For the others: () to count them as the ordinary text that they
            are, or "all" to fail with SpecialTokenInText, as `encode` does by default.
        add_special_tokens: Whether to count the tokens that frame a text too, as for `encode`.
        expected_fingerprint: As for `encode`, like `timeout`.
        timeout: Seconds; None for no deadline.
    Returns:
        The number of tokens, at most `limit` + 1; 0 for "" without a frame.
    Raises:
        TokenizerError: See the tree in the documentation.
    """
    request = tokenizer_pb2.CountRequest(
        allowed_special=wire_allowed(allowed_special),
        disallowed_special=wire_disallowed(disallowed_special),
        add_special_tokens=add_special_tokens,
        limit=checked_limit(limit),
    )
    set_encoding(request, defaults, encoding, expected_fingerprint)
    return _count_call(defaults, request, text, timeout)


@overload
def count_batch(
    defaults: Defaults,
    texts: Iterable[Text],
    *,
    limit: int | None = None,
    encoding: str | None = None,
    allowed_special: AllowedSpecial = frozenset(),
    disallowed_special: DisallowedSpecial = (),
    add_special_tokens: bool = False,
    return_exceptions: Literal[False] = False,
    progress: Progress | None = None,
    expected_fingerprint: Fingerprint = NOT_GIVEN,
    timeout: Timeout = NOT_GIVEN,
) -> Batch[tokenizer_pb2.BatchCountResponse, int]: ...
@overload
def count_batch(
    defaults: Defaults,
    texts: Iterable[Text],
    *,
    limit: int | None = None,
    encoding: str | None = None,
    allowed_special: AllowedSpecial = frozenset(),
    disallowed_special: DisallowedSpecial = (),
    add_special_tokens: bool = False,
    return_exceptions: bool,
    progress: Progress | None = None,
    expected_fingerprint: Fingerprint = NOT_GIVEN,
    timeout: Timeout = NOT_GIVEN,
) -> Batch[tokenizer_pb2.BatchCountResponse, int | TokenizerError]: ...
def count_batch(
    defaults: Defaults,
    texts: Iterable[Text],
    *,
    limit: int | None = None,
    encoding: str | None = None,
    allowed_special: AllowedSpecial = frozenset(),
    disallowed_special: DisallowedSpecial = (),
    add_special_tokens: bool = False,
    return_exceptions: bool = False,
    progress: Progress | None = None,
    expected_fingerprint: Fingerprint = NOT_GIVEN,
    timeout: Timeout = NOT_GIVEN,
) -> Batch[tokenizer_pb2.BatchCountResponse, Any]:
    """Count the tokens of any number of texts, each as `count` would.

    They go in requests of a size that the server takes, several of them at one time.

    Args:
        texts: Each a string of any length, or Segments; read as requests are made.
        limit: As for `count`, for each text by itself.
        encoding: As for `count`, like the two that follow.
        allowed_special: Special tokens that count as one where the text contains them.
        disallowed_special: () to count the others as ordinary text, "all" to fail.
        add_special_tokens: Whether to count the tokens that frame each text too.
        return_exceptions: As for `encode_batch`, like `progress`.
        progress: Called with the number of texts that are done, after each request.
        expected_fingerprint: What the encoding must be.
        timeout: Seconds for the whole batch; None for no deadline. Left out: the client's, for
            each request.
    Returns:
        The number of tokens of each text, in order; [] for no texts.
    Raises:
        TokenizerError: See the tree in the documentation.
    """
    options = tokenizer_pb2.BatchCountRequest(
        allowed_special=wire_allowed(allowed_special),
        disallowed_special=wire_disallowed(disallowed_special),
        add_special_tokens=add_special_tokens,
        limit=checked_limit(limit),
    )
    set_encoding(options, defaults, encoding, expected_fingerprint)

    def alone(text: Text, seconds: Timeout) -> Call[Any, Any]:
        return _count_call(defaults, copied(options, tokenizer_pb2.CountRequest()), text, seconds)

    return Batch(
        defaults,
        BATCH_COUNT,
        options,
        text_items(defaults, texts, alone),
        _count,
        timeout=timeout,
        return_exceptions=return_exceptions,
        progress=progress,
    )


def _count_call(
    defaults: Defaults, request: tokenizer_pb2.CountRequest, text: Text, timeout: Timeout
) -> Call[tokenizer_pb2.CountResponse, int]:
    """Count with these options, streamed where the text is too large for a request."""
    seconds = chosen_timeout(defaults, timeout)
    if not isinstance(text, str):
        set_text(request, text)
        return Call(COUNT, request, seconds, _count)
    is_large = has_more_bytes(text, defaults.max_unary_bytes)
    if not is_large:
        set_text(request, text)

    def fallback(limit: int | None) -> Fallback[tokenizer_pb2.CountResponse]:
        served = within(defaults, limit)
        config = copied(request, stream_pb2.CountStreamConfig())
        seconds = timeout_for(served, timeout, len(text))
        stream = count_stream_call(served, config, (text,), seconds)
        return joined(stream, tokenizer_pb2.CountResponse)

    return Call(COUNT, request, seconds, _count, fallback, is_large)


def _count(result: tokenizer_pb2.CountResponse | tokenizer_pb2.CountResult) -> int:
    return result.count
