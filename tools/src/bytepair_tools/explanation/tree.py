"""A tree of merges, part by part, however deep it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from bytepair_engine.pipeline.derivation import Part

#: What lies deeper is counted and not shown.
MOST_LEVELS: Final = 48


@dataclass(frozen=True, slots=True)
class Node:
    """A part in its place.

    Attributes:
        part: The part.
        level: How deep it is; 0 for the root.
        is_last: For each level from 1 to its own, whether the branch there is the right one.
        hidden: How many parts lie below it that are too deep to be shown.
    """

    part: Part
    level: int
    is_last: tuple[bool, ...]
    hidden: int


def nodes(root: Part) -> Iterator[Node]:
    """The parts of a tree: each before the two that it was merged from, the left one first."""
    waiting: list[tuple[Part, tuple[bool, ...]]] = [(root, ())]
    while waiting:
        part, is_last = waiting.pop()
        is_deep = len(is_last) >= MOST_LEVELS
        yield Node(part, len(is_last), is_last, _below(part) if is_deep else 0)
        if part.left is not None and part.right is not None and not is_deep:
            waiting += [(part.right, (*is_last, True)), (part.left, (*is_last, False))]


def _below(root: Part) -> int:
    waiting, found = [root], -1
    while waiting:
        part = waiting.pop()
        found += 1
        waiting += [half for half in (part.left, part.right) if half is not None]
    return found
