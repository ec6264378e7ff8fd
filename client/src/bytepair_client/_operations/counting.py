"""How many tokens text has."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, overload

from bytepair.v1 import tokenizer_pb2

from bytepair_client._call import Call, Whole, method
from bytepair_client._errors import TokenizerError
from bytepair_client._operations.common import (
    Fingerprint,
    Timeout,
    checked_limit,
    chosen_timeout,
    outcomes,
    set_encoding,
)
from bytepair_client._operations.streaming import count_stream
from bytepair_client._operations.whole import has_more_bytes, timeout_for, whole_count, within
from bytepair_client._options import NOT_GIVEN, Defaults
from bytepair_client._text import (
    AllowedSpecial,
    DisallowedSpecial,
    Text,
    batch,
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
        allowed_special: Special tokens that count as one where the text spells them.
        disallowed_special: For the others: () to count them as the ordinary text that they
            are, or "all" to fail with SpecialTokenInText, as `encode` does by default.
        add_special_tokens: Whether to count what frames a text too, as for `encode`.
        expected_fingerprint: See `bytepair_client.operations`, as for `timeout`.
        timeout: Seconds; None for no deadline.
    Returns:
        The number of tokens, at most `limit` + 1; 0 for "", but for what frames it.
    Raises:
        TokenizerError: See `bytepair_client.errors`.
    """
    request = tokenizer_pb2.CountRequest(
        allowed_special=wire_allowed(allowed_special),
        disallowed_special=wire_disallowed(disallowed_special),
        add_special_tokens=add_special_tokens,
        limit=checked_limit(limit),
    )
    set_encoding(request, defaults, encoding, expected_fingerprint)
    seconds = chosen_timeout(defaults, timeout)
    if not isinstance(text, str):
        set_text(request, text)
        return Call(COUNT, request, seconds, _count)
    is_large = has_more_bytes(text, defaults.max_unary_bytes)
    if not is_large:
        set_text(request, text)

    def whole(max_bytes: int | None) -> Whole[tokenizer_pb2.CountResponse]:
        served = within(defaults, max_bytes)
        return whole_count(
            count_stream(
                served,
                text,
                limit=limit,
                encoding=encoding,
                allowed_special=allowed_special,
                disallowed_special=disallowed_special,
                add_special_tokens=add_special_tokens,
                expected_fingerprint=expected_fingerprint,
                timeout=timeout_for(served, timeout, len(text)),
            )
        )

    return Call(COUNT, request, seconds, _count, whole, is_large)


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
    expected_fingerprint: Fingerprint = NOT_GIVEN,
    timeout: Timeout = NOT_GIVEN,
) -> Call[tokenizer_pb2.BatchCountResponse, list[int]]: ...
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
    expected_fingerprint: Fingerprint = NOT_GIVEN,
    timeout: Timeout = NOT_GIVEN,
) -> Call[tokenizer_pb2.BatchCountResponse, list[int | TokenizerError]]: ...
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
    expected_fingerprint: Fingerprint = NOT_GIVEN,
    timeout: Timeout = NOT_GIVEN,
) -> Call[tokenizer_pb2.BatchCountResponse, Any]:
    """Count the tokens of many texts in one call, each as `count` would.

    Args:
        texts: Each a string or a sequence of segments.
        limit: As for `count`, for each text by itself.
        encoding: As for `count`, like the two that follow.
        allowed_special: Special tokens that count as one where the text spells them.
        disallowed_special: () to count the others as ordinary text, "all" to fail.
        add_special_tokens: Whether to count what frames each text too.
        return_exceptions: True: the error of an item that fails is returned in its place;
            False: the first one is raised, its index in `item`.
        expected_fingerprint: What the encoding must be.
        timeout: Seconds, for the whole call; None for no deadline.
    Returns:
        The number of tokens of each text, in order; [] for no texts.
    Raises:
        TokenizerError: See `bytepair_client.errors`.
    """
    request = tokenizer_pb2.BatchCountRequest(
        items=batch(texts),
        allowed_special=wire_allowed(allowed_special),
        disallowed_special=wire_disallowed(disallowed_special),
        add_special_tokens=add_special_tokens,
        limit=checked_limit(limit),
    )
    set_encoding(request, defaults, encoding, expected_fingerprint)
    return Call(
        BATCH_COUNT,
        request,
        chosen_timeout(defaults, timeout),
        lambda response: outcomes(response.results, _count, return_exceptions),
    )


def _count(result: tokenizer_pb2.CountResponse | tokenizer_pb2.CountResult) -> int:
    return result.count
