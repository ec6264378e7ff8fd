"""The safe split points of one text (docs/streaming.md), outside of allowed special tokens."""

from __future__ import annotations

import re
from bisect import bisect_right, insort
from collections.abc import Iterator
from typing import Final

from bytepair_engine.encoding import Encoding
from bytepair_engine.streaming.encoder import split_points
from bytepair_engine.streaming.split_points import SplitPoints
from bytepair_engine.vocabulary.special_search import special_search

#: For encodings whose texts cannot be streamed: a text is counted as a whole.
_UNKNOWN: Final = SplitPoints(local=lambda _text, _end: 0, settled=lambda _text: 0)

#: Maximum number of characters without a split point that are tried, and counted from the first.
LONGEST: Final = 1024

#: Characters before a position that are first searched for a split point.
_BACK: Final = 256

#: Characters before a split point that its rules may look at.
RULE_CONTEXT: Final = 2

#: First distance from the middle of a range at which a split point is searched, in characters.
_STEP: Final = 48


class TextSplitPoints:
    """Finds the split points of a text. Positions are code points."""

    def __init__(
        self, encoding: Encoding, text: str, allowed: frozenset[str], start: int = 0
    ) -> None:
        """Search `text`, in which the special tokens `allowed` are never split, from `start` on,
        which is not inside one."""
        points = split_points(encoding) or _UNKNOWN
        self.text: Final = text
        self._names: Final = special_search(allowed)
        self._local: Final = points.local
        self._settled: Final = points.settled
        self._outside: Final = [start]  # some positions that are not inside a special token

    @property
    def has_special(self) -> bool:
        """Whether special tokens are allowed."""
        return self._names.longest > 0

    @property
    def longest_special(self) -> int:
        """The length of the longest name of an allowed special token; 0 for none."""
        return self._names.longest

    def special(self, start: int, end: int) -> re.Match[str] | None:
        """Return the first allowed special token that starts between two positions; None for none.
        The first is not inside one."""
        return self._names.search(self.text, end, start)

    def specials(self, start: int, end: int) -> list[re.Match[str]]:
        """Return the allowed special tokens between two positions that are not inside one."""
        return list(self._names.finditer(self.text, end, start))

    def outside_special(self, start: int, position: int) -> int:
        """Return the last position up to this one that is not inside an allowed special token, at
        least `start`."""
        while position > start and (across := self._names.across(self.text, position)) is not None:
            position = max(start, across)
        return position

    def splits_special(self, position: int) -> bool:
        """Whether a position is inside an allowed special token of the text."""
        if self._names.longest < 2:
            return False
        # Names may overlap: which of them are tokens depends on those before.
        known = self._outside[bisect_right(self._outside, position) - 1]
        tokens = self.specials(self.outside_special(known, position), position)
        if not tokens:
            return False
        start, end = tokens[-1].span()
        if self._outside[bisect_right(self._outside, start) - 1] != start:
            insort(self._outside, start)
        return end > position

    def last(self, start: int, end: int) -> int:
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

    def near_middle(self, start: int, end: int) -> int | None:
        """Return a split point between two positions, near their middle; None for none."""
        middle = (start + end) // 2
        found = self.last(start, middle)
        if found > start:
            return found
        step = _STEP
        while middle < end - 1:
            middle = min(middle + step, end - 1)
            found = self.last(start, middle)
            if found > start:
                return found
            step *= 4
        return None

    def stable_end(self) -> int:
        """Return the last known position before which no continuation changes a token, or 0."""
        position = self.last(0, len(self.text) - 1)
        return position + self._settled(self.text[position:])

    def long_runs(self, limit: int) -> Iterator[tuple[int, int]]:
        """Yield the ranges of more than `limit` bytes without a split point."""
        start, end = 0, len(self.text)
        while start < end:
            position = self.last(start, min(start + limit, end - 1))
            if position == start:
                near = self.near_middle(start, end)
                position = end if near is None else self._first_split_point(start, near)
            if position - start > limit or len(self.text[start:position].encode()) > limit:
                yield start, position
            start = position

    def _first_split_point(self, start: int, found: int) -> int:
        while (earlier := self.last(start, found - 1)) > start:
            found = earlier
        return found
