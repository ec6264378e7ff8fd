"""The errors that the server raises for a request; `rpc/status.py` maps them to statuses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from bytepair_engine import UnknownEncoding

#: Suggested wait before a retry: a few times the duration of a usual call.
RETRY_SECONDS: Final = 0.25


class RequestRejected(Exception):
    """Base class of the errors that the server raises for a request."""


@dataclass(eq=False)
class Unauthenticated(RequestRejected):
    """The call has no credentials, or unknown ones.

    Attributes:
        problem: What is wrong with the form of the credentials, or that they are unknown.
        accepted: The credentials that the server accepts, for people.
    """

    problem: str
    accepted: str


class EncodingNotLoaded(UnknownEncoding):
    """The encoding is configured, but could not be loaded."""


@dataclass(eq=False)
class Overloaded(RequestRejected):
    """The server has reached a limit on calls, streams or bytes.

    Attributes:
        retry_seconds: Delay before a retry.
        what: The limited things, plural, for people, such as "open streams".
        setting: The setting of the limit; None if it is fixed.
        was_queued: Whether the call was queued for the longest time before.
    """

    retry_seconds: float
    what: str
    setting: str | None = None
    was_queued: bool = False


@dataclass(eq=False)
class QuotaExceeded(RequestRejected):
    """The caller exceeds one of its quotas.

    Attributes:
        quota: The quota's name in the configuration.
        limit: The quota's value.
        retry_seconds: Delay before a retry.
    """

    quota: str
    limit: float
    retry_seconds: float


class Draining(RequestRejected):
    """The server is stopping and accepts no new calls."""


@dataclass(eq=False)
class StreamIdle(RequestRejected):
    """No message was received from a stream or sent to it for `seconds`."""

    seconds: float


@dataclass(eq=False)
class FingerprintMismatch(RequestRejected):
    """The encoding has another fingerprint than `expected_fingerprint`."""

    encoding: str
    expected: str
    actual: str


@dataclass(eq=False)
class FormatMismatch(RequestRejected):
    """The chat format has another fingerprint than `expected_format_fingerprint`."""

    format: str
    expected: str
    actual: str


@dataclass(eq=False)
class FormatNotPermitted(RequestRejected):
    """The caller's ceiling does not list the chat format."""

    format: str


@dataclass(eq=False)
class NoTokenWithId(RequestRejected):
    """The encoding has no token with an id. `index` is that of the id in the request or the whole
    stream; None for a single id."""

    encoding: str
    token_id: int
    index: int | None = None


@dataclass(eq=False)
class SpecialTokenNotPermitted(RequestRejected):
    """A special token is not in the caller's ceiling, or not in the encoding.

    Attributes:
        token: The token as the request spells it.
        encoding: The canonical name of the encoding.
        field: The request's field that names it.
        is_token: Whether the encoding has it; else it may be any text.
    """

    token: str
    encoding: str
    field: str
    is_token: bool


@dataclass(eq=False)
class SpecialTokenInSegment(RequestRejected):
    """The text of a segment contains a special token, and the request rejects that.

    Attributes:
        token: The special token.
        byte_offset: Its offset in the joined texts of all segments.
        index: Index of its segment.
    """

    token: str
    byte_offset: int
    index: int


@dataclass(eq=False)
class InputTooLarge(RequestRejected):
    """A size limit is exceeded. `size` and `limit` are in `unit`; `size` is None if the message was
    not read to its end."""

    field: str
    size: int | None
    limit: int
    unit: str


@dataclass(eq=False)
class PartTooShort(RequestRejected):
    """A part of `limit` bytes is too short to decide where its text is cut."""

    limit: int
    field: str = "text"


@dataclass(eq=False)
class NoSplitPoint(RequestRejected):
    """A text has more than `limit` bytes without a split point. `setting` is the setting of the
    limit; "" if it is fixed."""

    limit: int
    setting: str = ""


@dataclass(eq=False)
class InvalidField(RequestRejected):
    """A field has an invalid value. `field` is "request" if the bytes are not such a message."""

    field: str
    problem: str


@dataclass(eq=False)
class InvalidText(RequestRejected):
    """A string field, JSON, or streamed `data` is not UTF-8 at `byte_offset` of the field, of the
    request or of the whole streamed text."""

    field: str
    byte_offset: int

    def in_item(self, index: int) -> InvalidText:
        """The same error for an item of a batch."""
        return InvalidText(f"items[{index}].{self.field}", self.byte_offset)


@dataclass(eq=False)
class InConfig(RequestRejected):
    """The configuration of a stream is invalid.

    Attributes:
        cause: The error.
        field: The invalid field of the configuration; "" for the one that the status table names.
    """

    cause: Exception
    field: str = ""
