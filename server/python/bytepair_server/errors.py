"""The errors of a request, as one tree of types.

    Refusal
    ├── Unauthenticated              no key or certificate, or an unknown one
    ├── Overloaded                   a limit on calls, streams or bytes is reached
    ├── QuotaExceeded                the caller exceeds one of its quotas
    ├── Draining                     the server is stopping
    ├── StreamIdle                   a stream had no message for too long
    ├── FingerprintMismatch          the caller expects another vocabulary
    ├── FormatMismatch               the caller expects another chat format
    ├── FormatNotPermitted           the caller's ceiling does not list the chat format
    ├── SpecialTokenNotPermitted     a special token is not in the caller's ceiling
    ├── SpecialTokenInSegment        a segment's text contains a special token
    ├── InputTooLarge                a size limit is exceeded
    ├── InvalidField                 an option is invalid, or the bytes are not a message
    ├── InvalidText                  text that is not UTF-8
    └── InConfig                     one of these in the configuration of a stream

`rpc/status.py` turns them into statuses.
"""

from __future__ import annotations


class Refusal(Exception):
    """Base class of the errors that the server raises for a request."""


class Unauthenticated(Refusal):
    """No credentials, or unknown ones."""


class Overloaded(Refusal):
    """The server has reached a limit.

    Attributes:
        retry_seconds: Delay before a retry.
        what: The limited things, plural, for people, such as "open streams".
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
    """No message was received from a stream or sent to it for `seconds`."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = seconds


class FingerprintMismatch(Refusal):
    """The encoding has another fingerprint than `expected_fingerprint`."""

    def __init__(self, encoding: str, expected: str, actual: str) -> None:
        super().__init__(encoding, expected, actual)
        self.encoding = encoding
        self.expected = expected
        self.actual = actual


class FormatMismatch(Refusal):
    """The chat format has another fingerprint than `expected_format_fingerprint`."""

    def __init__(self, format_name: str, expected: str, actual: str) -> None:
        super().__init__(format_name, expected, actual)
        self.format = format_name
        self.expected = expected
        self.actual = actual


class FormatNotPermitted(Refusal):
    """The caller's ceiling does not list the chat format."""

    def __init__(self, format_name: str) -> None:
        super().__init__(format_name)
        self.format = format_name


class SpecialTokenNotPermitted(Refusal):
    """A special token is not in the caller's ceiling, or not in the encoding.

    Attributes:
        field: The request's field that names it.
        is_token: Whether the encoding has it; else it may be any text.
    """

    def __init__(self, token: str, encoding: str, field: str, *, is_token: bool) -> None:
        super().__init__(token, encoding, field)
        self.is_token = is_token
        self.token = token
        self.encoding = encoding
        self.field = field


class SpecialTokenInSegment(Refusal):
    """The text of a segment contains a special token, and the request rejects that.

    Attributes:
        token: The special token.
        byte_offset: Its offset in the joined texts of all segments.
        index: Index of its segment.
    """

    def __init__(self, token: str, byte_offset: int, index: int) -> None:
        super().__init__(token, byte_offset, index)
        self.token = token
        self.byte_offset = byte_offset
        self.index = index


class InputTooLarge(Refusal):
    """A limit is exceeded. `size` and `limit` are in `unit`; `size` is None if the message was not
    read to its end."""

    def __init__(self, field: str, size: int | None, limit: int, unit: str) -> None:
        super().__init__(field, size, limit, unit)
        self.field = field
        self.size = size
        self.limit = limit
        self.unit = unit


class InvalidField(Refusal):
    """A field has an invalid value. `field` is "request" if the bytes are not such a message."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(field, problem)
        self.field = field
        self.problem = problem


class InvalidText(Refusal):
    """A string field, or streamed `data`, is not UTF-8 at `byte_offset` of the field or of the
    whole streamed text."""

    def __init__(self, field: str, byte_offset: int) -> None:
        super().__init__(field, byte_offset)
        self.field = field
        self.byte_offset = byte_offset

    def in_item(self, index: int) -> InvalidText:
        """The same error for an item of a batch."""
        return InvalidText(f"items[{index}].{self.field}", self.byte_offset)


class InConfig(Refusal):
    """The configuration of a stream is invalid.

    Attributes:
        cause: The error.
        field: The invalid field of the configuration; "" for the one that the status table names.
    """

    def __init__(self, cause: Exception, field: str = "") -> None:
        super().__init__(cause, field)
        self.cause = cause
        self.field = field
