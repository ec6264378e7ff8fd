"""Split text into chunks of a limited number of tokens, at the coarsest level that fits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from bytepair_engine import cancel
from bytepair_engine.backends.reference import check_unicode
from bytepair_engine.context.boundaries import LEVELS, Boundaries, Level, checked_level
from bytepair_engine.context.core_search import Checkpoint
from bytepair_engine.context.measure import Measure, check_special
from bytepair_engine.encoding import Encoding
from bytepair_engine.errors import (
    BudgetTooSmall,
    InvalidOption,
    InvalidUnicode,
    check_least,
    check_percent,
    check_type,
)
from bytepair_engine.vocabulary.special_sets import SpecialTokens

#: Minimum share of `max_tokens` for a chunk that ends at a boundary coarser than a grapheme.
DEFAULT_MIN_FILL_PERCENT: Final = 50

#: Maximum chunks that the core returns at once.
_CHUNKS: Final = 256


# Not frozen: making a frozen one takes three times as long, which is much beside finding it.
@dataclass(slots=True)
class Chunk:
    """A part of a text.

    Attributes:
        start: Its start, in code points of the text.
        end: Its end.
        count: The count of its text alone under the same options.
        level: The coarsest level with a boundary at its end.
        overlap: The count of the text that it shares with the chunk before it; 0 without overlap.
        text: The text from `start` to `end`.
    """

    start: int
    end: int
    count: int
    level: Level
    overlap: int
    text: str


@dataclass(frozen=True, slots=True)
class SplitOptions:
    """The options of a split.

    Attributes:
        max_tokens: Maximum tokens of a chunk, at least 1, including added template tokens.
        overlap_tokens: Maximum tokens that two chunks share, at most half of `max_tokens`.
        level: The coarsest level to cut at. A chunk ends at the last boundary that fits, if it has
            `min_fill_percent` of `max_tokens` then; else the next finer level is tried. A grapheme
            is cut only if it does not fit on its own.
        min_fill_percent: 0 to 100.
        allowed_special: See `Encoding.encode`; these tokens are never cut.
        add_special_tokens: See `Encoding.encode`; applies to each chunk.
    """

    max_tokens: int
    overlap_tokens: int = 0
    level: Level = "paragraph"
    min_fill_percent: int = DEFAULT_MIN_FILL_PERCENT
    allowed_special: SpecialTokens = frozenset()
    add_special_tokens: bool = False

    def __post_init__(self) -> None:
        """Raise InvalidOption for an invalid value."""
        checked_level(self.level)
        object.__setattr__(self, "max_tokens", check_least("max_tokens", self.max_tokens, 1))
        check_least("overlap_tokens", self.overlap_tokens, 0)
        if self.overlap_tokens > self.max_tokens // 2:
            raise InvalidOption(
                "overlap_tokens",
                f"must be 0 to {self.max_tokens // 2}, half of max_tokens, "
                f"not {self.overlap_tokens}",
            )
        check_percent("min_fill_percent", self.min_fill_percent)

    @property
    def levels(self) -> tuple[Level, ...]:
        """The levels to try, from the coarsest to the finest."""
        return LEVELS[: LEVELS.index(self.level) + 1][::-1]


def split(
    encoding: Encoding,
    text: str,
    options: SplitOptions,
    *,
    disallowed_special: SpecialTokens = frozenset(),
) -> Iterator[Chunk]:
    """Split a text into chunks.

    Args:
        encoding: The encoding.
        text: Any text without lone surrogates.
        options: The options.
        disallowed_special: See `Encoding.encode`.
    Yields:
        Chunks in order; none for "". Without overlap they join to the text; with it each starts
        within the one before it or at its end.
    Raises:
        BudgetTooSmall: A code point has more than `max_tokens`; earlier chunks were yielded.
        SpecialTokenFound, InvalidUnicode, InvalidOption, PieceTooLong: See `truncated`.
    """
    check_type("text", text, str, "str")
    chunker = Chunker(encoding, text, options)
    if disallowed_special:
        check_special(encoding, text, options.allowed_special, disallowed_special)
    try:
        yield from chunker.chunks()
    except (InvalidUnicode, UnicodeEncodeError):
        check_unicode(text)  # raises with the offset in the whole text
        raise


class Chunker:
    """Finds the chunks of one text, or of its part that has arrived.

    Attributes:
        start: Start of the next chunk.
        last_end: End of the last chunk.
    """

    def __init__(
        self,
        encoding: Encoding,
        text: str,
        options: SplitOptions,
        boundaries: Boundaries | None = None,
        start: int = 0,
        last_end: int = 0,
    ) -> None:
        self.start = start
        self.last_end = last_end
        self._text: Final = text
        self._options: Final = options
        self._measure: Final = Measure(encoding, text, options.allowed_special, start)
        self._boundaries: Final = Boundaries(text) if boundaries is None else boundaries
        self._frame: Final = len(encoding.template) if options.add_special_tokens else 0
        self._byte = 0, 0  # a position of the text, and its byte

    def chunks(self, known: int | None = None) -> Iterator[Chunk]:
        """Yield the chunks from `start` on.

        Args:
            known: See `next`; for a part of a text only certain chunks are yielded.
        Raises:
            BudgetTooSmall: See `next`.
        """
        while self.start < len(self._text) and self.last_end < len(self._text):
            yield from self._chunks_of_core(known)
            if self.last_end == len(self._text):
                return
            chunk = self.next(self.start, self.last_end, known)
            if chunk is None:
                return
            self.start, self.last_end = self.next_start(chunk), chunk.end
            yield chunk

    def _chunks_of_core(self, known: int | None) -> Iterator[Chunk]:
        """Yield the chunks that the core finds: of ordinary text with split points nearby."""
        fits, text, options = self._measure.fits, self._text, self._options
        if fits is None:
            return
        rule = (
            max(0, options.max_tokens - self._frame),
            max(0, -(options.max_tokens * options.min_fill_percent // -100) - self._frame),
            options.overlap_tokens,
            LEVELS.index(options.level),
        )
        is_start = self._boundaries.is_start
        found = _CHUNKS
        while found == _CHUNKS:
            shared = self._shared(self.start, self.last_end)
            state = self._byte_of(self.start), self.start, self.last_end, shared
            columns, texts, state = fits.chunks(text, state, rule, is_start, known, _CHUNKS)
            cancel.check()
            byte, self.start, self.last_end, _ = state
            self._byte = self.start, byte
            starts, ends, counts, overlaps, levels = columns
            if self._frame:
                counts = [count + self._frame for count in counts]
            # `map` makes the chunks: in a loop that would cost as much as finding them.
            names = map(LEVELS.__getitem__, levels)
            found = len(starts)
            yield from map(Chunk, starts, ends, counts, names, overlaps, texts)

    def _byte_of(self, place: int) -> int:
        known, byte = self._byte
        if place < known:
            return byte - len(self._text[place:known].encode())
        return byte + len(self._text[known:place].encode())

    def _shared(self, start: int, last_end: int) -> int:
        return self._measure.count(self._text[start:last_end]) if start < last_end else 0

    def next(self, start: int, last_end: int, known: int | None = None) -> Chunk | None:
        """Find the chunk that starts at `start`.

        Args:
            start: Its start.
            last_end: End of the chunk before it; it must end after that.
            known: For a part of a text: the last position up to which all boundaries are certain.
        Returns:
            The chunk; None if text that has not arrived could change it.
        Raises:
            BudgetTooSmall: The first code point does not fit.
        """
        budget = self._options.max_tokens - self._frame
        is_complete = known is None
        checkpoints, beyond = self._measure.forwards(start, max(budget, 0), is_complete=is_complete)
        if known is not None and (beyond is None or beyond > known):
            return None
        if beyond is None:
            return self._chunk(start, len(self._text), last_end, checkpoints[-1].count, "paragraph")
        least = self._options.max_tokens * self._options.min_fill_percent
        for level in self._options.levels:
            found = self._last(level, checkpoints, beyond, budget)
            if found is None:
                continue
            end, count = found
            enough = (count + self._frame) * 100 >= least or level in ("grapheme", "code_point")
            if enough and end > last_end:
                return self._chunk(
                    start, end, last_end, count, self._boundaries.level_of(end, level)
                )
        if start < last_end:
            # No longer chunk starts here: start the next one at the end of the last one.
            return self.next(last_end, last_end, known)
        needed = self._frame + self._measure.count(self._text[start : start + 1])
        place = len(self._text[:start].encode())
        raise BudgetTooSmall(needed, self._options.max_tokens, place)

    def next_start(self, chunk: Chunk) -> int:
        """Return the start of the chunk after `chunk`, with the longest overlap that fits."""
        budget = self._options.overlap_tokens
        if budget == 0:
            return chunk.end
        checkpoints, beyond = self._measure.backwards(chunk.start, chunk.end, budget)
        first = chunk.start if beyond is None else max(chunk.start, beyond)
        for place in self._boundaries.up("grapheme", first, chunk.end):
            if place >= chunk.end:
                break
            if not self._measure.points.splits_special(place) and (
                self._measure.count_from(checkpoints, place, limit=budget) <= budget
            ):
                return place
        return chunk.end

    def _last(
        self, level: Level, checkpoints: list[Checkpoint], beyond: int, budget: int
    ) -> tuple[int, int] | None:
        """Return the last boundary with at most `budget` tokens before it, and their number."""
        for place in self._boundaries.down(level, beyond - 1, checkpoints[0].position):
            if not self._measure.points.splits_special(place):
                count = self._measure.count_to(checkpoints, place, limit=max(budget, 0))
                if count <= budget:
                    return place, count
        return None

    def _chunk(self, start: int, end: int, last_end: int, count: int, level: Level) -> Chunk:
        overlap = self._shared(start, last_end)
        return Chunk(start, end, count + self._frame, level, overlap, self._text[start:end])
