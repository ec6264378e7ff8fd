"""A stream's splitter whose work is counted."""

from __future__ import annotations

from bytepair_engine.streaming.split_points import SplitPoints, split_points_of
from bytepair_engine.streaming.splitter import StreamSplitter
from bytepair_engine.vocabulary.patterns import PATTERNS
from bytepair_engine.vocabulary.special_search import special_search


def counted_splitter(max_pending_bytes: int) -> tuple[StreamSplitter, list[int]]:
    """Return a splitter for o200k_base without special tokens, and a list that gets the length in
    characters of each text that is searched as a whole."""
    points = split_points_of(PATTERNS["o200k_base"])
    assert points is not None
    searched: list[int] = []

    def settled(text: str) -> int:
        searched.append(len(text))
        return points.settled(text)

    none = special_search(frozenset())
    splitter = StreamSplitter(
        SplitPoints(points.local, settled),
        allowed=none,
        disallowed=none,
        either=none,
        max_pending_bytes=max_pending_bytes,
    )
    return splitter, searched
