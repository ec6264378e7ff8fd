"""Text cut to a number of tokens."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from bytepair.v1 import context_pb2

from bytepair_client._call import Call, method
from bytepair_client._operations.batches import Batch, Progress, text_items
from bytepair_client._operations.common import (
    CODE_POINT,
    Level,
    copied,
    set_encoding,
    set_one_text,
    tokens,
    wire_level,
)
from bytepair_client._options import (
    NOT_GIVEN,
    Defaults,
    Fingerprint,
    Timeout,
    chosen_timeout,
    invalid,
)
from bytepair_client._text import (
    AllowedSpecial,
    DisallowedSpecial,
    wire_allowed,
    wire_disallowed,
)

TRUNCATE = method(context_pb2.TruncateResponse, "Truncate")
BATCH_TRUNCATE = method(context_pb2.BatchTruncateResponse, "BatchTruncate")

Keep = Literal["start", "end", "both"]


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

    `with_raw_response` also tells the count, and which parts were kept.

    Args:
        text: Any text that fits a request.
        max_tokens: At least 0.
        keep: "start", "end", or "both": a start, then the longest end that fits beside it.
        level: Where the text may be cut: "code_point", "grapheme" (what people see as characters),
            "word", "sentence", "line" or "paragraph".
        marker: Put where text was left out, and counted, such as " …".
        encoding: Name or alias; None for the client's.
        allowed_special: Special tokens that count as one where the text contains them.
        disallowed_special: () to count the others as ordinary text, "all" to fail.
        add_special_tokens: Whether to count the tokens that frame a text too.
        expected_fingerprint: What the encoding must be.
        timeout: Seconds; None for no deadline.
    Returns:
        The longest text that fits; all of it where it does.
    Raises:
        BudgetTooSmall: The text does not fit, and neither does the marker alone.
        TokenizerError: See the tree in the documentation.
    """
    request = context_pb2.TruncateRequest(
        max_tokens=tokens("max_tokens", max_tokens),
        keep=_keep(keep),
        level=wire_level(level),
        marker=marker,
        allowed_special=wire_allowed(allowed_special),
        disallowed_special=wire_disallowed(disallowed_special),
        add_special_tokens=add_special_tokens,
        unit=CODE_POINT,
    )
    set_encoding(request, defaults, encoding, expected_fingerprint)
    return _truncate_call(defaults, request, text, timeout)


def truncate_batch(
    defaults: Defaults,
    texts: Iterable[str],
    max_tokens: int,
    *,
    keep: Keep = "start",
    level: Level = "grapheme",
    marker: str = "",
    encoding: str | None = None,
    allowed_special: AllowedSpecial = frozenset(),
    disallowed_special: DisallowedSpecial = (),
    add_special_tokens: bool = False,
    return_exceptions: bool = False,
    progress: Progress | None = None,
    expected_fingerprint: Fingerprint = NOT_GIVEN,
    timeout: Timeout = NOT_GIVEN,
) -> Batch[context_pb2.BatchTruncateResponse, Any]:
    """Cut many texts, each as `truncate` does.

    Args:
        texts: Any number of strings; read as requests are made.
        max_tokens: As for `truncate`, like the seven that follow.
        keep: "start", "end" or "both".
        level: Where texts may be cut.
        marker: Put where text was left out, and counted.
        encoding: Name or alias; None for the client's.
        allowed_special: Special tokens that count as one where a text contains them.
        disallowed_special: () to count the others as ordinary text, "all" to fail.
        add_special_tokens: Whether to count the tokens that frame each text too.
        return_exceptions: As for `encode_batch`, like `progress`.
        progress: Called with the number of texts that are done, after each request.
        expected_fingerprint: What the encoding must be.
        timeout: Seconds for the whole batch; None for no deadline. Left out: the client's, for
            each request.
    Returns:
        The longest text that fits, for each text in order; [] for no texts.
    Raises:
        TokenizerError: See the tree in the documentation.
    """
    options = context_pb2.BatchTruncateRequest(
        max_tokens=tokens("max_tokens", max_tokens),
        keep=_keep(keep),
        level=wire_level(level),
        marker=marker,
        allowed_special=wire_allowed(allowed_special),
        disallowed_special=wire_disallowed(disallowed_special),
        add_special_tokens=add_special_tokens,
        unit=CODE_POINT,
    )
    set_encoding(options, defaults, encoding, expected_fingerprint)

    def alone(text: Any, seconds: Timeout) -> Call[Any, Any]:
        request = copied(options, context_pb2.TruncateRequest())
        return _truncate_call(defaults, request, text, seconds)

    return Batch(
        defaults,
        BATCH_TRUNCATE,
        options,
        text_items(defaults, texts, alone),
        _text,
        timeout=timeout,
        return_exceptions=return_exceptions,
        progress=progress,
    )


def _truncate_call(
    defaults: Defaults, request: context_pb2.TruncateRequest, text: str, timeout: Timeout
) -> Call[context_pb2.TruncateResponse, str]:
    set_one_text(request, text)
    return Call(TRUNCATE, request, chosen_timeout(defaults, timeout), _text)


def _text(answer: context_pb2.TruncateResponse | context_pb2.TruncateResult) -> str:
    return answer.text


def _keep(keep: str) -> context_pb2.Keep:
    if keep not in ("start", "end", "both"):
        raise invalid("keep", '"start", "end" or "both"')
    found: Any = context_pb2.Keep.Value(f"KEEP_{keep.upper()}")
    value: context_pb2.Keep = found
    return value
