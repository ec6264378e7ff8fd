"""Where a text may be cut: after a code point, grapheme, word, sentence, line or paragraph.

Graphemes, words and sentences are those of Unicode Standard Annex 29, at the version
`UNICODE_VERSION`. A line ends after LF, CR LF, CR, VT, FF, NEL, U+2028 or U+2029; a paragraph after
a line end that follows another with nothing but spaces and tabs between them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

import regex

from bytepair_engine.errors import InvalidOption

try:
    from bytepair_engine import _core
except ImportError:
    _core = None  # type: ignore[assignment]

Level = Literal["code_point", "grapheme", "word", "sentence", "line", "paragraph"]

#: From the finest to the coarsest.
LEVELS: Final[tuple[Level, ...]] = get_args(Level)

#: The version of Unicode that decides where graphemes, words and sentences end; "" without the
#: compiled core, which has its tables.
UNICODE_VERSION: Final = "" if _core is None else _core.BREAKS_UNICODE_VERSION

_OTHER_ENDS: Final = "\n\v\f\x85\u2028\u2029"
_LINE_END: Final = rf"(?:\r\n|\r|(?<!\r)\n|[{_OTHER_ENDS[1:]}])"
_ENDS: Final[dict[Level, regex.Pattern[str]]] = {
    "line": regex.compile(_LINE_END),
    "paragraph": regex.compile(rf"(?<=[\r{_OTHER_ENDS}][ \t]*){_LINE_END}"),
}


@dataclass(frozen=True)
class _Rule:
    """How far around a place the rules of a level look.

    Attributes:
        restart: Finds, backwards, a place that is a border whatever stands around it.
        ahead: Finds a character that nothing before it is decided beyond.
    """

    restart: regex.Pattern[str]
    ahead: regex.Pattern[str]


_RULES: Final[dict[Level, _Rule]] = {
    "grapheme": _Rule(
        regex.compile(r"(?r)(?<=[\x20-\x7e])(?=[\x20-\x7e])"), regex.compile(r"(?s).")
    ),
    "word": _Rule(
        regex.compile(r"(?r)(?<=[A-Za-z0-9])(?= )|(?<= )(?=[A-Za-z0-9])|(?<=\n)"),
        regex.compile(r"[\p{Lu}\p{Ll}\p{Lo}\p{N}\s!?()\[\]{}<>/\\|@#$%^&*+=~-]"),
    ),
    "sentence": _Rule(regex.compile(r"(?r)(?<=\n)"), regex.compile(r"[\p{Lu}\p{Ll}\p{Lo}\n!?.]")),
}

#: Decides every level: no rule looks beyond it.
_DECIDES: Final = regex.compile(r"(?r)[\p{Lu}\p{Ll}\p{Lo}\n]")

#: How many characters before a place are searched for one to start at.
_BACK: Final = 512

#: How many characters `down` and `up` look at first.
_BLOCK: Final = 64

#: How many characters more than asked for are looked at, so that the next question is answered.
_MORE: Final = 64


def checked_level(level: str) -> Level:
    """Raises InvalidOption unless `level` is one of `LEVELS`."""
    if level not in LEVELS:
        raise InvalidOption("level", f"must be one of {', '.join(LEVELS)}")
    return level


def decided(text: str) -> int:
    """The last place before which every border is known, whatever text follows; 0 for none."""
    found = _DECIDES.search(text)
    return found.start() if found else 0


class Borders:
    """The borders of one text, found where they are asked for.

    Questions that go forward cost in proportion to the text between them, whatever it holds.
    """

    def __init__(self, text: str, restarts: Mapping[Level, int] | None = None) -> None:
        """Look at a text.

        Args:
            text: A whole text, or the part of one from a place on.
            restarts: Then, what `restart` gave for each level.
        """
        self._text: Final = text
        # By level: the borders found last, which are all that are in a range.
        self._found: Final[dict[Level, tuple[int, int, list[int]]]] = {
            level: (place, place, [place]) for level, place in (restarts or {}).items()
        }

    def between(self, level: Level, start: int, end: int) -> Sequence[int]:
        """The borders of a level after `start` and up to `end`, ascending; the end of the text is
        one at every level. Indices are code points."""
        if start >= end:
            return ()
        if level == "code_point":
            return range(start + 1, end + 1)
        if level in _ENDS:
            # A CR LF may start before and end after the place.
            first, last = max(0, start - 1), min(end + 1, len(self._text))
            matches = _ENDS[level].finditer(self._text, first, last)
            ends = [match.end() for match in matches if start < match.end() <= end]
            if end == len(self._text) and ends[-1:] != [end]:
                ends.append(end)
            return ends
        first, last, ends = self._found.get(level, (0, 0, []))
        if start < first or end > last:
            ends, last = self._find(level, start, end)
        return ends[bisect_right(ends, start) : bisect_right(ends, end)]

    def down(self, level: Level, place: int, start: int = 0) -> Iterator[int]:
        """The borders of a level at or before a place and after `start`, descending."""
        block = _BLOCK
        while place > start:
            first = max(start, place - block)
            yield from reversed(self.between(level, first, place))
            place, block = first, 2 * block

    def up(self, level: Level, place: int) -> Iterator[int]:
        """The borders of a level after a place, ascending."""
        block = _BLOCK
        while place < len(self._text):
            last = min(len(self._text), place + block)
            yield from self.between(level, place, last)
            place, block = last, 2 * block

    def level_of(self, place: int, at_least: Level = "code_point") -> Level:
        """The coarsest level that has a border at `place`, which is one of `at_least`."""
        for level in reversed(LEVELS):
            if level == at_least or place in self.between(level, place - 1, place):
                return level
        return at_least

    def restart(self, level: Level, place: int) -> int:
        """A border of a level at or before `place` from which the borders after it can be found
        without the text before it."""
        rule = _RULES[level]
        match = rule.restart.search(self._text, max(0, place - _BACK), place + 1)
        first, _, ends = self._found.get(level, (0, 0, []))
        known = 0
        if first <= place:
            before = bisect_right(ends, place)
            known = ends[before - 1] if before else first
        return max(known, match.start() if match and match.start() <= place else 0)

    def _find(self, level: Level, start: int, end: int) -> tuple[list[int], int]:
        if not UNICODE_VERSION:
            raise InvalidOption("level", f"{level} needs the compiled core, which is not installed")
        text = self._text
        first = self.restart(level, start)
        # Where no border is found for long, twice as much is looked at each time.
        ahead = _RULES[level].ahead.search(text, min(2 * end - first + _MORE, len(text)))
        last = ahead.start() if ahead else len(text)
        ends = [first + i for i in _core.break_ends(text[first : last + 1], level)]
        if last < len(text):
            ends = ends[: bisect_right(ends, last)]
        self._found[level] = first, last, ends
        return ends, last
