"""Encode or count text that arrives in pieces, as if it had come at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from threading import Lock
from typing import Final, TypeVar

from bytepair_engine.backends.varint import pack
from bytepair_engine.encoding import Encoding
from bytepair_engine.errors import InvalidOption, SpecialTokenFound, StreamFinished
from bytepair_engine.pipeline.definition import NO_TEMPLATE
from bytepair_engine.streaming.pipeline_split_points import pipeline_split_points
from bytepair_engine.streaming.split_points import SplitPoints, split_points_of
from bytepair_engine.streaming.splitter import StreamSplitter
from bytepair_engine.vocabulary.special_names import special_names
from bytepair_engine.vocabulary.special_sets import SpecialTokens

#: How many bytes of text a stream holds, by default.
DEFAULT_MAX_PENDING_BYTES: Final = 2**20

#: How many encodings' split points are kept for streams to come.
_KEPT_BORDERS: Final = 64

R = TypeVar("R")
#: Ids, as a list or packed.
A = TypeVar("A", list[int], bytes)


def can_stream(encoding: Encoding) -> bool:
    """Whether texts can be streamed into `encoding`: whether it is known where a text can be cut
    for it, which is so for the split patterns that have a name and for most pipelines."""
    return split_points(encoding) is not None


@lru_cache(_KEPT_BORDERS)
def split_points(encoding: Encoding) -> SplitPoints | None:
    """Where texts can be split for `encoding`; None where that is not known."""
    if encoding.pipeline is None:
        return split_points_of(encoding.pattern)
    return pipeline_split_points(encoding.pipeline)


class _TextStream:
    """What encoding and counting a stream have in common.

    Attributes:
        encoding: What the text is encoded into.
    """

    __slots__ = (
        "_allowed",
        "_before",
        "_closed",
        "_disallowed",
        "_lock",
        "_looked_for",
        "_splitter",
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
        """See `StreamEncoder`."""
        points = split_points(encoding)
        if points is None:
            raise InvalidOption(
                "encoding",
                f"{encoding.name!r} cannot be streamed into: its split pattern is not one of the "
                "named ones, and it is not known where a text can be cut for it",
            )
        if max_pending_bytes < 1:
            raise InvalidOption("max_pending_bytes", "must be 1 or more")
        # Raises InvalidOption for what is neither "all" nor a collection of names.
        encoding.count("", allowed_special=allowed_special, disallowed_special=disallowed_special)
        every = frozenset(encoding.special_tokens)
        allowed = every if allowed_special == "all" else frozenset(allowed_special)
        rejected = every - allowed if disallowed_special == "all" else frozenset(disallowed_special)
        self.encoding: Final = encoding
        self._allowed: Final[SpecialTokens] = "all" if allowed_special == "all" else allowed
        self._disallowed: Final[SpecialTokens] = "all" if disallowed_special == "all" else rejected
        self._looked_for: Final = special_names(allowed | rejected)
        self._splitter: Final = StreamSplitter(
            points,
            allowed=special_names(allowed & every),
            disallowed=special_names(rejected),
            either=self._looked_for,
            max_pending_bytes=max_pending_bytes,
        )
        # For a pipeline, the character before the text that comes next: without it that would be
        # the start of a text, which may be treated in another way.
        self._before = "" if encoding.pipeline is None else preceding_text[-1:]
        self._lock: Final = Lock()
        self._closed = False

    @property
    def bytes_consumed(self) -> int:
        """How many bytes of the text have been encoded or counted."""
        return self._splitter.bytes_given

    @property
    def pending_bytes(self) -> int:
        """How many bytes wait for more text."""
        return self._splitter.pending_bytes

    @property
    def finished(self) -> bool:
        """Whether the stream is over: after `finish` or an error."""
        return self._closed

    def _run(self, piece: str | bytes | None, work: Callable[[str, str], R]) -> R:
        """Do `work` on the text that `piece`, or for None the end, makes certain, and on what
        stands before it."""
        with self._lock:
            if self._closed:
                raise StreamFinished
            self._closed = True  # an error ends the stream
            splitter = self._splitter
            start = splitter.bytes_given
            text = splitter.finish() if piece is None else splitter.feed(piece)
            # Within the stream no text ends in a part of a name.
            if start == 0 and self._looked_for.across(self._before + text, len(self._before)) == 0:
                raise InvalidOption("preceding_text", "a special token begins in it")
            try:
                result = work(self._before, text)
            except SpecialTokenFound as error:
                offset = start + error.byte_offset - len(self._before.encode())
                raise SpecialTokenFound(error.token, offset) from None
            if text and self.encoding.pipeline is not None:
                self._before = text[-1]
            self._closed = piece is None
            return result


class StreamEncoder(_TextStream):
    """Encodes a text that arrives in pieces: what `feed` and `finish` give, joined, is what
    `Encoding.encode` gives for the whole text, however it was cut.

    Every call comes in two forms, as those of `Encoding`: ids as a list, or
    packed for the wire; one stream may mix them. The memory that a stream needs does not
    depend on the length of the text. Several threads may use one encoder: their calls take
    turns. With `add_special_tokens` the first call gives what the template has before a text, and
    `finish` what it has after it.

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
            encoding: One for which `can_stream` holds.
            allowed_special: As for `Encoding.encode`.
            disallowed_special: As for `Encoding.encode`.
            add_special_tokens: As for `Encoding.encode`.
            max_pending_bytes: How much text may wait for more, at least 1. A text whose
                pre-tokens are each at most an eighth as long never comes to it.
            preceding_text: To go on with a text of which another stream gave the ids up to its
                `bytes_consumed`: the text before that point, at least its last character. It
                gives no ids, nor does what a template has before a text. "" at the start.
        Raises:
            InvalidOption: The encoding's pattern is none of the named ones, or another
                argument is outside its domain. `feed` and `finish` raise it where a special
                token begins in `preceding_text` and ends in the text.
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
        """Take the next piece of the text.

        Args:
            piece: Of any length: whole characters, or UTF-8 that may be cut within one.
        Returns:
            The ids that became certain; [] for none.
        Raises:
            SpecialTokenFound: The text contains a disallowed special token. The offset counts
                from the start of the text; ids before it may have been given.
            InvalidUnicode: A lone surrogate, or bytes that are not UTF-8.
            PieceTooLong: More than `max_pending_bytes` of text can only be encoded together.
            StreamFinished: After `finish` or an error.
        """
        return self._step(piece, self.encoding.encode, list)

    def feed_packed(self, piece: str | bytes) -> bytes:
        """As `feed`; see `Encoding.encode_packed`."""
        return self._step(piece, self.encoding.encode_packed, pack)

    def finish(self) -> list[int]:
        """Say that the text is complete.

        Returns:
            The ids of what was held back; [] for none.
        Raises:
            SpecialTokenFound: As `feed`.
            InvalidUnicode: The last character is not complete.
            StreamFinished: At a second call, or after an error.
        """
        return self._step(None, self.encoding.encode, list)

    def finish_packed(self) -> bytes:
        """As `finish`; see `Encoding.encode_packed`."""
        return self._step(None, self.encoding.encode_packed, pack)

    def _step(
        self,
        piece: str | bytes | None,
        encode: Callable[..., A],
        made: Callable[[Sequence[int]], A],
    ) -> A:
        """The ids that `piece`, or for None the end, makes certain, as `encode` gives them; `made`
        gives those of the template in the same form."""

        def work(before: str, text: str) -> A:
            ids = self._options(encode, before + text)
            if before:
                ids = ids[len(self._options(encode, before)) :]
            if not self._template:
                return ids
            first = () if self._begun else self._template.before
            self._begun = True
            return made(first) + ids + made(self._template.after if piece is None else ())

        return self._run(piece, work)

    def _options(self, encode: Callable[..., R], text: str) -> R:
        return encode(text, allowed_special=self._allowed, disallowed_special=self._disallowed)


