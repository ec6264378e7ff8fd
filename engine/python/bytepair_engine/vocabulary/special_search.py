"""Search for special tokens in text."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache
from itertools import groupby, takewhile
from typing import Final

#: Maximum depth of nested groups in a pattern: `re` is recursive.
_MAX_DEPTH: Final = 32


class SpecialSearch:
    """A set of strings to search for: the leftmost match, and the longest at a position.

    Attributes:
        names: The strings, sorted.
        longest: Length of the longest string in characters; 0 if the set is empty.
    """

    def __init__(self, names: frozenset[str]) -> None:
        self.names: Final = sorted(names)
        self.longest: Final = max(map(len, names), default=0)
        firsts = "".join(sorted({name[0] for name in names}))
        self._first: Final = re.compile(f"[{re.escape(firsts)}]") if names else None
        self._any: Final = re.compile(_pattern(self.names))

    def unfinished(self, text: str) -> int:
        """Return the start of the first suffix of `text` that more text could complete to a name,
        or to a longer one; the length of `text` if there is none."""
        for start in self._starts(text, len(text)):
            suffix = text[start:]
            after = bisect_right(self.names, suffix)
            if after < len(self.names) and self.names[after].startswith(suffix):
                return start
        return len(text)

    def across(self, text: str, point: int) -> int | None:
        """Return the start of the first name that extends across `point`; None if there is none.
        `point` is at most `unfinished(text)`."""
        found = self._across(text, point)
        return next((match.start() for match in found), None)

    def ends_across(self, text: str, point: int) -> list[int]:
        """Return the ends of the longest names from each position that extend across `point`."""
        return [match.end() for match in self._across(text, point)]

    def _across(self, text: str, point: int) -> Iterator[re.Match[str]]:
        for start in self._starts(text, point):
            match = self._any.match(text, start)
            if match and match.end() > point:
                yield match

    def _starts(self, text: str, end: int) -> Iterator[int]:
        """Yield the positions where a name that extends to `end` or beyond may start."""
        if self._first is not None:
            first = max(0, end - self.longest + 1)
            yield from (match.start() for match in self._first.finditer(text, first, end))

    def finditer(self, text: str, end: int, start: int = 0) -> Iterator[re.Match[str]]:
        """Yield the matches that start from `start` to before `end`, in order and without overlaps.
        Text more than the longest name after `end` is not read."""
        if self.longest:
            found = self._any.finditer(text, start, end + self.longest - 1)
            yield from takewhile(lambda match: match.start() < end, found)

    def search(self, text: str, end: int, start: int = 0) -> re.Match[str] | None:
        """Return the first match that starts from `start` to before `end`; None for none."""
        return next(self.finditer(text, end, start), None)


@lru_cache(64)
def special_search(names: frozenset[str]) -> SpecialSearch:
    """Compile a set of names; cached for further streams with the same names."""
    return SpecialSearch(names)


def _pattern(names: list[str], depth: int = 0) -> str:
    """Return a pattern that matches the longest of the sorted `names` at a position. Each common
    start is tried once, because most of the 1,091 names of o200k_harmony are `<|reserved_…|>`."""
    if len(names) < 2 or depth == _MAX_DEPTH:
        longest_first = sorted(names, key=len, reverse=True)
        return f"(?:{'|'.join(map(re.escape, longest_first))})"
    found = [
        re.escape(first) + _pattern([name[1:] for name in group], depth + 1)
        for first, group in groupby(filter(None, names), key=lambda name: name[0])
    ]
    is_name = "" in names  # what was matched so far
    return f"(?:{'|'.join(found)}){'?' if is_name else ''}"
