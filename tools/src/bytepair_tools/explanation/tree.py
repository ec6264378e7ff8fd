"""Walk a tree of merges of any depth."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from bytepair_engine.pipeline.derivation import Part

#: Maximum depth shown; deeper parts are counted.
MAX_LEVELS: Final = 48


@dataclass(frozen=True, slots=True)
class Node:
    """A part with its position in the tree.

    Attributes:
        part: The part.
        level: The depth; 0 for the root.
        is_last: For each level from 1 to its own, whether the branch there is the right one.
        hidden: Number of parts below it that are too deep to show.
    """

    part: Part
    level: int
    is_last: tuple[bool, ...]
    hidden: int


def nodes(root: Part) -> Iterator[Node]:
    """Yield the parts of a tree: each before its two parts, the left one first."""
    waiting: list[tuple[Part, tuple[bool, ...]]] = [(root, ())]
    while waiting:
        part, is_last = waiting.pop()
        is_deep = len(is_last) >= MAX_LEVELS
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
