"""Text to token ids."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple, overload

from bytepair.v1 import text_pb2, tokenizer_pb2

from bytepair_client._call import Call, Whole, method
from bytepair_client._errors import TokenizerError
from bytepair_client._operations.common import (
    Fingerprint,
    Timeout,
    chosen_timeout,
    outcomes,
    set_encoding,
)
from bytepair_client._operations.streaming import encode_stream
from bytepair_client._operations.whole import has_more_bytes, timeout_for, whole_encode, within
from bytepair_client._options import NOT_GIVEN, Defaults, invalid
from bytepair_client._text import (
    AllowedSpecial,
    DisallowedSpecial,
    Text,
    batch,
    set_text,
    wire_allowed,
    wire_disallowed,
)

ENCODE = method(tokenizer_pb2.EncodeResponse, "Encode")
BATCH_ENCODE = method(tokenizer_pb2.BatchEncodeResponse, "BatchEncode")

OffsetUnit = Literal["code_point", "byte", "utf16"]
_UNITS: dict[str, text_pb2.OffsetUnit] = {
    "code_point": text_pb2.OFFSET_UNIT_CODE_POINT,
    "byte": text_pb2.OFFSET_UNIT_BYTE,
    "utf16": text_pb2.OFFSET_UNIT_UTF16,
}


class IdsWithOffsets(NamedTuple):
    """Token ids and where each starts: `offsets[i]` belongs to `ids[i]`."""

    ids: list[int]
    offsets: list[int]


def encode(
    defaults: Defaults,
    text: Text,
    *,
    encoding: str | None = None,
    allowed_special: AllowedSpecial = frozenset(),
    disallowed_special: DisallowedSpecial = "all",
    add_special_tokens: bool = False,
    expected_fingerprint: Fingerprint = NOT_GIVEN,
    timeout: Timeout = NOT_GIVEN,
) -> Call[tokenizer_pb2.EncodeResponse, list[int]]:
    """Encode `text` into token ids.

    Args:
        text: A string of any length, or the segments of a prompt: strings, which are untrusted
            and never become control tokens, and `special("<|name|>")`, which each give one.
        encoding: Name or alias; None for the client's.
        allowed_special: Special tokens that a plain `text` may turn into control tokens where
            it spells them, or "all": every one that the server lets this caller use.
        disallowed_special: For the others: "all" to fail with SpecialTokenInText, or () to
            read them as ordinary text.
        add_special_tokens: True: put what frames a text of this encoding around it, as
            `get_encoding` shows it, such as a token that stands for the beginning. These need no
            place in `allowed_special`; the server must let this caller use them.
        expected_fingerprint: See `bytepair_client.operations`, as for `timeout`.
        timeout: Seconds; None for no deadline.
    Returns:
        The ids in text order; [] for "", but for what frames it.
    Raises:
        TokenizerError: See `bytepair_client.errors`.
    """
    is_large = isinstance(text, str) and has_more_bytes(text, defaults.max_unary_bytes)
    request = _encode_request(
        defaults,
        "" if is_large else text,
        encoding,
        allowed_special,
        disallowed_special,
        add_special_tokens,
        expected_fingerprint,
    )
    seconds = chosen_timeout(defaults, timeout)
    if not isinstance(text, str):
        return Call(ENCODE, request, seconds, _ids)

    def whole(limit: int | None) -> Whole[tokenizer_pb2.EncodeResponse]:
        served = within(defaults, limit)
        return whole_encode(
            encode_stream(
                served,
                text,
                encoding=encoding,
                allowed_special=allowed_special,
                disallowed_special=disallowed_special,
                add_special_tokens=add_special_tokens,
                expected_fingerprint=expected_fingerprint,
                timeout=timeout_for(served, timeout, len(text)),
            )
        )

    return Call(ENCODE, request, seconds, _ids, whole, is_large)


def encode_with_offsets(
    defaults: Defaults,
    text: Text,
    *,
    unit: OffsetUnit = "code_point",
    encoding: str | None = None,
    allowed_special: AllowedSpecial = frozenset(),
    disallowed_special: DisallowedSpecial = "all",
    add_special_tokens: bool = False,
    expected_fingerprint: Fingerprint = NOT_GIVEN,
    timeout: Timeout = NOT_GIVEN,
) -> Call[tokenizer_pb2.EncodeResponse, IdsWithOffsets]:
    """Encode `text`, and say where in it each token starts.

    Args:
        text: As for `encode`. Segments count as if joined, special tokens by their spelling.
        unit: What offsets count: "code_point" (an index into a Python string), "byte" of
            UTF-8, or "utf16" code unit (JavaScript, Java).
        encoding: As for `encode`, like all that follow.
        allowed_special: Special tokens that may become control tokens.
        disallowed_special: "all" to fail for the others, () to read them as ordinary text.
        add_special_tokens: Whether to add what frames a text.
        expected_fingerprint: What the encoding must be.
        timeout: Seconds; None for no deadline.
    Returns:
        Ids and offsets, of equal length; both [] for "", but for what frames it. Offsets start
        at 0 and never decrease. In bytes they are exact; in the other units a token that starts
        inside a character has the offset of that character. What is added after the text has the
        text's length.
    Raises:
        TokenizerError: See `bytepair_client.errors`.
    """
    if unit not in _UNITS:
        raise invalid("unit", f"one of {', '.join(_UNITS)}")
    request = _encode_request(
        defaults,
        text,
        encoding,
        allowed_special,
        disallowed_special,
        add_special_tokens,
        expected_fingerprint,
    )
    request.offsets = _UNITS[unit]
    return Call(ENCODE, request, chosen_timeout(defaults, timeout), _ids_with_offsets)


@overload
def encode_batch(
    defaults: Defaults,
    texts: Iterable[Text],
    *,
    encoding: str | None = None,
    allowed_special: AllowedSpecial = frozenset(),
    disallowed_special: DisallowedSpecial = "all",
    add_special_tokens: bool = False,
    return_exceptions: Literal[False] = False,
    expected_fingerprint: Fingerprint = NOT_GIVEN,
    timeout: Timeout = NOT_GIVEN,
) -> Call[tokenizer_pb2.BatchEncodeResponse, list[list[int]]]: ...
@overload
def encode_batch(
    defaults: Defaults,
    texts: Iterable[Text],
    *,
    encoding: str | None = None,
    allowed_special: AllowedSpecial = frozenset(),
    disallowed_special: DisallowedSpecial = "all",
    add_special_tokens: bool = False,
    return_exceptions: bool,
    expected_fingerprint: Fingerprint = NOT_GIVEN,
    timeout: Timeout = NOT_GIVEN,
) -> Call[tokenizer_pb2.BatchEncodeResponse, list[list[int] | TokenizerError]]: ...
def encode_batch(
    defaults: Defaults,
    texts: Iterable[Text],
    *,
    encoding: str | None = None,
    allowed_special: AllowedSpecial = frozenset(),
    disallowed_special: DisallowedSpecial = "all",
    add_special_tokens: bool = False,
    return_exceptions: bool = False,
    expected_fingerprint: Fingerprint = NOT_GIVEN,
    timeout: Timeout = NOT_GIVEN,
) -> Call[tokenizer_pb2.BatchEncodeResponse, Any]:
    """Encode many texts in one call, each as `encode` would.

    Args:
        texts: Each a string or a sequence of segments.
        encoding: As for `encode`, like the two that follow.
        allowed_special: Special tokens that may become control tokens.
        disallowed_special: "all" to fail for the others, () to read them as ordinary text.
        add_special_tokens: Whether to add what frames a text.
        return_exceptions: True: the error of an item that fails is returned in its place;
            False: the first one is raised, its index in `item`.
        expected_fingerprint: What the encoding must be.
        timeout: Seconds, for the whole call; None for no deadline.
    Returns:
        The ids of each text, in order; [] for no texts.
    Raises:
        TokenizerError: See `bytepair_client.errors`.
    """
    request = tokenizer_pb2.BatchEncodeRequest(
        items=batch(texts),
        allowed_special=wire_allowed(allowed_special),
        disallowed_special=wire_disallowed(disallowed_special),
        add_special_tokens=add_special_tokens,
    )
    set_encoding(request, defaults, encoding, expected_fingerprint)
    return Call(
        BATCH_ENCODE,
        request,
        chosen_timeout(defaults, timeout),
        lambda response: outcomes(response.results, _ids, return_exceptions),
    )


def _encode_request(
    defaults: Defaults,
    text: Text,
    encoding: str | None,
    allowed_special: AllowedSpecial,
    disallowed_special: DisallowedSpecial,
    add_special_tokens: bool,
    expected_fingerprint: Fingerprint,
) -> tokenizer_pb2.EncodeRequest:
    request = tokenizer_pb2.EncodeRequest(
        allowed_special=wire_allowed(allowed_special),
        disallowed_special=wire_disallowed(disallowed_special),
        add_special_tokens=add_special_tokens,
    )
    set_text(request, text)
    set_encoding(request, defaults, encoding, expected_fingerprint)
    return request


def _ids(result: tokenizer_pb2.EncodeResponse | tokenizer_pb2.EncodeResult) -> list[int]:
    return list(result.ids)


def _ids_with_offsets(response: tokenizer_pb2.EncodeResponse) -> IdsWithOffsets:
    return IdsWithOffsets(list(response.ids), list(response.offsets))
