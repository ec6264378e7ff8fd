"""Aliases, which may be patterns, and the known names that are nearest to an unknown one.

Exact names are looked up first, then the pattern with the most literal characters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from functools import lru_cache
from itertools import combinations
from typing import Final

#: Matches any number of characters in a pattern.
STAR: Final = "*"
#: Longer names match no pattern, and have no nearest name.
MAX_CHARACTERS: Final = 256
#: Number of names whose match is cached.
_CACHED_NAMES: Final = 1024
#: Minimum similarity of a nearest name, by difflib's ratio.
_NEAR: Final = 0.7


class Names:
    """A table of aliases. Immutable."""

    def __init__(self, table: Mapping[str, str]) -> None:
        """Compile the table.

        Args:
            table: Names and patterns to their targets. If several patterns with the same number
                of literal characters match a name, the first is used: see `tie`.
        """
        self._exact: Final = {name: table[name] for name in table if STAR not in name}
        patterns = sorted((name for name in table if STAR in name), key=_weight, reverse=True)
        self._patterns: Final = [(pattern.split(STAR), table[pattern]) for pattern in patterns]
        self._by_pattern: Final = lru_cache(_CACHED_NAMES)(self._search)

    def find(self, name: str) -> str | None:
        """Return the target of a name; None if no name or pattern matches."""
        found = self._exact.get(name)
        if found is not None or len(name) > MAX_CHARACTERS:
            return found
        return self._by_pattern(name)

    def _search(self, name: str) -> str | None:
        return next((target for parts, target in self._patterns if _matches(parts, name)), None)


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """Return the known names that are similar to an unknown one, apart from case: at most three,
    the most similar first."""
    if len(name) > MAX_CHARACTERS:
        return []
    folded = {each.casefold(): each for each in known}
    return [folded[each] for each in get_close_matches(name.casefold(), folded, cutoff=_NEAR)]


def tie(table: Mapping[str, str]) -> tuple[str, str] | None:
    """Find two ambiguous patterns: some name matches both, they have the same number of literal
    characters, and their targets differ. None if there are none."""
    patterns = [name for name in table if STAR in name]
    for one, other in combinations(patterns, 2):
        if table[one] != table[other] and _weight(one) == _weight(other) and _overlap(one, other):
            return one, other
    return None


def _weight(pattern: str) -> int:
    return len(pattern) - pattern.count(STAR)


def _matches(parts: list[str], name: str) -> bool:
    """Whether a name contains the parts of a pattern in order, the first and the last at its
    ends. The first position of each part is always good enough, so the cost is linear."""
    first, *middle, last = parts
    if len(name) < len(first) + len(last):
        return False
    if not (name.startswith(first) and name.endswith(last)):
        return False
    at, end = len(first), len(name) - len(last)
    for part in middle:
        at = name.find(part, at, end)
        if at < 0:
            return False
        at += len(part)
    return True


def _overlap(one: str, other: str) -> bool:
    """Whether some name matches both patterns.

    Row i of the table holds, for each j, whether one[i:] and other[j:] overlap.
    """
    heads = sorted((one.partition(STAR)[0], other.partition(STAR)[0]), key=len)
    if not heads[1].startswith(heads[0]):
        return False  # avoids the table for most patterns
    row = [not other[j:].strip(STAR) for j in range(len(other) + 1)]
    for i in range(len(one) - 1, -1, -1):
        below, row = row, [False] * len(other) + [not one[i:].strip(STAR)]
        for j in range(len(other) - 1, -1, -1):
            if STAR in (one[i], other[j]):
                row[j] = below[j] or row[j + 1]
            else:
                row[j] = one[i] == other[j] and below[j + 1]
    return row[0]
