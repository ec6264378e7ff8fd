"""The exceptions of this package, as one tree.

    TokenizerError                                  base class
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
    │   ├── EstimateNotAllowed         ValueError   the count of a chat is only an estimate
    │   ├── Unauthenticated                         UNAUTHENTICATED
    │   └── Unimplemented                           the server does not have this RPC
    ├── ResourceExhausted                           a limit of gRPC or a proxy: message size, rate
    │   ├── Overloaded                              OVERLOADED
    │   └── QuotaExceeded                           QUOTA_EXCEEDED
    ├── Unavailable              ConnectionError    no server answered at the target
    │   └── Draining                                DRAINING
    ├── StreamIdle                                  STREAM_IDLE
    ├── DeadlineExceeded         TimeoutError       no response, or no end of a stream, in time
    ├── Cancelled                                   the call was cancelled
    ├── InternalError                               a bug of the server, or lost messages
    └── ClientClosed             RuntimeError       a call after close()

Capitals show the reason of the service that a type stands for. A reason that this version of the
package does not know gives a TokenizerError whose `reason` names it. The values in a message are
also attributes; one that the server did not send is None. No message holds the text of a request.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar, Generic, NoReturn, TypeVar

__all__ = [
    "BudgetTooSmall",
    "Cancelled",
    "ChatFormatMismatch",
    "ChatFormatNotPermitted",
    "ClientClosed",
    "DeadlineExceeded",
    "Draining",
    "EstimateNotAllowed",
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


class TokenizerError(Exception):
    """Base class of the exceptions of this package, except for TypeError.

    Attributes:
        message: For people. The wording may change.
        code: The gRPC status, such as "INVALID_ARGUMENT"; None if the client rejected the request
            before it was sent, or its answer.
        reason: Machine-readable, such as "UNKNOWN_ENCODING"; None for errors of gRPC or a proxy.
        metadata: Every value that the message quotes, by name; empty if there is none.
        item: The index of the failed batch item; None outside batches.
        request_id: The id of the call in the server's log; None if there was no response.
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
        metadata: Mapping[str, str] | None = None,
        item: int | None = None,
        request_id: str | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason if reason is not None else self.REASON
        self.metadata = dict(metadata or {})
        self.item = item
        self.request_id = request_id

    @property
    def message(self) -> str:
        return str(self.args[0])

    @message.setter
    def message(self, message: str) -> None:
        self.args = (message,)

    def __str__(self) -> str:
        return self.message if self.item is None else f"item {self.item}: {self.message}"


class _Fact(Generic[T]):
    """An attribute of an error, read from the metadata of its name; None if that is missing."""

    def __init__(self, parse: Callable[[str], T | None], doc: str) -> None:
        self._parse = parse
        self.__doc__ = doc

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, error: TokenizerError | None, owner: type) -> T | None:
        value = None if error is None else error.metadata.get(self._name)
        return None if value is None else self._parse(value)

    def __set__(self, error: TokenizerError, value: object) -> NoReturn:
        raise AttributeError(f"{self._name} is read-only")


def _integer(value: str) -> int | None:
    return int(value) if value.isascii() and value.isdigit() else None


class RequestRejected(TokenizerError):
    """The request is invalid: the same request would fail again."""


class UnknownEncoding(RequestRejected, LookupError, reason="UNKNOWN_ENCODING"):
    """The server has no encoding or alias of this name; `list_encodings()` lists them."""

    encoding = _Fact(str, "The name that was requested.")
    nearest = _Fact(str, "Similar names, separated by commas.")


class FingerprintMismatch(RequestRejected, ValueError, reason="FINGERPRINT_MISMATCH"):
    """The server's encoding or chat format does not have the expected fingerprint."""

    encoding = _Fact(str, "The encoding that was requested.")
    format = _Fact(str, "The chat format, if the fingerprint is that of one.")
    expected = _Fact(str, "The fingerprint that the request expected.")
    actual = _Fact(str, "The server's fingerprint.")


class SpecialTokenInText(RequestRejected, ValueError, reason="SPECIAL_TOKEN_IN_TEXT"):
    """The text contains a special token that is not allowed, and `disallowed_special` is "all"."""

    token = _Fact(str, "The special token.")
    byte_offset = _Fact(_integer, "Where it starts, in bytes of the text's UTF-8.")
    index = _Fact(
        _integer, 'In a chat the index of the message, or of the tool if `field` is "tools".'
    )
    field = _Fact(str, 'In a chat the path of the text, such as "content".')


class UnknownTokenId(RequestRejected, LookupError, reason="UNKNOWN_TOKEN_ID"):
    """The encoding has no token with this id."""

    encoding = _Fact(str, "The encoding; None if the id is out of the range of all of them.")
    id = _Fact(_integer, "The id.")
    index = _Fact(_integer, "The index of the id in the input.")


class InvalidUtf8(RequestRejected, ValueError, reason="INVALID_UTF8"):
    """Text with a lone surrogate or, with `errors="strict"`, ids whose bytes are not UTF-8."""

    byte_offset = _Fact(
        _integer,
        "Where the invalid part starts, in bytes of the text's UTF-8 or of the decoded ids.",
    )


