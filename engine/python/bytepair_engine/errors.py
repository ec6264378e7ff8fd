"""The exceptions of the engine, as one tree.

    BytepairError
    ├── UnknownEncoding      (LookupError)  no such encoding or alias
    ├── VocabularyError      (ValueError)   an invalid vocabulary file or declaration
    ├── SpecialTokenFound    (ValueError)   the text contains a special token that is not allowed
    ├── InvalidUnicode       (ValueError)   a lone surrogate in text, or bytes that are not UTF-8
    ├── UnknownTokenId       (LookupError)  an id that the encoding does not have
    ├── UnknownToken         (LookupError)  bytes that are not one token
    ├── InvalidOption        (ValueError)   an argument with an invalid value
    ├── BudgetTooSmall       (ValueError)   the content that must be kept exceeds the token limit
    ├── TrainingError        (ValueError)   texts that no vocabulary can be trained on
    ├── PieceTooLong         (ValueError)   streamed text that has no split point for too long
    ├── StreamFinished       (RuntimeError) use of a stream after its end
    ├── Cancelled            (RuntimeError) work in a `CancelScope` that was cancelled
    └── InternalError        (RuntimeError) a bug in the native core

Every error carries its facts as attributes, so that callers never parse a message. No message
quotes the input text, except for the spelling of a special token, which comes from the vocabulary.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Sequence
from types import UnionType


class BytepairError(Exception):
    """Base class of the errors of this package."""


class UnknownEncoding(BytepairError, LookupError):
    """No encoding or alias has this name.

    Attributes:
        name: The requested name.
        known: The known names, sorted; of the built-in encodings, without their aliases.
        nearest: At most three known names or aliases that are similar, the most similar first.
    """

    def __init__(self, name: str, known: Sequence[str], nearest: Sequence[str] = ()) -> None:
        super().__init__(name, known, nearest)
        self.name = name
        self.known = tuple(known)
        self.nearest = tuple(nearest)

    def __str__(self) -> str:
        return f"unknown encoding {self.name!r}; {shown_names(self.known, self.nearest)}"


def shown_names(known: Sequence[str], nearest: Sequence[str]) -> str:
    """Return the names to show for an unknown one."""
    return f"{'the nearest known' if nearest else 'known'}: {', '.join(nearest or known)}"


class VocabularyError(BytepairError, ValueError):
    """A vocabulary file or declaration is invalid.

    Attributes:
        source: Name of the file or of the declaration.
        line: 1-based line in the file; None if the problem has no line.
        problem: The problem.
        remedy: How to fix it.
    """

    def __init__(self, source: str, problem: str, remedy: str, *, line: int | None = None) -> None:
        super().__init__(source, problem, remedy)
        self.source = source
        self.line = line
        self.problem = problem
        self.remedy = remedy

    def __str__(self) -> str:
        position = self.source if self.line is None else f"{self.source}, line {self.line}"
        return f"{position}: {self.problem}; {self.remedy}"


class SpecialTokenFound(BytepairError, ValueError):
    """The text contains a special token that the caller disallowed.

    Attributes:
        token: The special token.
        byte_offset: Its start, in bytes of the text's UTF-8.
        index: In a chat the index of the message that has the text, or of the tool if `field` is
            "tools"; in a batch the index of the text; None for other texts.
        field: In a chat the path of the text: "content" for all text parts of a message together,
            "tool_calls[1].name", "tools" for a tool's JSON; or "messages" if the format joined the
            token from several texts. "" for other texts.
    """

    def __init__(
        self, token: str, byte_offset: int, index: int | None = None, field: str = ""
    ) -> None:
        super().__init__(token, byte_offset, index, field)
        self.token = token
        self.byte_offset = byte_offset
        self.index = index
        self.field = field

    def __str__(self) -> str:
        found = _place(self.index, self.field)
        found += f"the text contains the special token {self.token!r} at byte {self.byte_offset}; "
        if self.field:
            return f"{found}disallowed_special=() encodes it as ordinary text"
        return (
            f"{found}remove it from disallowed_special, such as by disallowed_special=(), to "
            f'encode it as ordinary text; if that is "all", allowed_special={{{self.token!r}}} '
            "allows it"
        )


def _place(index: int | None, field: str) -> str:
    if field:
        return f"{in_chat(index, field)}: "
    return "" if index is None else f"text {index}: "


def in_chat(index: int | None, field: str) -> str:
    """Return where a field of a chat is, for messages of errors."""
    kind = "tool" if field.startswith("tools") else "message"
    return f"{'chat' if index is None else f'{kind} {index}'}: {field}"


class InvalidUnicode(BytepairError, ValueError):
    """Text with a lone surrogate, or bytes that are not UTF-8.

    Attributes:
        byte_offset: Start of the invalid part: in text, the length of the UTF-8 before it; in
            bytes, the offset.
        problem: The problem.
        index: In a batch or a corpus the index of the text; in a chat see `SpecialTokenFound`, as
            for `field`.
        field: See `index`.
    """

    def __init__(
        self, byte_offset: int, problem: str, index: int | None = None, field: str = ""
    ) -> None:
        super().__init__(byte_offset, problem, index, field)
        self.byte_offset = byte_offset
        self.problem = problem
        self.index = index
        self.field = field

    def __str__(self) -> str:
        place = _place(self.index, self.field)
        return f"{place}{self.problem} at byte {self.byte_offset}"


class UnknownTokenId(BytepairError, LookupError):
    """An id that the encoding does not have.

    Attributes:
        token_id: The id.
        index: Its index in the sequence of ids; None for a single id.
    """

    def __init__(self, token_id: int, index: int | None = None) -> None:
        token_id = operator.index(token_id)
        super().__init__(token_id, index)
        self.token_id = token_id
        self.index = index

    def __str__(self) -> str:
        position = "" if self.index is None else f" at index {self.index}"
        return f"no token has id {self.token_id}{position}"


class UnknownToken(BytepairError, LookupError):
    """Bytes that are not exactly one token.

    Attributes:
        length: The number of bytes.
    """

    def __init__(self, length: int) -> None:
        super().__init__(length)
        self.length = length

    def __str__(self) -> str:
        return f"these {self.length} bytes are not one token of the encoding"


class InvalidOption(BytepairError, ValueError):
    """An argument with an invalid value.

    Attributes:
        option: The argument's name.
        problem: The problem.
    """

    def __init__(self, option: str, problem: str) -> None:
        super().__init__(option, problem)
        self.option = option
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.option}: {self.problem}"


def check_least(option: str, value: int, least: int) -> int:
    """Check an argument that is a number.

    Returns:
        The value; of a larger one than the core's integers hold, the largest of these. No count is
        larger.
    Raises:
        InvalidOption: It is less than `least`.
        TypeError: It is not an integer.
    """
    if not hasattr(value, "__index__") or isinstance(value, bool):
        raise wrong_type(option, "int", value)
    value = operator.index(value)
    if value < least:
        raise InvalidOption(option, f"must be {least} or more, not {value}")
    return min(value, sys.maxsize)


def check_percent(option: str, value: int, least: int = 0) -> None:
    """Raise InvalidOption if an argument is not from `least` to 100, TypeError if no integer."""
    if check_least(option, value, least) > 100:
        raise InvalidOption(option, f"must be {least} to 100, not {value}")


def has_surrogate(text: str) -> bool:
    """Whether a string holds a lone surrogate, which UTF-8 cannot encode."""
    return not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text)


def check_type(option: str, value: object, kind: type | UnionType, wanted: str) -> None:
    """Raise TypeError if an argument has another type; `wanted` says what to pass."""
    if not isinstance(value, kind):
        raise wrong_type(option, wanted, value)


def wrong_type(option: str, wanted: str, value: object) -> TypeError:
    """Return the error for an argument of another type than the wanted one."""
    return TypeError(f"{option} must be {wanted}, not {type(value).__name__}")


class BudgetTooSmall(BytepairError, ValueError):
    """The content that must be kept has more tokens than the limit.

    Attributes:
        needed: The limit that would be enough for it.
        budget: The limit.
        byte_offset: Offset, in the text's UTF-8, of the code point that does not fit; None if it
            is not a single one.
        has_reserve: Whether `reserve_tokens` lowered the limit.
    """

    def __init__(
        self, needed: int, budget: int, byte_offset: int | None = None, has_reserve: bool = False
    ) -> None:
        super().__init__(needed, budget, byte_offset, has_reserve)
        self.needed = needed
        self.budget = budget
        self.byte_offset = byte_offset
        self.has_reserve = has_reserve

    def __str__(self) -> str:
        content, limit = f"the code point at byte {self.byte_offset}", f"the limit is {self.budget}"
        if self.byte_offset is None:
            content = "what must be kept (the marker, added special tokens or messages)"
        remedy = "raise max_tokens"
        if self.has_reserve:
            limit = f"reserve_tokens leaves {self.budget} of max_tokens"
            remedy += ", or lower reserve_tokens"
        return f"{content} needs {self.needed} tokens, and {limit}; {remedy}"


class PieceTooLong(BytepairError, ValueError):
    """Streamed text exceeded the buffer limit without a point where it can be split.

    Attributes:
        limit: The limit, in bytes of buffered text.
        byte_offset: Offset in the stream where the buffered text starts.
    """

    def __init__(self, limit: int, byte_offset: int) -> None:
        super().__init__(limit, byte_offset)
        self.limit = limit
        self.byte_offset = byte_offset

    def __str__(self) -> str:
        return (
            f"the text from byte {self.byte_offset} has more than {self.limit} bytes without a "
            "split point, such as one endless word; in a stream raise max_pending_bytes; to cut "
            "it, keep only the start or the end, without a marker, or try another max_tokens"
        )


class Cancelled(BytepairError, RuntimeError):
    """The work was cancelled by its `CancelScope`; it has no result."""

    def __str__(self) -> str:
        return "the work was cancelled"


class TrainingError(BytepairError, ValueError):
    """The texts cannot be trained on.

    Attributes:
        problem: The problem.
        remedy: How to fix it.
    """

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem, remedy)
        self.problem = problem
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.problem}; {self.remedy}"


class StreamFinished(BytepairError, RuntimeError):
    """A stream was used after its end: after `finish()`, a stop string or an error."""

    def __str__(self) -> str:
        return "the stream has ended; start another one"


class InternalError(BytepairError, RuntimeError):
    """The native core panicked: a bug in this package, whatever the input.

    The failed call had no effect, and the encoding remains usable. Standard error shows the
    position in the core, without the text.
    """

    def __str__(self) -> str:
        return "the native core failed on this input; please report it as a bug"
