"""Random texts and options for the laws of cutting, in which special tokens and their halves are as
frequent as other parts."""

from __future__ import annotations

import random
from collections.abc import Collection

from bytepair_engine.context.boundaries import LEVELS, Level
from bytepair_engine.context.splitting import SplitOptions

from support.context_api import KEEPS, Cut
from support.context_laws import PARTS

#: Special tokens from which parts are made: the byte tokens of some vocabularies are more.
_MOST = 20


class Cases:
    """Those of one encoding; the same for the same seed."""

    def __init__(self, seed: str, special: Collection[str], *, allow: bool = True) -> None:
        """Make parts; with `allow`, some requests allow all special tokens."""
        self.rng = random.Random(seed)
        self._allowed = frozenset(special if allow else ())
        names = sorted(special, reverse=True)[:_MOST]
        halves = [(name[: len(name) // 2], name[len(name) // 2 :]) for name in names]
        own = [*names, *(half for both in halves for half in both), *(n.upper() for n in names)]
        self._parts = [(PARTS, 3), (own or PARTS, 2)]
        # Second halves, which make a special token after the first.
        ends = [end for _, end in halves if not any(name in end for name in special)]
        self._markers = ["", "", " …", "n", *(self.rng.choices(ends, k=3) if ends else [])]

    def text(self, parts: int) -> str:
        """Text of less than this number of parts."""
        lists, weights = zip(*self._parts, strict=True)
        chosen = self.rng.choices(lists, weights, k=self.rng.randrange(1, parts))
        return "".join(self.rng.choice(known) for known in chosen)

    def cut(self, most: int, level: Level | None = None) -> Cut:
        """A truncation to at most `most` tokens."""
        return Cut(
            most,
            self.rng.choice(KEEPS),
            self.rng.choice(LEVELS) if level is None else level,
            self.rng.choice(self._markers),
            self.rng.choice([0, 50, 100]),
            self.rng.choice([frozenset(), self._allowed]),
            self.rng.choice([False, True]),
        )

    def split(self, cut: Cut) -> SplitOptions:
        """A split with the options of a truncation."""
        most, fill = max(1, cut.most), self.rng.choice([0, 50, 100])
        overlap = self.rng.choice([0, most // 2])
        return SplitOptions(most, overlap, cut.level, fill, cut.allowed, cut.template)
