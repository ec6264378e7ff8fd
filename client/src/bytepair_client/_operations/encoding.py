"""Encoding and counting text: at once, in batches, and in streams."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import Any, Literal, NamedTuple, Unpack, get_args, overload

from bytepair.v1 import stream_pb2, tokenizer_pb2

from bytepair_client._arguments import Defaults, DisallowedSpecial, Text, invalid, set_text
from bytepair_client._call import Call, StreamCall, method
from bytepair_client._errors import TokenizerError
from bytepair_client._operations.batches import Batch, TextBatchOptions, text_batch
from bytepair_client._operations.requests import (
    AllTextOptions,
    Pieces,
    TextOptions,
    prepared,
    text_call,
    text_stream,
)

ENCODE_STREAM = method("EncodeStream", lambda response: (list(response.ids),))
ENCODE = method("Encode", lambda response: list(response.ids), stream=ENCODE_STREAM)
ENCODE_WITH_OFFSETS = method(
    "Encode", lambda response: IdsWithOffsets(list(response.ids), list(response.offsets))
)
BATCH_ENCODE = method("BatchEncode", ENCODE.plain)
COUNT_STREAM = method("CountStream", attrgetter("count"), response_per_request=False, restarts=True)
COUNT = method("Count", attrgetter("count"), stream=COUNT_STREAM)
BATCH_COUNT = method("BatchCount", COUNT.plain)

OffsetUnit = Literal["code_point", "byte", "utf16"]


class IdsWithOffsets(NamedTuple):
    """Token ids, and the offset at which each starts: `offsets[i]` belongs to `ids[i]`."""

    ids: list[int]
    offsets: list[int]


def encode(
    defaults: Defaults,
    text: Text,
    *,
    disallowed_special: DisallowedSpecial = "all",
    **options: Unpack[TextOptions],
) -> Call[tokenizer_pb2.EncodeResponse, list[int]]:
    """Encode `text` into token ids.

    Args:
        text: A string of any length, or `Segments([...])`: strings, which are untrusted and never
            become control tokens, and `special("<|name|>")`, which are one control token each.
        disallowed_special: For special tokens in the text that are not allowed: "all" to fail with
            SpecialTokenInText, or () to read them as ordinary text.
        encoding: Name or alias; None for the client's.
        expected_fingerprint: The fingerprint that the encoding must have; otherwise the call fails
            with FingerprintMismatch before any work. None for any. Default: the client's, if the
            call uses the client's encoding.
        timeout: Seconds until DeadlineExceeded, above 0; None for no deadline. Default: the
            client's.
        allowed_special: Special tokens that become control tokens where a string `text` contains
            them; "all" for every one that the server permits to the caller. Default: none.
        add_special_tokens: Whether to add the encoding's template, which `get_encoding` shows,
            around the text. Its tokens need not be in `allowed_special`, but the server must permit
            them to the caller. Default: False.
    Returns:
        The ids in text order; [] for "" without a template.
    Raises:
        InvalidOption: An option is out of range.
    """
    return text_call(ENCODE, defaults, text, disallowed_special=disallowed_special, **options)


def encode_with_offsets(
    defaults: Defaults,
    text: Text,
    *,
    unit: OffsetUnit = "code_point",
    **options: Unpack[AllTextOptions],
) -> Call[tokenizer_pb2.EncodeResponse, IdsWithOffsets]:
    """Encode `text` into token ids with the offset at which each starts.

    The other arguments are those of `encode`.

    Args:
        text: As for `encode`, but only as much as fits into one request. Offsets in Segments are
            those in the joined segments, with special tokens by name.
        unit: The unit of offsets: "code_point" (an index into a Python string), "byte" of UTF-8, or
            "utf16" code unit (JavaScript, Java).
    Returns:
        Ids and offsets, of equal length; both [] for "" without a template. Offsets never decrease.
        In bytes they are exact; in the other units a token that starts inside a character has the
        offset of that character. The template's tokens after the text have the text's length.
    """
    if unit not in get_args(OffsetUnit):
        raise invalid("unit", f"must be one of {', '.join(get_args(OffsetUnit))}")
    request, seconds = prepared(ENCODE_WITH_OFFSETS, defaults, offsets=unit, **options)
    set_text(request, text)
    return Call(ENCODE_WITH_OFFSETS, request, seconds)


@overload
def encode_batch(
    defaults: Defaults,
    texts: Iterable[Text],
    *,
    return_exceptions: Literal[False] = False,
    **options: Unpack[TextBatchOptions],
) -> Batch[tokenizer_pb2.BatchEncodeResponse, list[int]]: ...
@overload
def encode_batch(
    defaults: Defaults,
    texts: Iterable[Text],
    *,
    return_exceptions: bool = False,
    **options: Unpack[TextBatchOptions],
) -> Batch[tokenizer_pb2.BatchEncodeResponse, list[int] | TokenizerError]: ...
def encode_batch(defaults: Defaults, texts: Iterable[Text], **options: Any) -> Batch[Any, Any]:
    """Encode any number of texts, each as `encode` does.

    They are sent in concurrent requests within the server's limits. The other arguments are those
    of `encode`.

    Args:
        texts: Strings of any length, or Segments. They are read when requests are made.
        return_exceptions: If True, the error of a failed item is returned in its place, and the
            error of a failed request in place of each of its items. If False, the first error is
            raised, with the index in `item`.
        progress: Called with the number of finished texts, after each request.
        timeout: Seconds for the whole batch; None for no deadline. Default: the client's, for each
            request.
    Returns:
        The ids of each text, in order; [] for no texts.
    """
    return text_batch(BATCH_ENCODE, encode, defaults, texts, **options)


def encode_stream(
    defaults: Defaults,
    pieces: Pieces,
    *,
    disallowed_special: DisallowedSpecial = "all",
    **options: Unpack[TextOptions],
) -> StreamCall[stream_pb2.EncodeStreamResponse, list[int]]:
    """Encode a text that arrives in pieces, of any length and cut anywhere.

    If the connection breaks, the stream resumes over another one. Nothing is lost or repeated.

    The other arguments are those of `encode`.

    Args:
        pieces: Strings, or bytes of UTF-8 that may be cut inside a character, such as a file opened
            in binary mode. A str or bytes alone is one piece, never the name of a file. Pieces that
            arrive while a message is sent share the next one. An empty piece sends an empty
            message, which keeps the stream from being idle.
        timeout: Seconds for the whole stream. Default: None, no deadline.
    Returns:
        An iterator of lists of ids, each as soon as it is final and never empty. Joined they are
        the result of `encode` for the whole text. Its `last` has `bytes_consumed`.
    Raises:
        InputTooLarge: A pre-token, such as a word of megabytes, exceeds the server's buffer.
        TokenizerError: After the ids that were final.
    """
    config, timeout = prepared(
        ENCODE_STREAM, defaults, disallowed_special=disallowed_special, **options
    )
    return text_stream(ENCODE_STREAM, defaults, config, pieces, timeout)


def count(
    defaults: Defaults,
    text: Text,
    *,
    limit: int | None = None,
    disallowed_special: DisallowedSpecial = (),
    **options: Unpack[TextOptions],
) -> Call[tokenizer_pb2.CountResponse, int]:
    """Count the tokens of `text`. By default special tokens in the text are ordinary text.

    The other arguments are those of `encode`.

    Args:
        text: As for `encode`.
        limit: At least 0. Counting may stop once there are more tokens; the result is then
            `limit` + 1. None to count all.
        disallowed_special: For special tokens in the text that are not allowed: () to count them as
            ordinary text, or "all" to fail with SpecialTokenInText.
    Returns:
        The number of tokens, at most `limit` + 1; 0 for "" without a template.
    """
    return text_call(
        COUNT, defaults, text, limit=limit, disallowed_special=disallowed_special, **options
    )


@overload
def count_batch(
    defaults: Defaults,
    texts: Iterable[Text],
    *,
    limit: int | None = None,
    return_exceptions: Literal[False] = False,
    **options: Unpack[TextBatchOptions],
) -> Batch[tokenizer_pb2.BatchCountResponse, int]: ...
@overload
def count_batch(
    defaults: Defaults,
    texts: Iterable[Text],
    *,
    limit: int | None = None,
    return_exceptions: bool = False,
    **options: Unpack[TextBatchOptions],
) -> Batch[tokenizer_pb2.BatchCountResponse, int | TokenizerError]: ...
def count_batch(defaults: Defaults, texts: Iterable[Text], **options: Any) -> Batch[Any, Any]:
    """Count the tokens of any number of texts, each as `count` does.

    The other arguments are those of `count` and of `encode_batch`.

    Args:
        texts: As for `encode_batch`.
        limit: As for `count`, for each text.
    Returns:
        The number of tokens of each text, in order; [] for no texts.
    """
    return text_batch(BATCH_COUNT, count, defaults, texts, **options)


def count_stream(
    defaults: Defaults,
    pieces: Pieces,
    *,
    limit: int | None = None,
    disallowed_special: DisallowedSpecial = (),
    **options: Unpack[TextOptions],
) -> Call[stream_pb2.CountStreamResponse, int]:
    """Count the tokens of a text that arrives in pieces, of any length and cut anywhere.

    If the connection breaks, the text is sent again over another one, provided that it is short or
    `pieces` can be iterated again, like a list and unlike a generator.

    The other arguments are those of `count`, and the `timeout` of `encode_stream`.

    Args:
        pieces: As for `encode_stream`.
        limit: As for `count`. No more pieces are read once it is exceeded.
    Returns:
        The number of tokens, at most `limit` + 1; 0 for no text.
    Raises:
        InputTooLarge: As for `encode_stream`.
    """
    config, timeout = prepared(
        COUNT_STREAM, defaults, limit=limit, disallowed_special=disallowed_special, **options
    )
    stream = text_stream(COUNT_STREAM, defaults, config, pieces, timeout)

    async def last(client: Any, _: Defaults) -> stream_pb2.CountStreamResponse:
        responses: list[stream_pb2.CountStreamResponse] = await client._responses(stream)
        return responses[-1]

    return Call(COUNT_STREAM, config, timeout, last, is_large=True)
