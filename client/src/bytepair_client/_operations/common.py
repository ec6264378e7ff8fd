"""What operations share: which encoding is meant, and the outcomes of a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal, Protocol, TypeVar

from bytepair.v1 import text_pb2

from bytepair_client._errors import TokenizerError
from bytepair_client._status import from_item
from bytepair_client._options import NOT_GIVEN, Defaults, NotGiven, checked_timeout, invalid, utf8

DecodeErrors = Literal["replace", "strict"]
_ERRORS: dict[str, text_pb2.DecodeErrors] = {
    "replace": text_pb2.DECODE_ERRORS_REPLACE,
    "strict": text_pb2.DECODE_ERRORS_STRICT,
}
_MAX_LIMIT = 2**64 - 1

Timeout = float | None | NotGiven
Fingerprint = str | None | NotGiven


class _Request(Protocol):
    """What every request on text or ids has."""

    encoding: str
    expected_fingerprint: str


class BatchResult(Protocol):
    """EncodeResult, DecodeResult and CountResult."""

    @property
    def error(self) -> text_pb2.Error: ...
    def HasField(self, field_name: Literal["error"]) -> bool: ...  # noqa: N802 (protobuf's name)


Result = TypeVar("Result", bound=BatchResult)
Plain = TypeVar("Plain")


def named_encoding(defaults: Defaults, encoding: str | None) -> str:
    """The encoding that a call is about.

    Raises:
        InvalidOption: Neither the call nor the client names one, or the name is not UTF-8.
    """
    name = defaults.encoding if encoding is None else encoding
    if not name:
        raise invalid("encoding", "required: on the call, or once on the client")
    return utf8("encoding", name)


def set_encoding(
    request: _Request, defaults: Defaults, encoding: str | None, expected: Fingerprint
) -> None:
    """Say in `request` which encoding is meant, and what it must be.

    Raises:
        InvalidOption: As named_encoding.
    """
    request.encoding = named_encoding(defaults, encoding)
    if expected is NOT_GIVEN:
        # The client's fingerprint is that of the client's encoding; of another it says nothing.
        same = request.encoding == defaults.encoding
        expected = defaults.expected_fingerprint if same else None
    request.expected_fingerprint = utf8("expected_fingerprint", expected or "")


def chosen_timeout(defaults: Defaults, timeout: Timeout) -> float | None:
    """The seconds that a call gets; None for no deadline.

    Raises:
        InvalidOption: `timeout` is not above 0.
    """
    return defaults.timeout if timeout is NOT_GIVEN else checked_timeout(timeout)


def wire_errors(errors: str) -> text_pb2.DecodeErrors:
    """The `errors` of a request.

    Raises:
        InvalidOption: It is neither "replace" nor "strict".
    """
    if errors not in _ERRORS:
        raise invalid("errors", f"one of {', '.join(_ERRORS)}")
    return _ERRORS[errors]


def checked_limit(limit: int | None) -> int | None:
    """Return `limit` if it is None or a number that a request can hold.

    Raises:
        InvalidOption: It is neither.
    """
    if limit is not None and not 0 <= limit <= _MAX_LIMIT:
        raise invalid("limit", f"0 to {_MAX_LIMIT}, or None to count all")
    return limit


def error_of(result: BatchResult, item: int | None = None) -> TokenizerError | None:
    """The error of one result of a batch, as an exception that is not raised.

    Args:
        result: Of a batch answer that `client.full` gave.
        item: Its index, if the error is to name it.
    Returns:
        None if the item succeeded.
    """
    return from_item(result.error, item) if result.HasField("error") else None


def outcomes(
    results: Iterable[Result], plain: Callable[[Result], Plain], return_exceptions: bool
) -> list[Plain | TokenizerError]:
    """The plain values of a batch, in order.

    Raises:
        TokenizerError: That of the first item that failed, with its index in `item`, unless
            `return_exceptions` leaves errors in their places.
    """
    found: list[Plain | TokenizerError] = []
    for index, result in enumerate(results):
        error = error_of(result, index)
        if error is None:
            found.append(plain(result))
        elif return_exceptions:
            found.append(error)
        else:
            raise error
    return found
