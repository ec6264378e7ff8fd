"""Boundaries of a text: of code points, graphemes, words, sentences, lines and paragraphs.

Graphemes, words and sentences are those of Unicode Standard Annex 29, at the version
`UNICODE_VERSION`. A line ends after LF, CR LF, CR, VT, FF, NEL, U+2028 or U+2029; a paragraph after
a line end that follows another with nothing but spaces and tabs between them.
"""

from __future__ import annotations

from bisect import bisect_right, insort
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

#: The Unicode version of graphemes, words and sentences; "" without the compiled core, which has
#: the tables.
UNICODE_VERSION: Final = "" if _core is None else _core.BREAKS_UNICODE_VERSION

#: Characters that end a line, and the characters of a blank line.
_LINE_ENDS: Final = "\r\n\v\f\x85\u2028\u2029"
_BLANK: Final = " \t" + _LINE_ENDS

#: `str.splitlines` ends a line after these too.
_NO_LINE_ENDS: Final = ("\x1c", "\x1d", "\x1e")


#: Characters at which each rule of word boundaries knows all that matters. Not those that may be
#: within a word, which depend on the next character, and those that belong to the one before them;
#: a letter that is a pictograph may be one of these. Characters that this version of Unicode does
#: not assign are left out, here and below: the core's tables may be newer.
_WORD: Final = (
    r"(?V1)[^\p{Cn}[\p{ExtPict}&&\p{WB=ALetter}]\p{WB=MidLetter}\p{WB=MidNum}\p{WB=MidNumLet}\p{WB=Single_Quote}\p{WB=Double_Quote}"
    r"\p{WB=Extend}\p{WB=Format}\p{WB=ZWJ}\p{WB=Regional_Indicator}]"
)

#: The same for graphemes.
_GRAPHEME: Final = r"[^\p{Cn}\p{GCB=Extend}\p{GCB=ZWJ}\p{GCB=Regional_Indicator}]"

#: Characters after which it does not matter whether a sentence ended before them; or else two, the
#: second of which is a full stop.
_SENTENCE: Final = (
    r"[^\p{Cn}\p{SB=Extend}\p{SB=Format}\p{SB=Sp}\p{SB=Close}\p{SB=ATerm}]"
    r"|[^\p{Cn}\p{SB=Extend}\p{SB=Format}](?=\p{SB=ATerm})"
)

#: A character that decides whether a sentence ends after the full stop before it.
_AFTER_STOP: Final = (
    r"[\p{SB=OLetter}\p{SB=Upper}\p{SB=Lower}\p{SB=Sep}\p{SB=CR}\p{SB=LF}\p{SB=STerm}\p{SB=ATerm}]"
)


@dataclass(frozen=True)
class _Rule:
    """The context that the rules of a level need.

    Attributes:
        restart: Finds, backwards, where no later boundary depends on the text before.
        ahead: Finds a character beyond which no earlier boundary depends on the text.
    """

    restart: regex.Pattern[str]
    ahead: regex.Pattern[str]


_RULES: Final[dict[Level, _Rule]] = {
    "grapheme": _Rule(regex.compile(rf"(?r){_GRAPHEME}"), regex.compile(r"(?s).")),
    "word": _Rule(regex.compile(rf"(?r){_WORD}"), regex.compile(_WORD)),
    "sentence": _Rule(regex.compile(rf"(?r){_SENTENCE}"), regex.compile(_AFTER_STOP)),
}

#: What `stable_from` looks for: a restart of each level, and text of which the lines are known.
_FIRST: Final = (
    *map(regex.compile, (_GRAPHEME, _WORD, _SENTENCE)),
    regex.compile(r"(?s)[ \t]*(?:\r\n|.)\K"),
)

_LAST_OF_WORD: Final = regex.compile(rf"(?r){_WORD}|\p{{WB=Regional_Indicator}}")
#: What belongs to the character before it.
_BELONGS: Final = regex.compile(r"[\p{WB=Extend}\p{WB=Format}\p{WB=ZWJ}]*+")
_LAST_AFTER_STOP: Final = regex.compile(rf"(?r){_AFTER_STOP}")

#: A full stop after which a sentence may end.
_STOP: Final = regex.compile(r"\p{SB=ATerm}(?!\p{SB=Numeric})")

#: Characters before a position that are searched for a restart.
_BACK: Final = 512

#: Characters of the first block of `down` and `up`.
_BLOCK: Final = 64

#: The same for line ends.
_LINE_BLOCK: Final = 256

#: Characters beyond the requested position, so that the next request is already answered.
_MORE: Final = 64


