"""Every way a request can fail, as one tree of types.

    Refusal
    ├── Unauthenticated              no key or certificate, or an unknown one
    ├── Overloaded                   a limit on calls, streams or bytes is reached
    ├── QuotaExceeded                the caller exceeds one of its quotas
    ├── Draining                     the server is stopping
    ├── StreamIdle                   a stream had no message for too long
    ├── FingerprintMismatch          the caller expects another vocabulary
    ├── FormatMismatch               the caller expects another chat format
    ├── FormatNotPermitted           the caller's ceiling does not name the chat format
    ├── SpecialTokenNotPermitted     beyond the caller's ceiling
    ├── SpecialTokenInSegment        as the engine's SpecialTokenFound, in one of several texts
    ├── InputTooLarge                a size limit
    ├── InvalidField                 an option outside its domain, or bytes that are not a message
    ├── InvalidText                  text that is not UTF-8
    └── InConfig                     any of these, in the configuration of a stream

`rpc/status.py` turns them into statuses.
"""

from __future__ import annotations


class Refusal(Exception):
    """Base of the errors that the server itself raises for a request."""


class Unauthenticated(Refusal):
    """No credentials, or unknown ones."""


class Overloaded(Refusal):
    """The server has reached a limit.

    Attributes:
        retry_seconds: Delay before a retry.
        what: What the limit counts, plural, for people, such as "open streams".
    """

    def __init__(self, retry_seconds: float, what: str) -> None:
        super().__init__(retry_seconds, what)
        self.retry_seconds = retry_seconds
        self.what = what


class QuotaExceeded(Refusal):
    """The caller exceeds one of its quotas.

    Attributes:
        quota: The quota's name in the configuration.
        limit: The quota's value.
        retry_seconds: Delay before a retry.
    """

    def __init__(self, quota: str, limit: float, retry_seconds: float) -> None:
        super().__init__(quota, limit, retry_seconds)
        self.quota = quota
        self.limit = limit
        self.retry_seconds = retry_seconds


class Draining(Refusal):
    """The server is stopping and takes no new work."""


class StreamIdle(Refusal):
    """Nothing could be read from a stream, or written to it, for `seconds`."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = seconds


class FingerprintMismatch(Refusal):
    """`expected_fingerprint` is not the encoding's."""

    def __init__(self, encoding: str, expected: str, actual: str) -> None:
        super().__init__(encoding, expected, actual)
        self.encoding = encoding
        self.expected = expected
        self.actual = actual


class FormatMismatch(Refusal):
    """`expected_format_fingerprint` is not the chat format's."""

    def __init__(self, format_name: str, expected: str, actual: str) -> None:
        super().__init__(format_name, expected, actual)
        self.format = format_name
        self.expected = expected
        self.actual = actual


class FormatNotPermitted(Refusal):
    """A chat format that the caller's ceiling does not name."""

    def __init__(self, format_name: str) -> None:
        super().__init__(format_name)
        self.format = format_name


class SpecialTokenNotPermitted(Refusal):
    """A special token beyond the caller's ceiling, or that the encoding does not have.

    Attributes:
        field: The request's field that asks for it.
        is_token: Whether the encoding has it; if not, it may be any text.
    """

    def __init__(self, token: str, encoding: str, field: str, *, is_token: bool) -> None:
        super().__init__(token, encoding, field)
        self.is_token = is_token
        self.token = token
        self.encoding = encoding
        self.field = field


class SpecialTokenInSegment(Refusal):
    """The text of a segment contains a special token, which is an error by the call's rule.

    Attributes:
        token: The special token.
        byte_offset: Where it starts, in the segments' texts as if joined.
        index: Which segment it is in.
    """

    def __init__(self, token: str, byte_offset: int, index: int) -> None:
        super().__init__(token, byte_offset, index)
        self.token = token
        self.byte_offset = byte_offset
        self.index = index


class InputTooLarge(Refusal):
    """More than a limit allows; `size` and `limit` in the unit that `unit` names. A message that
    was not read to its end has no known size."""

    def __init__(self, field: str, size: int | None, limit: int, unit: str) -> None:
        super().__init__(field, size, limit, unit)
        self.field = field
        self.size = size
        self.limit = limit
        self.unit = unit


class InvalidField(Refusal):
    """A field outside its domain; `field` is "request" if the bytes are no such message."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(field, problem)
        self.field = field
        self.problem = problem


class InvalidText(Refusal):
    """A string field that is not UTF-8, or streamed `data`; `byte_offset` is where in that
    field, or in the whole text that was streamed."""

    def __init__(self, field: str, byte_offset: int) -> None:
        super().__init__(field, byte_offset)
        self.field = field
        self.byte_offset = byte_offset

    def in_item(self, index: int) -> InvalidText:
        """The same of an item of a batch."""
        return InvalidText(f"items[{index}].{self.field}", self.byte_offset)


class InConfig(Refusal):
    """The configuration of a stream is refused.

    Attributes:
        cause: Why; an error of the table.
        field: The field of the configuration that is at fault; "" for the one that the
            table names.
    """

    def __init__(self, cause: Exception, field: str = "") -> None:
        super().__init__(cause, field)
        self.cause = cause
        self.field = field
