"""The exceptions of this package, as one tree.

    TokenizerError                                  everything that this package raises on purpose
    ├── RequestRejected                             the same request would be rejected again
    │   ├── UnknownEncoding            LookupError  UNKNOWN_ENCODING
    │   ├── FingerprintMismatch        ValueError   FINGERPRINT_MISMATCH
    │   ├── SpecialTokenInText         ValueError   SPECIAL_TOKEN_IN_TEXT
    │   ├── UnknownTokenId             LookupError  UNKNOWN_TOKEN_ID
    │   ├── InvalidUtf8                ValueError   INVALID_UTF8
    │   ├── InputTooLarge              ValueError   INPUT_TOO_LARGE
    │   ├── InvalidOption              ValueError   INVALID_OPTION
    │   ├── SpecialTokenNotPermitted                SPECIAL_TOKEN_NOT_PERMITTED
    │   ├── UnknownChatFormat          LookupError  UNKNOWN_CHAT_FORMAT
    │   ├── ChatFormatMismatch         ValueError   CHAT_FORMAT_MISMATCH
    │   ├── ChatFormatNotPermitted                  CHAT_FORMAT_NOT_PERMITTED
    │   ├── InvalidChat                ValueError   INVALID_CHAT
    │   ├── TemplateLimit              ValueError   TEMPLATE_LIMIT
    │   ├── BudgetTooSmall             ValueError   BUDGET_TOO_SMALL
    │   ├── Unauthenticated                         UNAUTHENTICATED
    │   └── Unimplemented                           the server does not have this RPC
    ├── ResourceExhausted                           a limit of gRPC or a proxy: message size, rate
    │   ├── Overloaded                              OVERLOADED
    │   └── QuotaExceeded                           QUOTA_EXCEEDED
    ├── Unavailable              ConnectionError    no server answered at the target
    │   └── Draining                                DRAINING
    ├── StreamIdle                                  STREAM_IDLE
    ├── DeadlineExceeded         TimeoutError       no answer within the timeout
    ├── Cancelled                                   the call was cancelled
    ├── InternalError                               a bug of the server, or lost messages
    └── ClientClosed             RuntimeError       a call after close()

In capitals: the reason of the service that the type stands for. A reason that this version of
the package does not know is a TokenizerError whose `reason` names it. The facts of an error are
attributes; they are None if the server did not send them.
No message holds the text of a request.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import ClassVar, Generic, NoReturn, Self, TypeVar, overload

__all__ = [
    "BudgetTooSmall",
    "Cancelled",
    "ChatFormatMismatch",
    "ChatFormatNotPermitted",
    "ClientClosed",
    "DeadlineExceeded",
    "Draining",
    "FingerprintMismatch",
    "InputTooLarge",
    "InternalError",
    "InvalidChat",
    "InvalidOption",
    "InvalidUtf8",
    "Overloaded",
    "QuotaExceeded",
    "RequestRejected",
    "ResourceExhausted",
    "SpecialTokenInText",
    "SpecialTokenNotPermitted",
    "StreamIdle",
    "TemplateLimit",
    "TokenizerError",
    "Unauthenticated",
    "Unavailable",
    "Unimplemented",
    "UnknownChatFormat",
    "UnknownEncoding",
    "UnknownTokenId",
]

T = TypeVar("T")

#: The type that stands for each reason of the service.
BY_REASON: dict[str, type[TokenizerError]] = {}

_NOTHING: Mapping[str, str] = MappingProxyType({})


class TokenizerError(Exception):
    """Base of everything that this package raises on purpose.

    Attributes:
        message: For people. Its wording may change.
        code: The status that the call ended with, such as "INVALID_ARGUMENT"; None if the
            request was rejected before it was sent.
        reason: Machine-readable, such as "UNKNOWN_ENCODING"; None for failures of gRPC or of a
            proxy.
        metadata: Every value that the message quotes, by name; empty if there is none.
        item: The index of the failing item of a batch; None outside batches.
        request_id: The id of the call in the server's log; None if there was no answer.
    """

    REASON: ClassVar[str | None] = None

    def __init_subclass__(cls, *, reason: str | None = None) -> None:
        super().__init_subclass__()
        if reason is not None:
            cls.REASON = reason
            BY_REASON[reason] = cls

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        reason: str | None = None,
        metadata: Mapping[str, str] = _NOTHING,
        item: int | None = None,
        request_id: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.reason = reason if reason is not None else self.REASON
        self.metadata = dict(metadata)
        self.item = item
        self.request_id = request_id

    def __str__(self) -> str:
        return self.message if self.item is None else f"item {self.item}: {self.message}"


class _Fact(Generic[T]):
    """An attribute of an error: the metadata of its name; None where the failing side sent none."""

    def __init__(self, parse: Callable[[str], T | None], doc: str) -> None:
        self._parse = parse
        self.__doc__ = doc

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, error: None, owner: type) -> Self: ...
    @overload
    def __get__(self, error: TokenizerError, owner: type) -> T | None: ...
    def __get__(self, error: TokenizerError | None, owner: type) -> Self | T | None:
        if error is None:
            return self
        value = error.metadata.get(self._name)
        return None if value is None else self._parse(value)

    def __set__(self, error: TokenizerError, value: object) -> NoReturn:
        raise AttributeError(f"{self._name} cannot be set: it is what the failing side sent")


def _whole(value: str) -> int | None:
    return int(value) if value.isascii() and value.isdigit() else None


class RequestRejected(TokenizerError):
    """The request is at fault: sending it again would end the same way."""


class UnknownEncoding(RequestRejected, LookupError, reason="UNKNOWN_ENCODING"):
    """The server has no encoding or alias of this name; `list_encodings()` shows what it has.

    `metadata["nearest"]` has similar names that it knows, separated by commas, if there are any.
    """

    encoding = _Fact(str, "The name that was requested.")


class FingerprintMismatch(RequestRejected, ValueError, reason="FINGERPRINT_MISMATCH"):
    """The server's encoding is not the one that `expected_fingerprint` names."""

    encoding = _Fact(str, "The encoding that was requested.")
    expected = _Fact(str, "The fingerprint that the request expected.")
    actual = _Fact(str, "The fingerprint of what the server has under that name.")


