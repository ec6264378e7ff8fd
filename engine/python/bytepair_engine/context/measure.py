"""Exact token counts of parts of one text, without counting shared text twice.

Counts are not monotone: a longer text can have fewer tokens. Safe split points (docs/streaming.md)
make them searchable. The tokens on the two sides of one never affect each other, so counts between
split points add up. Once the text before a split point exceeds the budget, no longer text fits.
Between two split points the core counts every start of the text, for the pipelines that `settled`
knows. Otherwise each position is tried that the lower bound of `covering` allows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Final

from bytepair_engine import cancel
from bytepair_engine.backends.interface import Fits
from bytepair_engine.context.covering import cover
from bytepair_engine.context.settled import settled_places
from bytepair_engine.encoding import Encoding
from bytepair_engine.errors import PieceTooLong, SpecialTokenFound
from bytepair_engine.streaming.encoder import split_points
from bytepair_engine.streaming.split_points import SplitPoints
from bytepair_engine.vocabulary.special_names import special_names
from bytepair_engine.vocabulary.special_sets import SpecialTokens

#: Estimated characters of a token, for the size of the first search only.
_CHARACTERS: Final = 4

#: Maximum distance of two split points between which every position is tried, in characters.
_NEAR: Final = 48

#: Maximum number of characters without a split point that are tried, and counted from the first.
_LONGEST: Final = 1024

#: For encodings whose texts cannot be streamed: a text is counted as a whole.
_UNKNOWN: Final = SplitPoints(local=lambda _text, _end: 0, settled=lambda _text: 0)

#: Characters that the core is given at first, in addition to those for the tokens.
_WINDOW: Final = 256

#: Maximum number of characters for each token that it is given at first.
_MAX_CHARACTERS: Final = 1024

#: Characters before a position that are first searched for a split point.
_BACK: Final = 256

#: Characters before a split point that its rules may look at.
RULE_CONTEXT: Final = 2


@dataclass(frozen=True, slots=True)
class Mark:
    """A position up to which tokens are counted.

    Attributes:
        place: The position.
        count: The number of tokens between it and the start of the search.
        settled: For `forwards`: a text cut here or later has the same tokens before `place`.
    """

    place: int
    count: int
    settled: int = 0


class Measure:
    """Counts parts of one text.

    Attributes:
        text: The text; positions are code points.
        fits: The core's search, for ordinary text; None if the core cannot search it.
        near: Maximum length of a pre-token in which every position is tried, in bytes.
    """

    near: ClassVar[int] = 128

    def __init__(self, encoding: Encoding, text: str, allowed: SpecialTokens) -> None:
        points = split_points(encoding) or _UNKNOWN
        self.text: Final = text
        self._encoding: Final = encoding
        every = frozenset(encoding.special_tokens)
        known = every if allowed == "all" else every & frozenset(allowed)
        self._names: Final = special_names(known)
        self._allowed: Final = known
        self._local: Final = points.local
        self._settled: Final = points.settled
        self._has_context: Final = encoding.pipeline is not None
        # The core is faster and needs no split points, but knows no special tokens.
        self.fits: Final[Fits | None] = None if self._names.longest else encoding.fits
        self._characters = _CHARACTERS
        # The last counts of the core: from a start, by end; and up to an end, by start.
        self._counts: tuple[int, dict[int, int]] = 0, {}
        self._end_counts: tuple[int, dict[int, int]] = 0, {}

    def count(self, text: str, limit: int | None = None) -> int:
        """Return the tokens of a text, or `limit` + 1."""
        return self._encoding.count(
            text, limit=limit, allowed_special=self._allowed, disallowed_special=()
        )

    def after(self, mark: int, text: str, limit: int | None = None) -> int:
        """Return the tokens that `text` adds after the split point `mark`, or `limit` + 1."""
        if not self._has_context or mark == 0:
            return self.count(text, limit)
        before = self.text[mark - 1]
        own = self.count(before)
        return self.count(before + text, None if limit is None else limit + own) - own

    def splits_special(self, place: int) -> bool:
        """Whether a position is inside an allowed special token of the text."""
        return self._names.longest > 1 and self._names.across(self.text, place) is not None

    def forwards(
        self, start: int, budget: int, *, is_complete: bool = True
    ) -> tuple[list[Mark], int | None]:
        """Find where to look for the end of the longest text from `start` within `budget` tokens.

        Returns:
            Marks within the budget, ascending; and a position at and after which every text exceeds
            the budget. None if the whole text fits: then the last mark is its end. None too if
            a text that is not complete does not decide.
        Raises:
            PieceTooLong: Too much text has no split point.
        """
        if self.fits is not None:
            return self._native_forwards(self.fits, start, budget, is_complete)
        end = len(self.text)
        beyond: int | None = None
        marks = [Mark(start, 0)]
        covered: Mark | None = None  # from which `beyond` was bounded
        step = (budget + 1) * _CHARACTERS + _NEAR
        while beyond is None:
            last = marks[-1]
            guess = last.place + step
            place = end if guess >= end else self._split_point(last.place, guess)
            if place == last.place < end:
                if (found := self._by_starts(marks, budget, is_complete)) is not None:
                    return found
                beyond, covered = self._end_covered(last, budget), last
                step *= 4
                continue
            count = last.count + self._between(start, last.place, place, budget - last.count)
            if count > budget:
                beyond = place
            else:
                marks.append(Mark(place, count))
                if place == end:
                    return marks, None
                step = (budget - count + 1) * _CHARACTERS + _NEAR
        while beyond - marks[-1].place > _NEAR:
            last = marks[-1]
            near = self._near(last.place, beyond)
            if near is None:
                if (found := self._by_starts(marks, budget, is_complete)) is not None:
                    return found
                if last is not covered:
                    beyond = min(beyond, self._end_covered(last, budget) or beyond)
                self._check(last.place, beyond)
                break
            count = last.count + self._between(start, last.place, near, budget - last.count)
            if count > budget:
                beyond = near
            else:
                marks.append(Mark(near, count))
        return marks, beyond

    def _by_starts(
        self, marks: list[Mark], budget: int, is_complete: bool
    ) -> tuple[list[Mark], int | None] | None:
        """Return the result of `forwards` by the counts of all starts of the text from the last
        mark; None if they are not known."""
        start, last = marks[0].place, marks[-1]
        settled = settled_places(self._encoding, self._allowed)
        if settled is None:
            return None
        first = last.place - (last.place > start)
        own = self.count(self.text[first : last.place])
        limit = budget - last.count + own
        length = (limit + 1) * self._characters + _WINDOW
        while True:
            window = self.text[first : first + length]
            is_all = first + length >= len(self.text)
            counted = self._encoding.start_counts(window, limit, self._allowed)
            cancel.check()
            if counted is None:
                return None
            known, counts = counted
            beyond = None
            if known is not None:
                beyond = settled.first(window, known, is_complete=is_all and is_complete)
                if (len(window) if beyond is None else beyond) - known > _LONGEST:
                    return None
            if beyond is not None or is_all:
                break
            length *= 2
        more = last.count - own
        self._counts = (
            start,
            {
                first + at: count + more
                for at, count in counts
                if first + at > last.place and settled.has(window, at)
            },
        )
        if beyond is not None:
            self._characters = min(_MAX_CHARACTERS, beyond * 5 // (limit * 4 + 4) + 1)
            return marks, first + beyond
        if known is not None or not is_complete:
            return marks, None
        marks.append(Mark(len(self.text), counts[-1][1] + more if counts else last.count))
        return (marks, None) if marks[-1].count <= budget else (marks[:-1], len(self.text))

    def _native_forwards(
        self, fits: Fits, start: int, budget: int, is_complete: bool
    ) -> tuple[list[Mark], int | None]:
        length = (budget + 1) * self._characters + _WINDOW
        while True:
            window = self.text[start : start + length]
            is_all = start + length >= len(self.text)
            found = fits.fit_start(window, budget, is_all and is_complete, self.near)
            if found is not None:
                marks, beyond, counts = found
                self._counts = start, {start + at: count for at, count in counts}
                # The next search starts with slightly more text than this one needed.
                needed = len(window) if beyond is None else beyond
                self._characters = min(_MAX_CHARACTERS, needed * 5 // (budget * 4 + 4) + 1)
                moved = [Mark(start + at, count, start + settled) for at, settled, count in marks]
                return moved, None if beyond is None else start + beyond
            if is_all:
                return [Mark(start, 0)], None
            cancel.check()
            length *= 2

    def backwards(
        self, start: int, end: int, budget: int, *, is_complete: bool = True
    ) -> tuple[list[Mark], int | None]:
        """As `forwards`, for the start of the longest text that ends at `end`.

        Returns:
            Marks within the budget, descending; and a position at and before which every text
            exceeds the budget. None if all text from `start` fits: then the last mark is `start`.
        Raises:
            PieceTooLong: Too much text has no split point.
        """
        if self.fits is not None:
            return self._native_backwards(self.fits, start, end, budget, is_complete)
        beyond: int | None = None
        marks = [Mark(end, 0)]
        covered: Mark | None = None
        step = (budget + 1) * _CHARACTERS + _NEAR
        while beyond is None:
            last = marks[-1]
            guess = last.place - step
            place = start if guess <= start else self._split_point(start, guess)
            if place == start < guess:
                beyond, covered = self._start_covered(start, last, budget), last
                if beyond is not None:
                    break
            count = last.count + self._between(start, place, last.place, budget - last.count)
            if count > budget:
                beyond = place
            else:
                marks.append(Mark(place, count))
                if place == start:
                    return marks, None
                step = (budget - count + 1) * _CHARACTERS + _NEAR
        while marks[-1].place - beyond > _NEAR:
            last = marks[-1]
            found = self._near(beyond, last.place)
            if found is None:
                bound = None if last is covered else self._start_covered(start, last, budget)
                beyond = beyond if bound is None else max(beyond, bound)
                self._check(beyond, last.place)
                break
            count = last.count + self._between(start, found, last.place, budget - last.count)
            if count > budget:
                beyond = found
            else:
                marks.append(Mark(found, count))
        return marks, beyond

    def _native_backwards(
        self, fits: Fits, start: int, end: int, budget: int, is_complete: bool
    ) -> tuple[list[Mark], int | None]:
        length = (budget + 1) * _CHARACTERS + _WINDOW
        while True:
            first = max(start, end - length)
            is_all = first == start
            found = fits.fit_end(self.text[first:end], budget, is_all and is_complete)
            if found is not None:
                break
            if is_all:
                return [Mark(end, 0)], None
            cancel.check()
            length *= 2
        beyond, counts = found
        self._end_counts = end, {first + at: count for at, count in counts}
        if beyond is None:
            return [Mark(end, 0), Mark(start, counts[0][1])], None
        beyond += first
        marks = [Mark(end, 0)]
        near = self._split_point(beyond, min(beyond + _WINDOW, end - 1))
        if near > beyond:
            marks.append(Mark(near, self.after(near, self.text[near:end])))
        return marks, beyond - 1

    def mark_before(self, marks: list[Mark], place: int) -> Mark:
        """Return the last mark of `forwards` that is valid for a text cut at `place`."""
        return next(
            mark
            for mark in reversed(marks)
            if (mark.place < place and mark.settled <= place) or mark is marks[0]
        )

    def to(self, marks: list[Mark], place: int, suffix: str = "", *, limit: int) -> int:
        """Return the tokens from the first mark of `forwards` to `place`, followed by `suffix`; a
        number above `limit` if there are more."""
        start, counts = self._counts
        if not suffix and start == marks[0].place and place in counts:
            return counts[place]
        mark = self.mark_before(marks, place)
        text = self.text[mark.place : place] + suffix
        if mark is marks[0]:
            return self.count(text, limit)
        return mark.count + self.after(mark.place, text, limit - mark.count)

    def since(
        self, marks: list[Mark], place: int, start: int = 0, prefix: str = "", *, limit: int
    ) -> int:
        """Return the tokens from `place` to the first mark of `backwards`, after a `prefix` that
        follows the split point `start`; 0 for the start of the text. A number above `limit` if
        there are more."""
        end, counts = self._end_counts
        if not prefix and end == marks[0].place and place in counts:
            return counts[place]
        mark = next(mark for mark in reversed(marks) if mark.place > place or mark is marks[0])
        text = prefix + self.text[place : mark.place]
        return mark.count + self.after(start, text, max(0, limit - mark.count))

    def stable_end(self) -> int:
        """Return the last known position before which no continuation changes a token, or 0."""
        place = self._split_point(0, len(self.text) - 1)
        return place + self._settled(self.text[place:])

    def long_runs(self, limit: int) -> Iterator[tuple[int, int]]:
        """Yield the ranges of more than `limit` bytes without a split point."""
        start, end = 0, len(self.text)
        while start < end:
            place = self._split_point(start, min(start + limit, end - 1))
            if place == start:
                near = self._near(start, end)
                place = end if near is None else self._first_split_point(start, near)
            if place - start > limit or len(self.text[start:place].encode()) > limit:
                yield start, place
            start = place

    def _first_split_point(self, start: int, found: int) -> int:
        while (earlier := self._split_point(start, found - 1)) > start:
            found = earlier
        return found

    def _end_covered(self, mark: Mark, budget: int) -> int | None:
        """Return `beyond` of `forwards` by the lower bound of the text after a mark."""
        known = cover(self._encoding)
        return None if known is None else known.end(self.text, mark.place, budget - mark.count)

    def _start_covered(self, start: int, mark: Mark, budget: int) -> int | None:
        """Return `beyond` of `backwards` likewise."""
        known = cover(self._encoding)
        if known is None:
            return None
        return known.start(self.text, start, mark.place, budget - mark.count)

    def _between(self, start: int, place: int, end: int, limit: int) -> int:
        """Return the tokens between two split points of the text from `start`, or `limit` + 1."""
        text = self.text[place:end]
        return self.count(text, limit) if place == start else self.after(place, text, limit)

    def _near(self, start: int, end: int) -> int | None:
        """Return a split point between two positions, near their middle; None for none."""
        middle = (start + end) // 2
        found = self._split_point(start, middle)
        if found > start:
            return found
        step = _NEAR
        while middle < end - 1:
            middle = min(middle + step, end - 1)
            found = self._split_point(start, middle)
            if found > start:
                return found
            step *= 4
        return None

    def _split_point(self, start: int, end: int) -> int:
        """Return the last split point after `start` and up to `end`; `start` for none."""
        # A rule looks at the character after the position.
        end, back = min(end + 1, len(self.text)), _BACK
        while end > start + 1:
            first = max(start, end - back)
            window = self.text[first:end]
            found = self._local(window, len(window))
            if found > (0 if first == start else RULE_CONTEXT):
                across = self._names.across(self.text, first + found)
                if across is None:
                    return first + found
                end = across + 1
            elif first == start:
                break
            else:
                back *= 4
        return start

    def _check(self, start: int, end: int) -> None:
        if end - start > _LONGEST:
            raise PieceTooLong(_LONGEST, len(self.text[:start].encode()))


def check_special(
    encoding: Encoding, text: str, allowed: SpecialTokens, disallowed: SpecialTokens
) -> None:
    """Raise SpecialTokenFound if `text` contains a disallowed special token."""
    every = frozenset(encoding.special_tokens)
    known = every if allowed == "all" else frozenset(allowed)
    names = every - known if disallowed == "all" else frozenset(disallowed)
    found = special_names(names).search(text, len(text))
    if found is not None:
        raise SpecialTokenFound(found.group(), len(text[: found.start()].encode()))
