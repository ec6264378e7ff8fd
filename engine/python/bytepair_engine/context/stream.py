"""Split text that arrives in pieces into the chunks of the whole text."""

from __future__ import annotations

from collections.abc import Iterable
from threading import Lock
from typing import Final

import regex

from bytepair_engine.context.boundaries import Boundaries, Level, stable_until
from bytepair_engine.context.splitting import Chunk, Chunker, SplitOptions
from bytepair_engine.encoding import Encoding
from bytepair_engine.errors import (
    BudgetTooSmall,
    BytepairError,
    InvalidOption,
    PieceTooLong,
    SpecialTokenFound,
    StreamFinished,
    check_least,
    check_type,
)
from bytepair_engine.streaming.encoder import DEFAULT_MAX_PENDING_BYTES, can_stream
from bytepair_engine.streaming.no_copies import NoCopies
from bytepair_engine.streaming.utf8 import Utf8Decoder
from bytepair_engine.vocabulary.special_search import special_search
from bytepair_engine.vocabulary.special_sets import SpecialTokens, chosen_names

#: The text before a position that decides whether a paragraph ends after it.
_LINE_END_BEFORE: Final = regex.compile(r"(?r)(?:\r\n|[\r\n\v\f\x85\u2028\u2029])[ \t]*\r?")

#: The levels whose boundaries depend on the text before them.
_RESTARTED: Final[tuple[Level, ...]] = ("grapheme", "word", "sentence")

#: Minimum number of further characters to wait for after each search.
_MORE: Final = 256


