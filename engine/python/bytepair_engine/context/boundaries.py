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

#: Characters that end a line, and what a blank line is made of.
_LINE_ENDS: Final = "\r\n\v\f\x85\u2028\u2029"
_BLANK: Final = " \t" + _LINE_ENDS

#: `str.splitlines` ends a line after these too.
_NO_LINE_ENDS: Final = ("\x1c", "\x1d", "\x1e")


@dataclass(frozen=True)
class _Rule:
    """How far around a place the rules of a level look.

    Attributes:
        restart: Finds, backwards, a place that is a boundary whatever stands around it.
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

#: As many, where line ends are looked for.
_LINE_BLOCK: Final = 256

#: Characters that are looked at beyond the requested place, so that the next request is answered.
_MORE: Final = 64


def checked_level(level: str) -> Level:
    """Raises InvalidOption unless `level` is one of `LEVELS`."""
    if level not in LEVELS:
        raise InvalidOption("level", f"must be one of {', '.join(LEVELS)}")
    return level


def decided(text: str) -> int:
    """The last place before which every boundary is known, whatever text follows; 0 for none."""
    found = _DECIDES.search(text)
    return found.start() if found else 0


class Boundaries:
    """The boundaries of one text, found on request.

    Questions that go forward cost in proportion to the text between them, whatever it holds.
    """

    def __init__(self, text: str, restarts: Mapping[Level, int] | None = None) -> None:
        """Look at a text.

        Args:
            text: A whole text, or the part of one from a place on.
            restarts: Then, what `restart` gave for each level.
        """
        self._text: Final = text
        # By level: the boundaries found last, which are all that are in a range.
        self._found: Final[dict[Level, tuple[int, int, list[int]]]] = {
            level: (place, place, [place]) for level, place in (restarts or {}).items()
        }

    def between(self, level: Level, start: int, end: int) -> Sequence[int]:
        """The boundaries of a level after `start` and up to `end`, ascending, in code points; the
        end of the text is one at every level."""
        if start >= end:
            return ()
        if level == "code_point":
            return range(start + 1, end + 1)
        if level in ("line", "paragraph"):
            return self._lines(start, end, only_after_blank=level == "paragraph")
        first, last, ends = self._found.get(level, (0, 0, []))
        if start < first or end > last:
            ends, last = self._find(level, start, end)
        return ends[bisect_right(ends, start) : bisect_right(ends, end)]

    def down(self, level: Level, place: int, start: int = 0) -> Iterator[int]:
        """The boundaries of a level at or before a place and after `start`, descending."""
        block = _BLOCK if level in _RULES else _LINE_BLOCK
        while place > start:
            first = max(start, place - block)
            yield from reversed(self.between(level, first, place))
            place, block = first, 2 * block

    def up(self, level: Level, place: int) -> Iterator[int]:
        """The boundaries of a level after a place, ascending."""
        block = _BLOCK
        while place < len(self._text):
            last = min(len(self._text), place + block)
            yield from self.between(level, place, last)
            place, block = last, 2 * block

    def level_of(self, place: int, at_least: Level = "code_point") -> Level:
        """The coarsest level that has a boundary at `place`, which is one of `at_least`."""
        for level in reversed(LEVELS):
            if level == at_least or place in self.between(level, place - 1, place):
                return level
        return at_least

    def restart(self, level: Level, place: int) -> int:
        """A boundary of a level at or before `place` from which those after it can be found without
        the text before it."""
        rule = _RULES[level]
        match = rule.restart.search(self._text, max(0, place - _BACK), place + 1)
        first, _, ends = self._found.get(level, (0, 0, []))
        known = 0
        if first <= place:
            before = bisect_right(ends, place)
            known = ends[before - 1] if before else first
        return max(known, match.start() if match and match.start() <= place else 0)

    def _lines(self, start: int, end: int, *, only_after_blank: bool) -> list[int]:
        """The ends of lines after `start` and up to `end`; or only of those that are blank, and
        follow a line end."""
        text = self._text
        # A CR LF may start before a place, or end after it.
        place = start - 1 if start and text[start - 1 : start + 1] == "\r\n" else start
        lines = text[place : end + 1].splitlines(keepends=True)
        # What stands before the first line matters only if that ends, and is blank.
        first = lines[0] if lines and only_after_blank else ""
        is_blank = first.endswith(tuple(_LINE_ENDS)) and not first.strip(_BLANK)
        is_blank = is_blank and self._ends_line_before(place)
        ends = []
        for line in lines:
            place += len(line)
            if place > end:
                break
            if line.endswith(_NO_LINE_ENDS) or line == line.rstrip(_LINE_ENDS):
                is_blank = False
                continue
            if not only_after_blank or (is_blank and not line.strip(_BLANK)):
                ends.append(place)
            is_blank = True
        if end == len(text) and ends[-1:] != [end]:
            ends.append(end)
        return ends

    def _ends_line_before(self, place: int) -> bool:
        """Whether nothing but spaces and tabs stands between a place and the line end before it."""
        back = _BACK
        while place:
            first = max(0, place - back)
            rest = self._text[first:place].rstrip(" \t")
            if rest or first == 0:
                return rest[-1:] in tuple(_LINE_ENDS)
            back *= 4
        return False

    def _find(self, level: Level, start: int, end: int) -> tuple[list[int], int]:
        if not UNICODE_VERSION:
            raise InvalidOption("level", f"{level} needs the compiled core, which is not installed")
        text = self._text
        first = self.restart(level, start)
        # Where no boundary is found for long, twice as much is looked at each time.
        ahead = _RULES[level].ahead.search(text, min(2 * end - first + _MORE, len(text)))
        last = ahead.start() if ahead else len(text)
        ends = [first + i for i in _core.break_ends(text[first : last + 1], level)]
        if last < len(text):
            ends = ends[: bisect_right(ends, last)]
        self._found[level] = first, last, ends
        return ends, last
