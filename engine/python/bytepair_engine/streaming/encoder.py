"""Incremental encoding and counting of text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary

from bytepair_engine.backends.varint import pack
from bytepair_engine.encoding import Encoding, check_encoding
from bytepair_engine.errors import (
    BytepairError,
    InvalidOption,
    SpecialTokenFound,
    StreamFinished,
    check_least,
    check_type,
    has_surrogate,
)
from bytepair_engine.pipeline.definition import NO_TEMPLATE
from bytepair_engine.streaming.no_copies import NoCopies
from bytepair_engine.streaming.pipeline_split_points import pipeline_split_points
from bytepair_engine.streaming.split_points import SplitPoints, split_points_of
from bytepair_engine.streaming.splitter import StreamSplitter
from bytepair_engine.vocabulary.special_search import special_search
from bytepair_engine.vocabulary.special_sets import SpecialTokens, chosen_names

#: Default limit of the buffered text of a stream.
DEFAULT_MAX_PENDING_BYTES: Final = 2**20

#: The split points of pipelines.
_OF_PIPELINES: Final[WeakKeyDictionary[Encoding, SplitPoints | None]] = WeakKeyDictionary()

R = TypeVar("R")
#: Ids as a list, or packed.
A = TypeVar("A", list[int], bytes)


def can_stream(encoding: Encoding) -> bool:
    """Whether text can be streamed into `encoding`. This requires known split points, which exist
    for the named split patterns and for most pipelines."""
    check_encoding(encoding)
    return split_points(encoding) is not None


def split_points(encoding: Encoding) -> SplitPoints | None:
    """Return the split points of `encoding`; None if they are not known."""
    if encoding.pipeline is None:
        return split_points_of(encoding.pattern)
    if encoding not in _OF_PIPELINES:
        _OF_PIPELINES[encoding] = pipeline_split_points(encoding.pipeline)
    return _OF_PIPELINES[encoding]


class _TextStream(NoCopies):
    """The common base of streams that encode or count.

    Attributes:
        encoding: The encoding.
        before_fault: If a call failed, its result for the text before the error.
    """

    __slots__ = (
        "_allowed",
        "_before",
        "_closed",
        "_consumed",
        "_disallowed",
        "_lock",
        "_special",
        "_splitter",
        "before_fault",
        "encoding",
    )

    def __init__(
        self,
        encoding: Encoding,
        *,
        allowed_special: SpecialTokens = frozenset(),
        disallowed_special: SpecialTokens = "all",
        max_pending_bytes: int = DEFAULT_MAX_PENDING_BYTES,
        preceding_text: str = "",
    ) -> None:
        """Start a stream; see `StreamEncoder`."""
        check_encoding(encoding)
        points = split_points(encoding)
        if points is None:
            raise InvalidOption(
                "encoding",
                f"text cannot be streamed into {encoding.name!r}: no points are known where its "
                "text can be split",
            )
        check_least("max_pending_bytes", max_pending_bytes, 1)
        check_type("preceding_text", preceding_text, str, "str")
        if has_surrogate(preceding_text[-1:]):  # no other character is read
            raise InvalidOption("preceding_text", "ends with a lone surrogate")
        every = frozenset(encoding.special_tokens)
        allowed, rejected = chosen_names(every, allowed_special, disallowed_special)
        self.encoding: Final = encoding
        self._allowed: Final[SpecialTokens] = "all" if allowed_special == "all" else allowed
        self._disallowed: Final[SpecialTokens] = "all" if disallowed_special == "all" else rejected
        self._special: Final = special_search(allowed | rejected)
        self._splitter: Final = StreamSplitter(
            points,
            allowed=special_search(allowed),
            disallowed=special_search(rejected),
            either=self._special,
            max_pending_bytes=max_pending_bytes,
        )
        # For a pipeline, the character before the next text: a pipeline may treat the start of a
        # text differently.
        self._before = "" if encoding.pipeline is None else preceding_text[-1:]
        self._lock: Final = Lock()
        self._closed = False
        self._consumed = 0
        self.before_fault: Any = None

    @property
    def bytes_consumed(self) -> int:
        """Number of bytes of the text that were encoded or counted."""
        return self._consumed

    @property
    def pending_bytes(self) -> int:
        """Number of buffered bytes, which wait for more text."""
        return 0 if self._closed else self._splitter.pending_bytes

    @property
    def finished(self) -> bool:
        """Whether the stream has ended: after `finish` or an error."""
        return self._closed

    def _run(
        self, piece: str | bytes, work: Callable[[str, str, bool], R], *, last: bool = False
    ) -> R:
        """Call `work` with the preceding character, with the text that `piece` completes, and with
        whether the whole text ends with it; if it is the last piece, which is empty, with the
        buffered text."""
        with self._lock:
            if self._closed:
                raise StreamFinished
            self._closed = True  # an error ends the stream
            splitter = self._splitter
            fault: BytepairError | None = None
            start = splitter.bytes_released
            try:
                text = splitter.finish() if last else splitter.feed(piece)
            except BytepairError as error:
                fault, text = error, splitter.take_released()
            # Only at the start: within the stream, text never ends within a name.
            if start == 0 and self._special.across(self._before + text, len(self._before)) == 0:
                raise InvalidOption("preceding_text", "must not end within a special token")
            consumed = splitter.bytes_released
            try:
                result = work(self._before, text, last and fault is None)
            except SpecialTokenFound as error:
                size = error.byte_offset - len(self._before.encode())
                consumed = start + size
                fault = SpecialTokenFound(error.token, consumed)
                result = work(self._before, text.encode()[:size].decode(), False)
            self._consumed = consumed
            if fault is not None and not self._has_enough():
                self.before_fault = result
                raise fault
            if text and self.encoding.pipeline is not None:
                self._before = text[-1]
            self._closed = last
            return result

    def _has_enough(self) -> bool:
        """Whether the rest of the text, and an error in it, change nothing."""
        return False


class StreamEncoder(_TextStream):
    """Encodes a text that arrives in pieces.

    The joined results of `feed` and `finish` equal `Encoding.encode` of the whole text, however it
    is divided. Each method has a variant that returns packed ids; a stream may use both. Memory
    does not depend on the length of the text. An encoder is thread-safe: a lock serialises calls.
    With `add_special_tokens`, the first call also returns the ids of the template before the text,
    and `finish` those after it. The ids before an error, and the error, do not depend on how the
    text is divided either.

    Attributes:
        before_fault: If a call failed, the ids of the text before the error, in the call's form:
            up to a special token, or else up to the last point where the text can be split.

    >>> from bytepair_engine import get_encoding
    >>> encoder = StreamEncoder(get_encoding("cl100k_base"))
    >>> [encoder.feed("hel"), encoder.feed("lo wor"), encoder.feed(b"ld"), encoder.finish()]
    [[], [15339], [], [1917]]
    """

    __slots__ = ("_begun", "_template")

    def __init__(
        self,
        encoding: Encoding,
        *,
        allowed_special: SpecialTokens = frozenset(),
        disallowed_special: SpecialTokens = "all",
        add_special_tokens: bool = False,
        max_pending_bytes: int = DEFAULT_MAX_PENDING_BYTES,
        preceding_text: str = "",
    ) -> None:
        """Start a stream.

        Args:
            encoding: An encoding for which `can_stream` is true.
            allowed_special: See `Encoding`.
            disallowed_special: See `Encoding`.
            add_special_tokens: See `Encoding`.
            max_pending_bytes: Limit of the buffered text, at least 1. It is never reached if the
                pattern has a name and each pre-token has at most an eighth of it.
            preceding_text: To continue a text that another stream encoded up to its
                `bytes_consumed`: the text before that point, or at least its last character. Its
                ids are not returned, nor those of the template before a text. "" at the start.
        Raises:
            InvalidOption: `can_stream` is false, or another argument is invalid. With a pipeline,
                `feed` and `finish` raise it if a special token starts with the last character of
                `preceding_text` and extends into the text.
        """
        super().__init__(
            encoding,
            allowed_special=allowed_special,
            disallowed_special=disallowed_special,
            max_pending_bytes=max_pending_bytes,
            preceding_text=preceding_text,
        )
        self._template: Final = encoding.template if add_special_tokens else NO_TEMPLATE
        self._begun = bool(preceding_text)

    def feed(self, piece: str | bytes) -> list[int]:
        """Encode the next piece of the text.

        Args:
            piece: Text of any length, or UTF-8 bytes that may end within a character.
        Returns:
            The ids that are certain now; [] for none.
        Raises:
            SpecialTokenFound: The text contains a disallowed special token. The offset counts
                from the start of the text. Here and below, `before_fault` has the ids before it.
            InvalidUnicode: The text holds a lone surrogate, or the bytes are not UTF-8.
            PieceTooLong: More than `max_pending_bytes` of text have no split point.
            StreamFinished: The stream has ended by `finish` or an error.
        """
        return self._step(piece, self.encoding.encode, list)

    def feed_packed(self, piece: str | bytes) -> bytes:
        """Encode the next piece into packed ids; see `feed` and `Encoding.encode_packed`."""
        return self._step(piece, self.encoding.encode_packed, pack)

    def finish(self) -> list[int]:
        """End the text.

        Returns:
            The ids of the buffered text; [] for none.
        Raises:
            SpecialTokenFound: See `feed`.
            InvalidUnicode: The last character is incomplete.
            StreamFinished: The stream has ended by `finish` or an error.
        """
        return self._step("", self.encoding.encode, list, last=True)

    def finish_packed(self) -> bytes:
        """End the text, and return packed ids; see `finish` and `Encoding.encode_packed`."""
        return self._step("", self.encoding.encode_packed, pack, last=True)

    def _step(
        self,
        piece: str | bytes,
        encode: Callable[..., A],
        convert: Callable[[Sequence[int]], A],
        *,
        last: bool = False,
    ) -> A:
        """Return the ids of the text that `piece` completes, by `encode`; see `_run`. `convert`
        converts the template's ids to the same form."""

        def work(before: str, text: str, complete: bool) -> A:
            ids = self._options(encode, before + text)
            if before:
                ids = ids[len(self._options(encode, before)) :]
            if not self._template:
                return ids
            first = () if self._begun else self._template.before
            self._begun = True
            return convert(first) + ids + convert(self._template.after if complete else ())

        return self._run(piece, work, last=last)

    def _options(self, encode: Callable[..., R], text: str) -> R:
        return encode(text, allowed_special=self._allowed, disallowed_special=self._disallowed)


