"""Exact token counts of parts of one text, without counting shared text twice.

Counts are not monotone: a longer text can have fewer tokens. Safe split points (docs/streaming.md)
make them searchable. The tokens on the two sides of one never affect each other, so counts between
split points add up. Once the text before a split point exceeds the budget, no longer text fits.
Between two split points `pipeline_search` counts every start or end of the text, for the pipelines
that it knows. For others, a few positions are tried.
"""

from __future__ import annotations

from typing import ClassVar, Final
from weakref import WeakKeyDictionary

from bytepair_engine.backends.interface import Fits
from bytepair_engine.context.core_search import (
    CHARACTERS_PER_TOKEN,
    EXTRA_CHARACTERS,
    Checkpoint,
    CoreSearch,
)
from bytepair_engine.context.pipeline_search import PipelineSearch
from bytepair_engine.context.text_split_points import LONGEST, TextSplitPoints
from bytepair_engine.encoding import Encoding
from bytepair_engine.errors import PieceTooLong, SpecialTokenFound
from bytepair_engine.vocabulary.special_search import special_search
from bytepair_engine.vocabulary.special_sets import SpecialTokens, chosen_names

#: Maximum distance of two split points between which every position is tried, in characters.
_NEAR: Final = 48
_LONGEST_TOKENS: Final[WeakKeyDictionary[Encoding, int]] = WeakKeyDictionary()