class SpecialTokenInText(RequestRejected, ValueError, reason="SPECIAL_TOKEN_IN_TEXT"):
    """The text contains a special token that is neither allowed nor read as ordinary text."""

    token = _Fact(str, "The special token.")
    byte_offset = _Fact(_whole, "Where it starts, in bytes of the text's UTF-8.")


class UnknownTokenId(RequestRejected, LookupError, reason="UNKNOWN_TOKEN_ID"):
    """An id that the encoding does not have, or that no encoding can have."""

    index = _Fact(_whole, "Its position in the ids that were given.")


class InvalidUtf8(RequestRejected, ValueError, reason="INVALID_UTF8"):
    """Text with a lone surrogate, or ids whose bytes are not UTF-8 under `errors="strict"`."""

    byte_offset = _Fact(
        _whole, "Where the fault starts, in bytes of the text's UTF-8 or of the decoded ids."
    )


class InputTooLarge(RequestRejected, ValueError, reason="INPUT_TOO_LARGE"):
    """More bytes, ids or items than one request may hold."""

    field = _Fact(str, 'What is too large: a field of the request, or "request" for all of it.')
    limit = _Fact(_whole, "The most that is accepted, in bytes, ids or items.")
    size = _Fact(_whole, "What was given, in the same unit.")


class InvalidOption(RequestRejected, ValueError, reason="INVALID_OPTION"):
    """An option outside its domain, or two that exclude each other."""

    field = _Fact(str, "The option, or the field of the request.")