class StreamCounter(_TextStream):
    """Counts the tokens of a text that arrives in pieces: `finish` gives what
    `Encoding.count` gives for the whole text, however it was cut.

    Attributes:
        count: How many tokens are certain so far, or `limit` + 1 once there are more.
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
            encoding: One for which `can_stream` holds.
            limit: If given, at least 0: once there are more tokens, text is no longer read.
            allowed_special: As for `Encoding.count`.
            disallowed_special: As for `Encoding.count`.
            add_special_tokens: As for `Encoding.count`; they are counted from the start.
            max_pending_bytes: As for `StreamEncoder`.
        Raises:
            InvalidOption: As for `StreamEncoder`, and for a negative limit.
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
        """Whether there are more than `limit` tokens, whatever text follows."""
        return self.limit is not None and self.count > self.limit

    def feed(self, piece: str | bytes) -> int:
        """Take the next piece of the text.

        Args:
            piece: Of any length: whole characters, or UTF-8 that may be cut within one.
                Ignored once the limit is exceeded.
        Returns:
            `count`.
        Raises:
            As `StreamEncoder.feed`.
        """
        return self.count if self.limit_exceeded else self._run(piece, self._add)

    def finish(self) -> int:
        """Say that the text is complete.

        Returns:
            The count of the whole text, or `limit` + 1 where there are more than `limit`.
        Raises:
            As `StreamEncoder.finish`.
        """
        if self.limit_exceeded:
            self._closed = True
            return self.count
        return self._run(None, self._add)

    def _add(self, before: str, text: str) -> int:
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