class Measure:
    """Counts parts of one text.

    Attributes:
        text: The text; positions are code points.
        points: Its split points.
        fits: The core's search, for ordinary text; None if the core cannot search it.
        near: Maximum length of a pre-token in which every position is tried, in bytes.
        counted: Number of characters counted so far, except by the core's searches.
    """

    near: ClassVar[int] = 128

    def __init__(
        self, encoding: Encoding, text: str, allowed: SpecialTokens, start: int = 0
    ) -> None:
        """Count parts of `text` from `start` on, which is not inside an allowed special token."""
        self.text: Final = text
        self._encoding: Final = encoding
        known, _ = chosen_names(frozenset(encoding.special_tokens), allowed, ())
        self._allowed: Final = known
        self.points: Final = TextSplitPoints(encoding, text, known, start)
        self._has_context: Final = encoding.pipeline is not None
        self.fits: Final[Fits | None] = None if self.points.has_special else encoding.fits
        # The core is faster and needs no split points.
        self._core: Final = (
            None if encoding.fits is None else CoreSearch(encoding.fits, self.points, self.near)
        )
        self._pipeline: Final = PipelineSearch(encoding, text, known)
        self.counted = 0
        # The last counts of the core: from a start, by end; and up to an end, by start.
        # Each with what stands beside the text.
        self._counts: tuple[int, str, dict[int, int]] = 0, "", {}
        self._end_counts: tuple[int, str, dict[int, int]] = 0, "", {}

    @property
    def is_core(self) -> bool:
        """Whether the core searches, which allows for what follows a text."""
        return self._core is not None

    def count(self, text: str, limit: int | None = None) -> int:
        """Return the tokens of a text, or `limit` + 1."""
        self.counted += len(text)
        return self._encoding.count(
            text, limit=limit, allowed_special=self._allowed, disallowed_special=()
        )

    def count_after(self, place: int, text: str, limit: int | None = None) -> int:
        """Return the tokens that `text` adds after the split point `place`, or `limit` + 1."""
        if not self._has_context or place == 0:
            return self.count(text, limit)
        before = self.text[place - 1]
        own = self.count(before)
        return self.count(before + text, None if limit is None else limit + own) - own

    def forwards(
        self, start: int, budget: int, *, is_complete: bool = True, after: str | None = None
    ) -> tuple[list[Checkpoint], int | None]:
        """Find where to look for the end of the longest text from `start` within `budget` tokens.

        Args:
            start: A split point.
            budget: At least 0.
            is_complete: Whether no more text follows.
            after: What follows the cut text and counts too; None for nothing, "" for text that is
                not known yet and does not count. Without a search in the core it does not count.
        Returns:
            Checkpoints within the budget, ascending; and a position at and after which every text
            exceeds the budget. None if the whole text fits: then the last one is its end. None too
            if a text that is not complete does not decide. If more text may complete a special
            token at its end, no position after the start of that token is certain.
        Raises:
            PieceTooLong: Too much text has no split point.
        """
        if self._core is not None:
            checkpoints, place, counts = self._core.forwards(start, budget, is_complete, after)
            self._counts = start, after or "", counts
            return checkpoints, place
        end = len(self.text)
        beyond: int | None = None
        checkpoints = [Checkpoint(start, 0)]
        step = (budget + 1) * CHARACTERS_PER_TOKEN + _NEAR
        while beyond is None:
            last = checkpoints[-1]
            guess = last.position + step
            position = end if guess >= end else self.points.last(last.position, guess)
            if position == last.position < end:
                if (found := self._by_starts(checkpoints, budget, is_complete)) is not None:
                    return found
                step *= 4
                continue
            count = last.count + self._between(start, last.position, position, budget - last.count)
            if count > budget:
                beyond = position
            else:
                checkpoints.append(Checkpoint(position, count))
                if position == end:
                    return checkpoints, None
                step = (budget - count + 1) * CHARACTERS_PER_TOKEN + _NEAR
        while beyond - checkpoints[-1].position > _NEAR:
            last = checkpoints[-1]
            near = self.points.near_middle(last.position, beyond)
            if near is None:
                if (found := self._by_starts(checkpoints, budget, is_complete)) is not None:
                    return found
                beyond = min(beyond, last.position + self._most(budget - last.count) + 1)
                self._check(last.position, beyond)
                break
            count = last.count + self._between(start, last.position, near, budget - last.count)
            if count > budget:
                beyond = near
            else:
                checkpoints.append(Checkpoint(near, count))
        return checkpoints, beyond

    def _by_starts(
        self, checkpoints: list[Checkpoint], budget: int, is_complete: bool
    ) -> tuple[list[Checkpoint], int | None] | None:
        """Return the result of `forwards` by the counts of all starts of the text from the last
        checkpoint; None if they are not known."""
        found = self._pipeline.forwards(self.count, checkpoints, budget, is_complete)
        if found is None:
            return None
        checkpoints, place, counts = found
        if counts is not None:
            self._counts = checkpoints[0].position, "", counts
        return checkpoints, place

    def backwards(
        self, start: int, end: int, budget: int, *, is_complete: bool = True
    ) -> tuple[list[Checkpoint], int | None]:
        """As `forwards`, for the start of the longest text that ends at `end`.

        Returns:
            Checkpoints within the budget, descending; and a position at and before which every text
            exceeds the budget. None if all text from `start` fits: then the last one is `start`.
        Raises:
            PieceTooLong: Too much text has no split point.
        """
        if self._core is not None:
            return self._core_backwards(self._core, start, end, budget, is_complete)
        beyond: int | None = None
        checkpoints = [Checkpoint(end, 0)]
        step = (budget + 1) * CHARACTERS_PER_TOKEN + _NEAR
        while beyond is None:
            last = checkpoints[-1]
            guess = last.position - step
            low = max(start, guess - step)
            position = start if guess <= start else self.points.last(low, guess)
            if position == low < guess:
                if (found := self._by_ends(checkpoints, start, budget, is_complete)) is not None:
                    return found
                step *= 4
                continue
            count = last.count + self._between(start, position, last.position, budget - last.count)
            if count > budget:
                beyond = position
            else:
                checkpoints.append(Checkpoint(position, count))
                if position == start:
                    return checkpoints, None
                step = (budget - count + 1) * CHARACTERS_PER_TOKEN + _NEAR
        while checkpoints[-1].position - beyond > _NEAR:
            last = checkpoints[-1]
            near = self.points.near_middle(beyond, last.position)
            if near is None:
                if (found := self._by_ends(checkpoints, start, budget, is_complete)) is not None:
                    return found
                beyond = max(beyond, last.position - self._most(budget - last.count) - 1)
                self._check(beyond, last.position)
                break
            count = last.count + self._between(start, near, last.position, budget - last.count)
            if count > budget:
                beyond = near
            else:
                checkpoints.append(Checkpoint(near, count))
        # The text from there alone may have fewer: a pipeline treats the start of a text by itself.
        return checkpoints, max(start, beyond - 1)

    def _by_ends(
        self, checkpoints: list[Checkpoint], start: int, budget: int, is_complete: bool
    ) -> tuple[list[Checkpoint], int | None] | None:
        """Return the result of `backwards` by the counts of all ends of the text up to the last
        checkpoint; None if they are not known."""
        found = self._pipeline.backwards(self.count, checkpoints, start, budget, is_complete)
        if found is None:
            return None
        checkpoints, place, counts = found
        if counts is not None:
            self._end_counts = checkpoints[0].position, "", counts
        return checkpoints, place

    def _core_backwards(
        self, core: CoreSearch, start: int, end: int, budget: int, is_complete: bool
    ) -> tuple[list[Checkpoint], int | None]:
        first, counts = core.backwards(start, end, budget, is_complete)
        self._end_counts = end, "", counts
        checkpoints = [Checkpoint(end, 0)]
        if first is None:
            if start in counts:
                checkpoints.append(Checkpoint(start, counts[start]))
            return checkpoints, None
        near = self.points.last(first, min(first + EXTRA_CHARACTERS, end - 1))
        if near > first:
            checkpoints.append(Checkpoint(near, self.count_after(near, self.text[near:end])))
        return checkpoints, first - 1

    def behind(self, checkpoints: list[Checkpoint], beyond: int, budget: int, prefix: str) -> int:
        """Search for the longest text up to the first checkpoint of `backwards` that fits behind a
        prefix.

        Returns:
            A position at and before which none starts: `beyond`, which is known to be one, or a
            better one if there is no split point near, so that many positions would be tried.
        """
        end = checkpoints[0].position
        if (
            self._core is None
            or beyond >= end
            or special_search(self._allowed).search(prefix, len(prefix)) is not None
        ):
            return beyond
        first = self.points.outside_special(0, beyond)
        # The text between special tokens, until some fits.
        while True:
            special = self.points.special(first, end)
            last = end if special is None else special.start()
            after = self.count_from(checkpoints, last, limit=budget) if last < end else 0
            if after <= budget:
                if self.points.last(first, min(first + EXTRA_CHARACTERS, end - 1)) > first:
                    return beyond
                found, counts = self._core.behind(prefix, first, last, budget - after)
                counts = {at: after + count for at, count in counts.items()}
                counts[last] = after + self.count(prefix)
                self._end_counts = end, prefix, counts
                beyond = beyond if found is None else found - 1
                if any(count <= budget for count in counts.values()):
                    return beyond
            if special is None:
                return beyond
            first = special.end()
            beyond = first - 1

    def checkpoint_before(self, checkpoints: list[Checkpoint], position: int) -> Checkpoint:
        """Return the last checkpoint of `forwards` that is valid for a text cut at `position`."""
        return next(
            checkpoint
            for checkpoint in reversed(checkpoints)
            if (checkpoint.position < position and checkpoint.valid_from <= position)
            or checkpoint is checkpoints[0]
        )

    def count_to(
        self, checkpoints: list[Checkpoint], position: int, suffix: str = "", *, limit: int
    ) -> int:
        """Return the tokens from the first one of `forwards` to `position`, followed by `suffix`.
        The result is above `limit` if there are more."""
        start, after, counts = self._counts
        if suffix == after and start == checkpoints[0].position and position in counts:
            return counts[position]
        checkpoint = self.checkpoint_before(checkpoints, position)
        text = self.text[checkpoint.position : position] + suffix
        if checkpoint is checkpoints[0]:
            return self.count(text, limit)
        return checkpoint.count + self.count_after(
            checkpoint.position, text, limit - checkpoint.count
        )

    def count_from(
        self,
        checkpoints: list[Checkpoint],
        position: int,
        start: int = 0,
        prefix: str = "",
        *,
        limit: int,
    ) -> int:
        """Return the tokens from `position` to the first one of `backwards`, after a `prefix` that
        follows the split point `start`; 0 for the start of the text. A number above `limit` if
        there are more."""
        end, before, counts = self._end_counts
        if prefix == before and end == checkpoints[0].position and position in counts:
            return counts[position]
        checkpoint = next(
            checkpoint
            for checkpoint in reversed(checkpoints)
            if checkpoint.position > position or checkpoint is checkpoints[0]
        )
        text = prefix + self.text[position : checkpoint.position]
        return checkpoint.count + self.count_after(start, text, max(0, limit - checkpoint.count))

    def _between(self, start: int, position: int, end: int, limit: int) -> int:
        """Return the tokens between two split points of the text from `start`, or `limit` + 1."""
        text = self.text[position:end]
        return (
            self.count(text, limit)
            if position == start
            else self.count_after(position, text, limit)
        )

    def _most(self, budget: int) -> int:
        """Return the most characters that `budget` tokens can have; for pipelines, which may drop
        text, those of all text."""
        if self._has_context:
            return len(self.text)
        return budget * max(longest_token(self._encoding), self.points.longest_special)

    def _check(self, start: int, end: int) -> None:
        if end - start > LONGEST:
            raise PieceTooLong(LONGEST, len(self.text[:start].encode()))


def longest_token(encoding: Encoding) -> int:
    """Return the length of the longest token in bytes. Cached."""
    if encoding not in _LONGEST_TOKENS:
        _LONGEST_TOKENS[encoding] = max(map(len, encoding.token_byte_values()))
    return _LONGEST_TOKENS[encoding]


def check_special(
    encoding: Encoding, text: str, allowed: SpecialTokens, disallowed: SpecialTokens
) -> None:
    """Raise SpecialTokenFound if `text` contains a disallowed special token."""
    _, names = chosen_names(frozenset(encoding.special_tokens), allowed, disallowed)
    found = special_search(names).search(text, len(text))
    if found is not None:
        raise SpecialTokenFound(found.group(), len(text[: found.start()].encode()))
