"""Where a pipeline's text can be cut so that the tokens of the rest follow from those of shorter
ends.

The conditions are those of `valid_cuts`, the other way round. A pipeline may also put text before a
text, or leave out what it starts with. What it does before a character is seen where that is the
first of two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final

from bytepair_engine.context.valid_cuts import KEPT, Pair, ValidCuts, local_steps
from bytepair_engine.pipeline.aligned import Aligned
from bytepair_engine.pipeline.charsmap import charsmap
from bytepair_engine.pipeline.definition import CharsMap, Pipeline, Prefix, Spacing
from bytepair_engine.pipeline.normalising import normalise, normalise_text
from bytepair_engine.pipeline.splitting import pre_tokenize
from bytepair_engine.vocabulary.special_search import special_search

#: The character beside which others are tried.
_BESIDE: Final = "q"


class ValidEnds(ValidCuts):
    """The positions from which the rest of texts of a pipeline can be kept.

    Attributes:
        front: What is put before a text, unless it starts with the second string; "" for always.
    """

    of_ends = True

    def __init__(
        self, pipeline: Pipeline, allowed: frozenset[str], pair: Pair, *, in_words: bool
    ) -> None:
        """The arguments are those of `ValidCuts`."""
        super().__init__(pipeline, allowed, pair, in_words=in_words)
        self._pipeline: Final = pipeline
        self._local: Final = local_steps(pipeline.normalisers)
        self._raw: Final = special_search(
            frozenset(token.content for token in self.found if not token.normalised)
        )
        self._normalised: Final = special_search(
            frozenset(token.content for token in self.found if token.normalised)
        )
        own = normalise_text(_BESIDE, self._local)
        self._before: Final = normalise_text(_BESIDE, pipeline.normalisers).removesuffix(own)
        prefixes = [step for step in pipeline.pre_tokenizers if isinstance(step, Prefix)]
        self._first_only: Final = any(step.first_only for step in prefixes)
        # Characters with which more than one begin that may be left out together.
        self._blanks: Final = {
            key.decode(errors="replace")[0]
            for step in pipeline.normalisers
            if isinstance(step, (CharsMap, Spacing)) and step.table
            for key, value in charsmap(step.table).items()
            if not value.strip() and len(key.decode(errors="replace")) > 1
        }
        alone = _made_of(self._pieces(_BESIDE), 0)
        within = _made_of(self._pieces(3 * _BESIDE), 1)
        starts = any(
            token.normalised and token.content[0] in self._before for token in self.found
        ) or any(step.character == _BESIDE for step in prefixes)
        self.is_known = bool(alone and within) and not starts
        before = (alone or "").removesuffix(within or "")
        self.front: Final = before, before if prefixes and not self._before else ""
        self._is_kept: Final = lru_cache(KEPT)(self._tried)

    def _pieces(self, text: str) -> list[Aligned]:
        normal = normalise(Aligned.original(text), self._pipeline.normalisers)
        return pre_tokenize(normal, self._pipeline.pre_tokenizers)

    def _tried(self, character: str) -> bool | None:
        """Whether a character stays at the start of a text, after `front`; False if it is left out,
        None if neither is certain."""
        first = self._pieces(character + _BESIDE)
        image = _made_of(self._pieces(_BESIDE + character + _BESIDE), 1)
        whole = _made_of(first, 0)
        if image and whole is not None and whole.endswith(image):
            before, unless = self.front
            kept = image if unless and image.startswith(unless) else before + image
            return True if whole == kept else None
        alone = self._pieces(_BESIDE)
        is_same = [piece.text for piece in first] == [piece.text for piece in alone]
        return False if image is not None and is_same else None

    def known(self, text: str, start: int, counts: Mapping[int, int]) -> dict[int, int]:
        """Return those of the core's counts after `start` that are valid, and those of ends that
        start with a character that is left out."""
        found: dict[int, int] = {}
        for place in range(min(max(counts, default=0), len(text) - 1), start, -1):
            is_kept = self._is_kept(text[place])
            source = None if is_kept is None else counts if is_kept else found
            count = None if source is None else source.get(place if is_kept else place + 1)
            if count is not None and self.has(text, place):
                found[place] = count
        return found

    def last(
        self,
        text: str,
        position: int,
        start: int,
        fits_from: Callable[[int], bool],
        *,
        is_complete: bool,
    ) -> int | None:
        """Return the last position after `start` and before `position` where the text can be cut,
        whatever precedes it unless it is complete, and wherever it is cut before: the character
        there stays, and no added token extends across that ends where the rest fits. None for
        none."""
        raw, normalised = self._longest
        least = 0 if is_complete else max(raw, 4 * normalised)
        for place in range(position - 1, max(start, least - 1), -1):
            is_kept = self._is_kept(text[place]) and text[place] not in self._blanks
            if is_kept and self.has(text, place):
                ends = self._ends_across(text, place)
                if ends is not None and not any(map(fits_from, ends)):
                    return place
        return None

    def _ends_across(self, text: str, position: int) -> list[int] | None:
        """Return where added tokens end that extend across a position; None if the rest of the text
        may be other tokens after one than by itself."""
        ends = self._raw.ends_across(text, position)
        near = 4 * self._normalised.longest
        if near:
            parts = text[max(0, position - near) : position], text[position : position + near]
            left, right = (normalise_text(part, self._local) for part in parts)
            if len(left) < self._normalised.longest and position > near:
                return None
            found = self._normalised.ends_across(left + right, len(left))
            if found and (self._before or [*map(len, parts)] != [len(left), len(right)]):
                return None
            ends += [position + end - len(left) for end in found]
        return None if ends and self._first_only else ends


def _made_of(pieces: list[Aligned], place: int) -> str | None:
    """Return what comes from one place; None if it is in several pieces."""
    made = ["".join(c for c, start in piece.pairs() if start == place) for piece in pieces]
    found = [part for part in made if part]
    return "".join(found) if len(found) < 2 else None
