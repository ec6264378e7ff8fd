"""The core's search for how much text fits, around special tokens.

The core searches ordinary text. A special token separates the text on its two sides: their counts
add up. So each stretch between two special tokens is searched by itself, with the budget that is
left.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from bytepair_engine import cancel
from bytepair_engine.backends.interface import Fits, Starts
from bytepair_engine.context.text_split_points import TextSplitPoints

#: Estimated characters of a token, for the size of the first search only.
CHARACTERS_PER_TOKEN: Final = 4

#: Characters that the core is given at first, in addition to those for the tokens.
EXTRA_CHARACTERS: Final = 256

#: Maximum number of characters for each token that it is given at first.
MAX_CHARACTERS: Final = 1024

#: Characters at the start of a text in which the end of a pre-token may not be known.
_CONTEXT: Final = 8


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A position up to which tokens are counted.

    Attributes:
        position: The position.
        count: The number of tokens between it and the start of the search.
        valid_from: For `forwards`: a text cut here or later has the same tokens before `position`.
    """

    position: int
    count: int
    valid_from: int = 0


class CoreSearch:
    """Searches one text by the core."""

    def __init__(self, fits: Fits, points: TextSplitPoints, near: int) -> None:
        """See `Measure` for the arguments."""
        self._fits: Final = fits
        self._points: Final = points
        self._text: Final = points.text
        self._near: Final = near
        self._characters = CHARACTERS_PER_TOKEN

    def forwards(
        self, start: int, budget: int, is_complete: bool, after: str | None
    ) -> tuple[list[Checkpoint], int | None, dict[int, int]]:
        """Search as `Measure.forwards` does, whose result this is; and return the counts of some
        texts from `start`, with `after`, by their end."""
        checkpoints = [Checkpoint(start, 0)]
        counts: dict[int, int] = {}
        while True:
            last = checkpoints.pop()
            at, before = last.position, last.count
            special, found = self._stretch_forwards(at, budget - before, is_complete, after)
            if found is None:
                return [*checkpoints, last], None, counts
            more, beyond, known = found
            counts.update((at + place, before + count) for place, count in known)
            checkpoints += [
                Checkpoint(at + to, before + count, at + valid_from)
                for to, valid_from, count in more
            ]
            if beyond is not None or special is None:
                return checkpoints, None if beyond is None else at + beyond, counts
            if checkpoints[-1].count == budget:
                return checkpoints, special.end(), counts
            checkpoints.append(Checkpoint(special.end(), checkpoints[-1].count + 1, special.end()))

    def _stretch_forwards(
        self, start: int, budget: int, is_complete: bool, after: str | None
    ) -> tuple[re.Match[str] | None, Starts | None]:
        """Search the ordinary text from `start` to the next special token. Returns that token, None
        for none; and the result, None if a text that is not complete does not decide."""
        length = (budget + 1) * self._characters + EXTRA_CHARACTERS
        while True:
            end = min(start + length, len(self._text))
            special = self._points.special(start, end)
            if special is not None:
                end = special.start()
            is_all = special is not None or end == len(self._text)
            window = self._text[start:end]
            if not window and special is not None:
                # With text after it, the place has no count yet.
                return special, ([(0, 0, 0)], None, [] if after else [(0, 0)])
            whole = is_all and (special is not None or is_complete)
            found = self._fits.fit_start(window, budget, whole, self._near, after)
            if found is not None:
                # The next search starts with slightly more text than this one needed.
                if special is None:
                    needed = len(window) if found[1] is None else found[1]
                    self._characters = min(MAX_CHARACTERS, needed * 5 // (budget * 4 + 4) + 1)
                return special, found
            if is_all:
                return None, None
            cancel.check()
            length *= 2

    def backwards(
        self, start: int, end: int, budget: int, is_complete: bool
    ) -> tuple[int | None, dict[int, int]]:
        """Search for the longest text that ends at `end`.

        Returns:
            The first position at which a text that fits may start; None if all text from `start`
            fits, which then has a count, or if a text that is not complete does not decide. And the
            counts of some texts, by their start.
        """
        length = (budget + 1) * CHARACTERS_PER_TOKEN + EXTRA_CHARACTERS
        while True:
            first = self._points.outside_special(start, max(start, end - length))
            counts = {end: 0}
            whole = is_complete and first == start
            is_decided, beyond = self._stretches_backwards(first, end, budget, counts, whole)
            if is_decided:
                return beyond, counts
            if first == start:
                return None, {}
            cancel.check()
            length *= 2

    def _stretches_backwards(
        self, first: int, end: int, budget: int, counts: dict[int, int], is_complete: bool
    ) -> tuple[bool, int | None]:
        """Search the ordinary text between special tokens from the last one to `first`, and add
        counts. Returns whether the text decides, and the position as `backwards` does."""
        for special in (*reversed(self._points.specials(first, end)), None):
            start, before = first if special is None else special.end(), counts[end]
            if start < end:
                found = self._fits.fit_end(
                    self._text[start:end], budget - before, is_complete or special is not None, ""
                )
                if found is None:
                    return False, None
                beyond, known = found
                counts.update((start + place, before + count) for place, count in known)
                if beyond is not None:
                    return True, start + beyond
                before = counts[start]
            if special is None:
                break
            if before == budget:
                return True, start
            end = special.start()
            counts[end] = before + 1
        return is_complete, None

    def behind(
        self, prefix: str, first: int, end: int, budget: int
    ) -> tuple[int | None, dict[int, int]]:
        """Search the ordinary text from `first` to `end` for the longest that ends there and fits
        behind a prefix, which is ordinary text too.

        Returns:
            The first position at which one may start; None if that is not known. And the counts of
            some, by their start.
        """
        if not self._points.has_special:
            first = max(0, first - _CONTEXT)
        found = self._fits.fit_end(self._text[first:end], budget, True, prefix)
        beyond, counts = found if found is not None else (None, [])
        # The end of a pre-token is looked for at a few characters before.
        beyond = None if beyond is None or beyond <= _CONTEXT else first + beyond
        return beyond, {first + at: count for at, count in counts}