class StreamCounter(_TextStream):
    """Counts the tokens of a text that arrives in pieces.

    The result of `finish` equals `Encoding.count` of the whole text, however it is divided.

    Attributes:
        count: Number of tokens that are certain so far; `limit` + 1 if it exceeds `limit`.
        limit: See `Encoding.count`.
    """

    __slots__ = ("count", "limit")

    def __init__(
        self,
        encoding: Encoding,
        *,
        limit: int | None = None,
        allowed_special: SpecialTokens = frozenset(),
        disallowed_special: SpecialTokens = (),
        add_special_tokens: bool = False,
        max_pending_bytes: int = DEFAULT_MAX_PENDING_BYTES,
    ) -> None:
        """Start a stream.

        Args:
            encoding: An encoding for which `can_stream` is true.
            limit: At least 0: text is ignored once the limit is exceeded. None for no limit.
            allowed_special: See `Encoding`.
            disallowed_special: See `Encoding`.
            add_special_tokens: See `Encoding`; all of them are counted from the start.
            max_pending_bytes: See `StreamEncoder`.
        Raises:
            InvalidOption: `limit` is negative; or see `StreamEncoder`.
        """
        super().__init__(
            encoding,
            allowed_special=allowed_special,
            disallowed_special=disallowed_special,
            max_pending_bytes=max_pending_bytes,
        )
        self.limit: Final = limit
        self.count = encoding.count("", limit=limit, add_special_tokens=add_special_tokens)

    @property
    def limit_exceeded(self) -> bool:
        """Whether the count exceeds `limit` already."""
        return self.limit is not None and self.count > self.limit

    def feed(self, piece: str | bytes) -> int:
        """Count the next piece of the text.

        Args:
            piece: Text of any length, or UTF-8 bytes that may end within a character. Not read
                once the limit is exceeded.
        Returns:
            `count`.
        Raises:
            The errors of `StreamEncoder.feed`.
        """
        return self._ignore(piece) if self.limit_exceeded else self._run(piece, self._add)

    def finish(self) -> int:
        """End the text.

        Returns:
            The count of the whole text, or `limit` + 1 if it exceeds `limit`.
        Raises:
            The errors of `StreamEncoder.finish`.
        """
        if self.limit_exceeded:
            return self._ignore("", last=True)
        return self._run("", self._add, last=True)

    def _ignore(self, piece: str | bytes, *, last: bool = False) -> int:
        """Return the count, without reading `piece`. Otherwise as `_run`."""
        with self._lock:
            if self._closed:
                raise StreamFinished
            self._closed = True
            check_type("piece", piece, str | bytes, "str or bytes")
            self._closed = last
            return self.count

    def _has_enough(self) -> bool:
        return self.limit_exceeded

    def _add(self, before: str, text: str, complete: bool) -> int:  # noqa: ARG002
        extra = self._count(before, None) if before else 0
        limit = None if self.limit is None else self.limit - self.count + extra
        self.count += self._count(before + text, limit) - extra
        return self.count

    def _count(self, text: str, limit: int | None) -> int:
        return self.encoding.count(
            text,
            limit=limit,
            allowed_special=self._allowed,
            disallowed_special=self._disallowed,
        )