class InputTooLarge(RequestRejected, ValueError, reason="INPUT_TOO_LARGE"):
    """The input has more bytes, ids or items than the limit."""

    field = _Fact(str, 'The field that is too large, or "request" for the whole request.')
    limit = _Fact(_integer, "The limit, in bytes, ids or items.")
    size = _Fact(_integer, "The size of the input, in the same unit.")


class InvalidOption(RequestRejected, ValueError, reason="INVALID_OPTION"):
    """An option is out of range, or two options exclude each other."""

    field = _Fact(str, "The option, or the field of the request.")


class SpecialTokenNotPermitted(RequestRejected, reason="SPECIAL_TOKEN_NOT_PERMITTED"):
    """The operator does not permit this special token to the caller."""

    token = _Fact(str, "The special token that was requested.")
    encoding = _Fact(str, "The encoding that the request named.")


class UnknownChatFormat(RequestRejected, LookupError, reason="UNKNOWN_CHAT_FORMAT"):
    """The server has no chat format of this name."""

    format = _Fact(str, "The name that was requested.")
    nearest = _Fact(str, "Similar names, separated by commas.")


class ChatFormatMismatch(RequestRejected, ValueError, reason="CHAT_FORMAT_MISMATCH"):
    """The encoding does not have the control tokens of the chat format."""

    format = _Fact(str, "The chat format.")
    encoding = _Fact(str, "The encoding.")
    missing = _Fact(str, "The control tokens that it lacks, separated by commas.")


class ChatFormatNotPermitted(RequestRejected, reason="CHAT_FORMAT_NOT_PERMITTED"):
    """The operator does not permit this chat format to the caller."""

    format = _Fact(str, "The format that was requested.")


class InvalidChat(RequestRejected, ValueError, reason="INVALID_CHAT"):
    """The chat format cannot represent this chat."""

    index = _Fact(
        _integer, 'The index of the message, or of the tool if `field` begins with "tools".'
    )
    field = _Fact(str, 'The path of the invalid field, such as "tool_calls[1].arguments".')
    rule = _Fact(str, 'The rule that is broken, such as "role_unknown".')


class TemplateLimit(RequestRejected, ValueError, reason="TEMPLATE_LIMIT"):
    """The operator's chat template exceeded its limit for a chat of this size."""

    limit = _Fact(str, 'The limit: "steps", "depth", "width" or "integer".')


class BudgetTooSmall(RequestRejected, ValueError, reason="BUDGET_TOO_SMALL"):
    """`max_tokens` is too small for the messages that `fit_chat` must keep, for the marker of
    `truncate`, or for one character in `split`."""

    needed = _Fact(_integer, "The number of tokens that are needed.")
    budget = _Fact(_integer, "The number of tokens that are available.")
    byte_offset = _Fact(_integer, "Where the character of `split` starts, in bytes of the UTF-8.")


class EstimateNotAllowed(RequestRejected, ValueError):
    """The count of a chat is an estimate, and `allow_estimate` is not set."""

    count = _Fact(_integer, "The estimate.")


class Unauthenticated(RequestRejected, reason="UNAUTHENTICATED"):
    """The API key or client certificate that the server requires is missing or unknown."""


class Unimplemented(RequestRejected):
    """The server does not have this RPC: it is an older version or another program."""


class ResourceExhausted(TokenizerError):
    """A limit of gRPC or a proxy: a message that is too large, or a rate limit.

    Attributes:
        retry_after: Seconds to wait before the next attempt; None if unknown, or if waiting does
            not help.
    """

    retry_after: float | None = None


class Overloaded(ResourceExhausted, reason="OVERLOADED"):
    """The server is overloaded and rejected the call without doing any work."""

    setting = _Fact(str, "The setting of the server that is its limit; None if that is fixed.")


class QuotaExceeded(ResourceExhausted, reason="QUOTA_EXCEEDED"):
    """The caller exceeded its quota. The server rejected the call without doing any work."""

    quota = _Fact(str, 'The quota, such as "requests_per_second".')
    limit = _Fact(float, "The value of the quota.")


class Unavailable(TokenizerError, ConnectionError):
    """No server answered at the target, or the connection broke, after all retries."""


class Draining(Unavailable, reason="DRAINING"):
    """The server is stopping and rejects new calls; retries found no other server."""


class StreamIdle(TokenizerError, reason="STREAM_IDLE"):
    """A stream was idle for longer than the server permits: start a new one."""

    seconds = _Fact(float, "The server's limit.")


class DeadlineExceeded(TokenizerError, TimeoutError):
    """No response, or no end of a stream, within the timeout. The server may have done the work."""


class Cancelled(TokenizerError):
    """The call was cancelled, by `close()` in another thread, by the server, or by cancelling the
    wait for an earlier result of a stream; or the source of a stream was cancelled."""


class InternalError(TokenizerError):
    """A bug of the server, or lost messages; `request_id` finds the call in the server's log."""

    def __str__(self) -> str:
        known = "" if self.request_id is None else f" (request id {self.request_id})"
        return super().__str__() + known


class ClientClosed(TokenizerError, RuntimeError):
    """A call on a client that was closed."""