class StreamChunker(NoCopies):
    """Splits text that arrives in pieces. The chunks of `feed` and `finish` are those of
    `splitting.split` for the whole text, for all pieces.

    It buffers the text of one chunk and the text after it that decides where the chunk ends: at
    most `max_pending_bytes` and one piece, so memory does not grow with the text. Thread-safe:
    calls are serialised.

    Attributes:
        before_fault: If a call failed, the chunks that it found before the error.

    >>> from bytepair_engine import get_encoding
    >>> from bytepair_engine.context.splitting import SplitOptions
    >>> chunker = StreamChunker(get_encoding("cl100k_base"), SplitOptions(3, level="word"))
    >>> found = [*chunker.feed("one two thr"), *chunker.feed("ee four"), *chunker.finish()]
    >>> [chunk.text for chunk in found]
    ['one two three', ' four']
    """

    def __init__(
        self,
        encoding: Encoding,
        options: SplitOptions,
        *,
        disallowed_special: SpecialTokens = frozenset(),
        max_pending_bytes: int = DEFAULT_MAX_PENDING_BYTES,
    ) -> None:
        """Start a stream.

        Args:
            encoding: One for which `can_stream` holds.
            options: The options.
            disallowed_special: As for `Encoding.encode`.
            max_pending_bytes: Maximum text that is buffered between calls, at least 1: several
                times that of a chunk.
        Raises:
            InvalidOption: An argument outside its domain, or an encoding without known split
                points.
        """
        check_type("options", options, SplitOptions, "SplitOptions")
        check_least("max_pending_bytes", max_pending_bytes, 1)
        if not can_stream(encoding):
            raise InvalidOption(
                "encoding",
                f"text cannot be streamed into {encoding.name!r}: no points are known where its "
                "text can be split",
            )
        every = frozenset(encoding.special_tokens)
        known, rejected = chosen_names(every, options.allowed_special, disallowed_special)
        self._encoding: Final = encoding
        self._options: Final = options
        self._rejected: Final = special_search(rejected)
        self._names: Final = special_search(known | rejected)
        self._max_pending: Final = max_pending_bytes
        self._utf8: Final = Utf8Decoder("strict")
        self._lock: Final = Lock()
        self._closed = False
        self._parts: list[str] = []
        self._length = 0  # of the parts together, in characters
        self._search_at = 0  # the length at which to search next
        self._before = 0  # dropped characters
        self._bytes_before = 0  # their bytes
        self._start = 0  # start of the next chunk in the buffer
        self._last_end = 0  # end of the last chunk
        self._restarts: dict[Level, int] = {}
        self.before_fault: list[Chunk] = []
        self._searched = 0  # searched for disallowed special tokens up to here

    @property
    def pending_bytes(self) -> int:
        """The approximate number of buffered bytes; 0 after the end."""
        return 0 if self._closed else self._held_bytes

    @property
    def bytes_consumed(self) -> int:
        """The bytes received so far; after an error, those read before it."""
        return self._utf8.decoded + len(self._utf8.pending)

    @property
    def finished(self) -> bool:
        """Whether the stream has ended, by `finish` or an error."""
        return self._closed

    def feed(self, piece: str | bytes) -> list[Chunk]:
        """Add the next piece of the text.

        Args:
            piece: Text, or UTF-8 that may be cut within a character.
        Returns:
            The chunks that became certain; [] for none.
        Raises:
            BudgetTooSmall: A code point does not fit a chunk.
            SpecialTokenFound: The text contains a disallowed special token. The offset counts
                from the start of the text; chunks before it may have been returned.
            InvalidUnicode: A lone surrogate, or bytes that are not UTF-8.
            PieceTooLong: The text of a chunk and the text that decides where it ends exceed
                `max_pending_bytes`.
            StreamFinished: After `finish` or an error.
        """
        with self._lock:
            self._open()
            text = self._utf8.decode_piece(piece)
            fault: BytepairError | None = self._utf8.fault
            self._parts.append(text)
            self._length += len(text)
            is_due = self._length >= self._search_at or self._held_bytes > self._max_pending
            chunks = self._search(complete=False) if is_due or fault is not None else []
            if self._held_bytes > self._max_pending:
                fault = PieceTooLong(self._max_pending, self._bytes_before)
            self._raise_after(chunks, fault)
            self._closed = False
            return chunks

    def finish(self) -> list[Chunk]:
        """End the text.

        Returns:
            The remaining chunks; [] for none.
        Raises:
            BudgetTooSmall, SpecialTokenFound: As `feed`.
            InvalidUnicode: The last character is not complete.
            StreamFinished: At a second call, or after an error.
        """
        with self._lock:
            self._open()
            self._utf8.decode(b"", final=True)
            fault = self._utf8.fault
            chunks = self._search(complete=fault is None)
            self._raise_after(chunks, fault)
            return chunks

    @property
    def _held_bytes(self) -> int:
        return self.bytes_consumed - self._bytes_before

    def _open(self) -> None:
        if self._closed:
            raise StreamFinished
        self._closed = True  # an error ends the stream

    def _raise_after(self, chunks: list[Chunk], fault: BytepairError | None) -> None:
        if fault is not None:
            self.before_fault = chunks
            raise fault

    def _search(self, *, complete: bool) -> list[Chunk]:
        """Return the chunks that are certain."""
        text = "".join(self._parts)
        # A special token at the end can become a longer one.
        end = len(text) if complete else self._rejected.unfinished(text)
        rejected = self._rejected.search(text, end, self._searched)
        known: int | None = None
        fault: BytepairError | None = None
        if rejected is not None:
            offset = self._bytes_before + len(text[: rejected.start()].encode())
            fault = SpecialTokenFound(rejected.group(), offset)
            text = text[: rejected.end()]
        if fault is not None or not complete:
            known = min(stable_until(text), self._names.unfinished(text))
            known = known if rejected is None else min(known, rejected.start())
        self._searched = end
        boundaries = Boundaries(text, self._restarts)
        chunker = Chunker(
            self._encoding, text, self._options, boundaries, self._start, self._last_end
        )
        chunks: list[Chunk] = []
        try:
            chunks.extend(map(self._moved, chunker.chunks(known)))
        except BytepairError as error:
            fault = self._moved_error(error)
        self._raise_after(chunks, fault)
        self._start, self._last_end = chunker.start, chunker.last_end
        self._drop_text(text, boundaries)
        return chunks

    def _drop_text(self, text: str, boundaries: Boundaries) -> None:
        """Drop text that no boundary after the start of the next chunk depends on."""
        restarts = {level: boundaries.restart(level, self._start) for level in _RESTARTED}
        line_end = _LINE_END_BEFORE.match(text, 0, self._start)
        first = min(self._start, *restarts.values())
        if line_end is not None:
            first = min(first, line_end.start())
        low, high = self._repeated(text, first, restarts.values())
        self._parts = [text[first:low], text[high:]]
        dropped = first + high - low
        self._length = len(text) - dropped
        self._search_at = self._length + max(_MORE, self._length // 4)
        self._before += dropped
        self._bytes_before += len(text[:first].encode()) + len(text[low:high].encode())
        self._start -= dropped
        self._last_end -= dropped
        self._searched -= dropped
        self._restarts = {
            level: place - (dropped if place >= high else first)
            for level, place in restarts.items()
        }

    def _repeated(self, text: str, first: int, places: Iterable[int]) -> tuple[int, int]:
        """Return a range between `first` and the next chunk that can be dropped: an even number of
        one character that is repeated on both sides, with none of `places` inside. The rules of
        boundaries distinguish no more than odd and even."""
        start, beside = self._start, self._names.longest + 2
        kept = text[first:start]
        run = len(kept) - len(kept.rstrip(kept[-1:]))
        low, high = start - run + beside, start - beside
        if high - low < _MORE or any(low < place < high for place in places):
            return start, start
        return low, high - (high - low) % 2

    def _moved(self, chunk: Chunk) -> Chunk:
        start, end = self._before + chunk.start, self._before + chunk.end
        return Chunk(start, end, chunk.count, chunk.level, chunk.overlap, chunk.text)

    def _moved_error(self, error: BytepairError) -> BytepairError:
        """Return the error with its offset in the whole text."""
        match error:
            case BudgetTooSmall(byte_offset=int(offset)):
                return BudgetTooSmall(error.needed, error.budget, offset + self._bytes_before)
            case PieceTooLong():
                return PieceTooLong(error.limit, error.byte_offset + self._bytes_before)
        return error