class SpecialTokenNotPermitted(RequestRejected, reason="SPECIAL_TOKEN_NOT_PERMITTED"):
    """A special token beyond what the operator lets this caller use."""

    token = _Fact(str, "The special token that was requested.")
    encoding = _Fact(str, "The encoding that the request named.")


class UnknownChatFormat(RequestRejected, LookupError, reason="UNKNOWN_CHAT_FORMAT"):
    """The server has no chat format of this name."""

    format = _Fact(str, "The name that was requested.")


class ChatFormatMismatch(RequestRejected, ValueError, reason="CHAT_FORMAT_MISMATCH"):
    """The encoding does not have the control tokens of the chat format."""

    format = _Fact(str, "The chat format.")
    encoding = _Fact(str, "The encoding.")


class ChatFormatNotPermitted(RequestRejected, reason="CHAT_FORMAT_NOT_PERMITTED"):
    """A chat format beyond what the operator lets this caller use."""

    format = _Fact(str, "The format that was requested.")


class InvalidChat(RequestRejected, ValueError, reason="INVALID_CHAT"):
    """The chat format has no way to write this chat."""

    index = _Fact(_whole, 'Which message, or which tool if `field` begins with "tools".')
    field = _Fact(str, "The field at fault.")
    rule = _Fact(str, 'The rule that it breaks, such as "role_unknown".')


class TemplateLimit(RequestRejected, ValueError, reason="TEMPLATE_LIMIT"):
    """The operator's chat template does more than it may for a chat of this size."""

    limit = _Fact(str, 'What it used up: "steps", "depth", "width" or "integer".')


class BudgetTooSmall(RequestRejected, ValueError, reason="BUDGET_TOO_SMALL"):
    """What must be kept has more tokens than `max_tokens` leaves: the messages that `fit_chat`
    keeps, the marker of `truncate`, or one character for `split`."""

    needed = _Fact(_whole, "The tokens that they need.")
    budget = _Fact(_whole, "The tokens that there are.")


class Unauthenticated(RequestRejected, reason="UNAUTHENTICATED"):
    """The server wants an API key or a client certificate, and got none that it knows."""


class Unimplemented(RequestRejected):
    """The server has no such RPC: an older bytepair, or another program."""


class ResourceExhausted(TokenizerError):
    """A limit on the way: a message larger than either side takes, or a proxy's rate limit.

    Attributes:
        retry_after: Seconds to wait before the next attempt; None where it is unknown, or where
            waiting is of no help.
    """

    retry_after: float | None = None


class Overloaded(ResourceExhausted, reason="OVERLOADED"):
    """The server has more work than it can do in time and did none of this call's."""


class QuotaExceeded(ResourceExhausted, reason="QUOTA_EXCEEDED"):
    """This caller asks for more than its operator gives it; the server did none of the call."""

    quota = _Fact(str, 'Which quota, such as "requests_per_second".')
    limit = _Fact(float, "How much it is.")


class Unavailable(TokenizerError, ConnectionError):
    """No server answered at the target, or the connection broke, in spite of retries."""


class Draining(Unavailable, reason="DRAINING"):
    """The server is stopping and takes no new work; retries found no other."""


class StreamIdle(TokenizerError, reason="STREAM_IDLE"):
    """Nothing was sent through a stream for longer than the server waits: start another one."""

    seconds = _Fact(float, "How long the server waits.")


class DeadlineExceeded(TokenizerError, TimeoutError):
    """No answer within the timeout. The server may or may not have done the work."""


class Cancelled(TokenizerError):
    """The call was cancelled: by `close()` in another thread, or by the other side."""


class InternalError(TokenizerError):
    """A fault of the server or on the way; `request_id` finds it in the server's logs."""

    def __str__(self) -> str:
        known = "" if self.request_id is None else f" (request id {self.request_id})"
        return super().__str__() + known


class ClientClosed(TokenizerError, RuntimeError):
    """A call on a client that was closed."""