def checked_level(level: str) -> Level:
    """Raise InvalidOption unless `level` is one of `LEVELS`."""
    if level not in LEVELS:
        raise InvalidOption("level", f"must be one of {', '.join(LEVELS)}")
    return level


def stable_until(text: str) -> int:
    """Return the last position known up to which no following text changes a boundary; 0 for none.

    Whether a sentence ends after a full stop depends on the next letter, however far that is. All
    other rules need the next character that does not belong to the one before it.
    """
    word, stop = _LAST_OF_WORD.search(text), _LAST_AFTER_STOP.search(text)
    place = word.start() if word else 0
    if _BELONGS.fullmatch(text, word.end() if word else 0):
        place = max(place, len(text) - 1)
    return min(place, stop.start()) if stop and _STOP.match(text, stop.start()) else place


def stable_from(text: str) -> int:
    """Return a position such that no preceding text changes a boundary after it; the length of the
    text for none."""
    found = [rule.search(text) for rule in _FIRST]
    return max(match.start() if match else len(text) for match in found)


class Boundaries:
    """The boundaries of one text, found on request.

    Requests in ascending order take linear time for any text; so do requests that go back a limited
    way each time.

    Attributes:
        is_start: Whether none depends on text before this one.
    """

    def __init__(self, text: str, restarts: Mapping[Level, int] | None = None) -> None:
        """Make the boundaries of a text.

        Args:
            text: A whole text, or the rest of one.
            restarts: For the rest of a text: the result of `restart` for each level.
        """
        self._text: Final = text
        self._restarts: Final = dict(restarts or {})
        self.is_start: Final = not any(self._restarts.values())
        # By level: places from which later boundaries can be found, one near each found so far.
        self._places: Final[dict[Level, list[int]]] = {
            level: [self._restarts.get(level, 0)] for level in _RULES
        }
        # By level: the boundaries found last, which are all that are in a range.
        self._found: Final[dict[Level, tuple[int, int, list[int]]]] = {
            level: (place, place, [place]) for level, place in self._restarts.items()
        }

    def between(self, level: Level, start: int, end: int) -> Sequence[int]:
        """Return the boundaries of a level after `start` and up to `end`, in code points.

        The end of the text is a boundary of every level.
        """
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

    def up(self, level: Level, place: int, end: int) -> Iterator[int]:
        """The boundaries of a level after a place and up to `end`, ascending."""
        block = _BLOCK
        while place < end:
            last = min(end, place + block)
            yield from self.between(level, place, last)
            place, block = last, 2 * block

    def level_of(self, place: int, at_least: Level = "code_point") -> Level:
        """Return the coarsest level with a boundary at `place`, which is one of `at_least`."""
        for level in reversed(LEVELS):
            if level == at_least or place in self.between(level, place - 1, place):
                return level
        return at_least

    def restart(self, level: Level, place: int) -> int:
        """Return a position at or before `place` from which later boundaries can be found without
        the text before it."""
        rule = _RULES[level]
        match = rule.restart.search(self._text, max(0, place - _BACK), place + 1)
        first, _, ends = self._found.get(level, (0, 0, []))
        places = self._places[level]
        known = places[max(0, bisect_right(places, place) - 1)]
        if first <= place:
            before = bisect_right(ends, place)
            known = max(known, ends[before - 1] if before else first)
        known = max(known, match.start() if match and match.start() <= place else 0)
        if place - known > _BACK:
            # Nothing has asked for these boundaries lately: find them, because a stream holds the
            # text from here on.
            known = [known, *self.between(level, known, place)][-1]
        return known

    def _lines(self, start: int, end: int, *, only_after_blank: bool) -> list[int]:
        """Return the ends of lines after `start` and up to `end`; optionally only of blank lines
        that follow a line end."""
        text = self._text
        # A CR LF may start before a place, or end after it.
        place = start - 1 if start and text[start - 1 : start + 1] == "\r\n" else start
        lines = text[place : end + 1].splitlines(keepends=True)
        # The text before the first line matters only if that line is blank.
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
        """Whether only spaces and tabs are between a position and the line end before it."""
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
        # Double the searched text as long as no boundary is found.
        ahead = _RULES[level].ahead.search(text, min(2 * end - first + _MORE, len(text)))
        last = ahead.start() if ahead else len(text)
        ends = [first + i for i in _core.break_ends(text[first : last + 1], level)]
        if last < len(text):
            ends = ends[: bisect_right(ends, last)]
        self._found[level] = first, last, ends
        places = self._places[level]
        for place in (first, ends[-1] if ends else first):
            if places[bisect_right(places, place) - 1] != place:
                insort(places, place)
        return ends, last
