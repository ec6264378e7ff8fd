"""Searches the boundaries of a text for a start or end that fits, beside a marker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from bytepair_engine.context.beside_text import beyond_beside_text
from bytepair_engine.context.boundaries import Boundaries, Level, stable_from, stable_until
from bytepair_engine.context.core_search import Checkpoint
from bytepair_engine.context.measure import Measure
from bytepair_engine.context.text_split_points import LONGEST, RULE_CONTEXT
from bytepair_engine.encoding import Encoding
from bytepair_engine.errors import InvalidOption, PieceTooLong
from bytepair_engine.vocabulary.special_search import special_search
from bytepair_engine.vocabulary.special_sets import SpecialTokens

Keep = Literal["start", "end", "both"]

#: Maximum number of times that a text is counted to cut it where that depends on text beside it: a
#: marker, or the start with `keep="both"`. Without split points, and unless the core searches, each
#: place needs a count.
_MOST_COUNTED: Final = 32

#: Characters that may be counted in addition.
_ALWAYS_COUNTED: Final = 2**20


# Not frozen: making a frozen one takes several times as long.
@dataclass(slots=True)
class Truncation:
    """The result of a truncation.

    Attributes:
        text: The kept text, with the marker where text was removed.
        count: The count of `text` under the same options.
        truncated: Whether text was removed.
        kept: The kept ranges of the original text, in code points: one, or two for "both"; none if
            nothing is kept.
        level: The level at which the text was cut: the requested one, or a finer one if no boundary
            of it fits; None if the text was not cut.
    """

    text: str
    count: int
    truncated: bool
    kept: tuple[tuple[int, int], ...]
    level: Level | None


class Search:
    """Truncates one text at the boundaries of one level."""

    def __init__(
        self,
        encoding: Encoding,
        text: str,
        level: Level,
        marker: str,
        allowed_special: SpecialTokens,
    ) -> None:
        self._encoding: Final = encoding
        self._text: Final = text
        self._measure: Final = Measure(encoding, text, allowed_special)
        self._boundaries: Final = Boundaries(text)
        # The level, then those to try if no boundary of it fits.
        finer: tuple[Level, ...] = ("grapheme", "code_point")
        self._levels: Final = finer[finer.index(level) :] if level in finer else (level, *finer)
        self._marker: Final = marker
        self._names: Final = special_search(frozenset(encoding.special_tokens))
        if self._names.search(marker, len(marker)) is not None:
            raise InvalidOption("marker", "must not contain a special token")
        self.marker_count: Final = self._measure.count(marker)

    def bounds(self, keep: Keep, budget: int, is_part: bool) -> tuple[list[Checkpoint], int | None]:
        """Return where to look, as `Measure.forwards` and `backwards` do: None if all text fits,
        and if a part does not decide."""
        measure, text = self._measure, self._text
        if keep == "end":
            checkpoints, beyond = measure.backwards(0, len(text), budget, is_complete=not is_part)
            beyond = self._behind(checkpoints, beyond, budget, self._marker)
            # Split points are known where the rules for them see the text before.
            is_known = beyond is not None and beyond > max(stable_from(text), RULE_CONTEXT)
        else:
            checkpoints, beyond = measure.forwards(0, budget, is_complete=not is_part)
            if beyond is not None and self._marker:
                checkpoints, beyond = measure.forwards(
                    0, budget, is_complete=not is_part, after=self._marker
                )
            if beyond is not None and self._marker and not measure.is_core:
                beyond = beyond_beside_text(self._encoding, measure.points, beyond, is_end=False)
            is_known = beyond is not None and beyond <= stable_until(text)
        return checkpoints, beyond if is_known or not is_part else None

    def run(
        self,
        keep: Keep,
        budget: int,
        start_percent: int,
        checkpoints: list[Checkpoint],
        beyond: int | None,
    ) -> Truncation | None:
        """Truncate the text to `budget` tokens; None if not even the marker fits."""
        length = len(self._text)
        if beyond is None and budget >= 0:
            kept = ((0, length),) if self._text else ()
            return Truncation(self._text, checkpoints[-1].count, False, kept, None)
        if self.marker_count > budget:
            return None
        beyond = beyond or 0
        if keep == "start":
            end, level = self._start(checkpoints, beyond, budget)
            return self._made(end, length, level)
        if keep == "end":
            start, level = self._end(checkpoints, beyond, budget)
            return self._made(0, start, level)
        return self._both(budget, start_percent)

    def _both(self, budget: int, start_percent: int) -> Truncation:
        """Keep the longest start within its share, then the longest end within the rest."""
        measure, length = self._measure, len(self._text)
        share = (budget - self.marker_count) * start_percent // 100
        checkpoints, beyond = measure.forwards(0, share, after="")
        end, level = self._start(checkpoints, length if beyond is None else beyond, budget, share)
        # The tokens before this checkpoint do not depend on the text after it.
        checkpoint = measure.checkpoint_before(checkpoints, end)
        remaining = budget - checkpoint.count
        rest, beyond = measure.backwards(end, length, remaining)
        prefix = self._text[checkpoint.position : end] + self._marker
        beyond = self._behind(rest, beyond or 0, remaining, prefix, end)
        start, end_level = self._end(rest, beyond or 0, remaining, end, checkpoint.position, prefix)
        return self._made(end, start, end_level if start < length else level)

    def _behind(
        self,
        checkpoints: list[Checkpoint],
        beyond: int | None,
        budget: int,
        prefix: str,
        after: int = 0,
    ) -> int | None:
        """Return a position at and before which no end after `after` fits behind a prefix, by one
        at and before which none fits alone."""
        if beyond is None or not prefix:
            return beyond
        measure = self._measure
        beyond = beyond_beside_text(self._encoding, measure.points, beyond, is_end=True)
        return measure.behind(checkpoints, max(after, beyond), budget, prefix)

    def _made(self, end: int, start: int, level: Level) -> Truncation:
        """Return the text up to `end`, the marker, and the text from `start`."""
        text = self._text[:end] + self._marker + self._text[start:]
        ranges = ((0, end), (start, len(self._text)))
        kept = tuple(part for part in ranges if part[0] < part[1])
        return Truncation(text, self._measure.count(text), True, kept, level)

    def _start(
        self, checkpoints: list[Checkpoint], beyond: int, budget: int, share: int | None = None
    ) -> tuple[int, Level]:
        """Return the end of the longest start that fits with the marker, and alone fits `share`."""
        measure = self._measure
        for level in self._levels:
            for place in self._boundaries.down(level, min(beyond, len(self._text)) - 1):
                if (
                    self._is_cut(place, self._left_of(place), self._marker)
                    or (
                        share is not None
                        and measure.count_to(checkpoints, place, limit=share) > share
                    )
                    or measure.count_to(checkpoints, place, self._marker, limit=budget) > budget
                ):
                    self._check_work(measure.checkpoint_before(checkpoints, place).position)
                    continue
                return place, level
        return 0, self._levels[-1]

    def _end(
        self,
        checkpoints: list[Checkpoint],
        beyond: int,
        budget: int,
        after: int = 0,
        split_point: int = 0,
        prefix: str | None = None,
    ) -> tuple[int, Level]:
        """Return the start of the longest end, after `after`, that fits behind the marker, or
        behind a `prefix` that follows the split point `split_point`."""
        prefix = self._marker if prefix is None else prefix
        # `prefix` may start inside a name.
        left = self._left_of(after) + self._marker
        for level in self._levels:
            for place in self._boundaries.up(level, max(beyond, after), len(self._text)):
                if place == len(self._text):
                    break
                if (
                    not self._is_cut(place, left, self._text[place : place + self._names.longest])
                    and self._measure.count_from(
                        checkpoints, place, split_point, prefix, limit=budget
                    )
                    <= budget
                ):
                    return place, level
                self._check_work(split_point)
        return len(self._text), self._levels[-1]

    def _check_work(self, place: int) -> None:
        """Raise PieceTooLong if so much text was counted that only long text without a split point
        can be why; `place` is the split point before it."""
        if self._measure.counted > _MOST_COUNTED * len(self._text) + _ALWAYS_COUNTED:
            raise PieceTooLong(LONGEST, len(self._text[:place].encode()))

    def _left_of(self, place: int) -> str:
        """Return the text before a position that may be in one name with the text after it."""
        return self._text[max(0, place - self._names.longest) : place]

    def _is_cut(self, place: int, left: str, right: str) -> bool:
        """Whether a special token is cut at a position, or made by joining two parts."""
        longest = self._names.longest
        if longest < 2:
            return False
        left = left[-longest:]
        return (
            self._measure.points.splits_special(place)
            or self._names.across(left + right[:longest], len(left)) is not None
        )
