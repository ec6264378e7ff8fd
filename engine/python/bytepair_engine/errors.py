"""The exceptions of the engine, as one tree.

    BytepairError
    ├── UnknownEncoding      (LookupError)  no such encoding or alias
    ├── VocabularyError      (ValueError)   a table or a declaration is not what it must be
    ├── SpecialTokenFound    (ValueError)   the text contains a special token that is not allowed
    ├── InvalidUnicode       (ValueError)   a lone surrogate in text, or strict decoding of bytes
    ├── UnknownTokenId       (LookupError)  an id that the encoding does not have
    ├── UnknownToken         (LookupError)  bytes that are not one token
    ├── InvalidOption        (ValueError)   an argument outside its domain
    ├── BudgetTooSmall       (ValueError)   not even the least that must be kept fits
    ├── TrainingError        (ValueError)   the texts make no merge table
    ├── PieceTooLong         (ValueError)   streamed text without a split point for too long
    ├── StreamFinished       (RuntimeError) a stream that was used after its end
    ├── Cancelled            (RuntimeError) work in a `CancelScope` that was cancelled
    └── InternalError        (RuntimeError) a bug in the native core

Every error carries its facts as attributes, so that callers branch on a type and quote a
value and never parse a sentence. No message holds the text that was being encoded, apart
from the spelling of a special token, which is the vocabulary's and not the caller's.
"""

from __future__ import annotations

from collections.abc import Sequence


class BytepairError(Exception):
    """Base of everything that this package raises on purpose."""


class UnknownEncoding(BytepairError, LookupError):
    """No encoding or alias has this name.

    Attributes:
        name: What was requested.
        known: The names that exist, sorted.
    """

    def __init__(self, name: str, known: Sequence[str]) -> None:
        super().__init__(name, known)
        self.name = name
        self.known = tuple(known)

    def __str__(self) -> str:
        return f"unknown encoding {self.name!r}; known: {', '.join(self.known)}"


class VocabularyError(BytepairError, ValueError):
    """A vocabulary file or declaration was refused.

    Attributes:
        source: File name, or the name of the declaration, where the fault is.
        line: 1-based line in that file; None where the fault has no line.
        problem: What is wrong.
        remedy: What to do about it.
    """

    def __init__(self, source: str, problem: str, remedy: str, *, line: int | None = None) -> None:
        super().__init__(source, problem, remedy)
        self.source = source
        self.line = line
        self.problem = problem
        self.remedy = remedy

    def __str__(self) -> str:
        place = self.source if self.line is None else f"{self.source}, line {self.line}"
        return f"{place}: {self.problem}; {self.remedy}"


class SpecialTokenFound(BytepairError, ValueError):
    """The text contains a special token that the caller disallowed.

    Attributes:
        token: The special token.
        byte_offset: Where it starts, in bytes of the text's UTF-8.
    """

    def __init__(self, token: str, byte_offset: int) -> None:
        super().__init__(token, byte_offset)
        self.token = token
        self.byte_offset = byte_offset

    def __str__(self) -> str:
        return (
            f"the text contains the special token {self.token!r} at byte {self.byte_offset}; "
            f"allow it by allowed_special={{{self.token!r}}}, or encode it as ordinary text "
            "by disallowed_special=()"
        )


class InvalidUnicode(BytepairError, ValueError):
    """Text with a lone surrogate, or bytes that are not UTF-8 under strict decoding.

    Attributes:
        byte_offset: Where the fault starts: in bytes of the UTF-8 of the text before it, or
            in the decoded bytes.
        problem: What is wrong there.
    """

    def __init__(self, byte_offset: int, problem: str) -> None:
        super().__init__(byte_offset, problem)
        self.byte_offset = byte_offset
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.problem} at byte {self.byte_offset}"


class UnknownTokenId(BytepairError, LookupError):
    """An id that the encoding does not have.

    Attributes:
        token_id: The id.
        index: Its position in the ids that were given; None for a single id.
    """

    def __init__(self, token_id: int, index: int | None = None) -> None:
        super().__init__(token_id, index)
        self.token_id = token_id
        self.index = index

    def __str__(self) -> str:
        place = "" if self.index is None else f" at index {self.index}"
        return f"no token has id {self.token_id}{place}"


class UnknownToken(BytepairError, LookupError):
    """Bytes that are not exactly one token.

    Attributes:
        length: How many bytes were given.
    """

    def __init__(self, length: int) -> None:
        super().__init__(length)
        self.length = length

    def __str__(self) -> str:
        return f"these {self.length} bytes are not one token of the encoding"


class InvalidOption(BytepairError, ValueError):
    """An argument outside its domain.

    Attributes:
        option: The argument's name.
        problem: What is wrong with it.
    """

    def __init__(self, option: str, problem: str) -> None:
        super().__init__(option, problem)
        self.option = option
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.option}: {self.problem}"


class BudgetTooSmall(BytepairError, ValueError):
    """Not even the least that must be kept fits the number of tokens.

    Attributes:
        needed: How many tokens it has.
        budget: How many there may be.
        byte_offset: Of the code point that does not fit, in the text's UTF-8; None where it is no
            single one.
    """

    def __init__(self, needed: int, budget: int, byte_offset: int | None = None) -> None:
        super().__init__(needed, budget, byte_offset)
        self.needed = needed
        self.budget = budget
        self.byte_offset = byte_offset

    def __str__(self) -> str:
        what = (
            "what must be kept"
            if self.byte_offset is None
            else f"the code point at byte {self.byte_offset}"
        )
        return f"{what} has {self.needed} tokens, and the limit is {self.budget}; allow more"


class PieceTooLong(BytepairError, ValueError):
    """Streamed text exceeded the bound without a place where it can be split.

    Attributes:
        limit: How many bytes of text a stream may hold.
        byte_offset: Where in the stream the text that cannot be cut starts.
    """

    def __init__(self, limit: int, byte_offset: int) -> None:
        super().__init__(limit, byte_offset)
        self.limit = limit
        self.byte_offset = byte_offset

    def __str__(self) -> str:
        return (
            f"the text from byte {self.byte_offset} has more than {self.limit} bytes that can "
            "only be encoded together; raise max_pending_bytes, or encode the text at once"
        )


class Cancelled(BytepairError, RuntimeError):
    """The work was cancelled by its `CancelScope`; it has no result."""

    def __str__(self) -> str:
        return "the work was cancelled"


class TrainingError(BytepairError, ValueError):
    """The texts cannot be trained on.

    Attributes:
        problem: What is wrong with them.
        remedy: What to do about it.
    """

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem, remedy)
        self.problem = problem
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.problem}; {self.remedy}"


class StreamFinished(BytepairError, RuntimeError):
    """A stream was fed after its end: `finish()`, a stop string or an error."""

    def __str__(self) -> str:
        return "the stream has ended; start another one"


class InternalError(BytepairError, RuntimeError):
    """The native core panicked: a bug of this package, whatever it was given.

    The call that raises it has had no effect, and the encoding can be used as before. Where in
    the core it happened is on standard error, without the text.
    """

    def __str__(self) -> str:
        return "the native core failed on this input; please report it as a bug"
