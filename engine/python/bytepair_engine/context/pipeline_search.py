"""The search for how much text of a pipeline fits, by the counts of all its starts or ends.

The core counts every start of a text, for the pipelines that `valid_cuts` knows, and every end, for
those that `valid_ends` knows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Final

from bytepair_engine import cancel
from bytepair_engine.context.core_search import (
    CHARACTERS_PER_TOKEN,
    EXTRA_CHARACTERS,
    MAX_CHARACTERS,
    Checkpoint,
)
from bytepair_engine.context.text_split_points import LONGEST
from bytepair_engine.context.valid_cuts import ValidCuts
from bytepair_engine.context.valid_ends import ValidEnds
from bytepair_engine.encoding import Encoding

#: `Measure.count`, which records how much is counted.
Count = Callable[[str, int | None], int]

#: The result of `Measure.forwards` or `backwards`, and counts by position; None if there are none.
Found = tuple[list[Checkpoint], int | None, dict[int, int] | None]


class PipelineSearch:
    """Searches one text by the counts of its starts and ends."""

    def __init__(self, encoding: Encoding, text: str, allowed: frozenset[str]) -> None:
        """See `Measure` for the arguments."""
        self._encoding: Final = encoding
        self._text: Final = text
        self._allowed: Final = allowed
        self._characters = CHARACTERS_PER_TOKEN

    def forwards(
        self, count: Count, checkpoints: list[Checkpoint], budget: int, is_complete: bool
    ) -> Found | None:
        """Search as `Measure.forwards` does, from its last checkpoint on. Returns its result, and
        the counts of starts by their end; None if starts cannot be counted."""
        start, last = checkpoints[0].position, checkpoints[-1]
        cuts = ValidCuts.of(self._encoding, self._allowed)
        if cuts is None:
            return None
        first = last.position - (last.position > start)
        own = count(self._text[first : last.position], None)
        limit = budget - last.count + own
        length = (limit + 1) * self._characters + EXTRA_CHARACTERS
        while True:
            window = self._text[first : first + length]
            is_all = first + length >= len(self._text)
            counted = self._encoding.cut_counts(window, limit, self._allowed)
            cancel.check()
            if counted is None:  # every position is tried
                return checkpoints, len(self._text) if is_complete else None, None
            known, counts = counted
            beyond = None
            if known is not None:
                beyond = cuts.first(window, known, is_complete=is_all and is_complete)
                if (len(window) if beyond is None else beyond) - known > LONGEST:
                    return None
            if beyond is not None or is_all:
                break
            length *= 2
        more = last.count - own
        by_end = {
            first + at: tokens + more
            for at, tokens in counts
            if first + at > last.position and cuts.has(window, at)
        }
        if beyond is not None:
            self._characters = min(MAX_CHARACTERS, beyond * 5 // (limit * 4 + 4) + 1)
            return checkpoints, first + beyond, by_end
        if known is not None or not is_complete:
            return checkpoints, None, by_end
        checkpoints.append(
            Checkpoint(len(self._text), counts[-1][1] + more if counts else last.count)
        )
        if checkpoints[-1].count <= budget:
            return checkpoints, None, by_end
        return checkpoints[:-1], len(self._text), by_end

    def backwards(
        self,
        count: Count,
        checkpoints: list[Checkpoint],
        start: int,
        budget: int,
        is_complete: bool,
    ) -> Found | None:
        """Search as `Measure.backwards` does, from its last checkpoint on. Returns its result, and
        the counts of ends by their start; None if ends cannot be counted."""
        last, text = checkpoints[-1], self._text
        cuts = ValidEnds.of(self._encoding, self._allowed)
        if cuts is None:
            return None
        limit = budget - last.count
        length = (limit + 1) * self._characters + EXTRA_CHARACTERS

        @cache
        def fits_from(place: int) -> bool:
            return count(text[place : last.position], limit) < limit

        while True:
            first = max(start, last.position - length)
            window = text[first : last.position]
            counted = self._encoding.cut_counts(window, limit, self._allowed, cuts.front)
            cancel.check()
            if counted is None:  # every position is tried
                return checkpoints, start if is_complete else None, None
            known, counts = counted
            place = None
            if known is not None:
                known += first
                place = cuts.last(text, known, first, fits_from, is_complete=is_complete)
                if known - (first if place is None else place) > LONGEST:
                    return None
            if place is not None or first == start:
                break
            length *= 2
        if place is None and not is_complete:
            return checkpoints, None, None
        given = {first + at: tokens + last.count for at, tokens in counts}
        ends = cuts.known(text, first, given)
        if place is None:
            rest = count(text[start : last.position], limit)
            if rest <= limit:
                return [*checkpoints, Checkpoint(start, last.count + rest)], None, None
            if min(ends, default=last.position) - start > LONGEST:
                return None
            return checkpoints, start, ends
        self._characters = (last.position - place) * 5 // (limit * 4 + 4) + 1
        self._characters = min(MAX_CHARACTERS, self._characters)
        return checkpoints, place - 1, ends
