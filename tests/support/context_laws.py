"""What Truncate and Split must give, by trying every boundary of a short text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise

from bytepair_engine import list_encodings
from bytepair_engine._core import break_ends
from bytepair_engine.context.boundaries import LEVELS, Level
from hypothesis import strategies as st

Count = Callable[[str], int]

#: What others cut wrongly, and what patterns and Unicode treat by itself.
PARTS = [
    *("a", "The", "function", "é", "É", "あ", "日本", "__", "\n", "//", " ", "  ", "\n\n", "\r\n"),
    *(
        "'s",
        "'",
        "1",
        "456789",
        "🧠",
        "👨‍👩‍👧",
        "🇩🇪",
        "Z̷̢̛",
        "Ā",
        ".",
        "! ",
        " world",
        "\u0301",
        "\t",
    ),
    *("<|endoftext|>", "<|end", "oftext|>", "ABC", "x" * 20, "\u200d", "‼", "क्", "U.S. ", "can't "),
]

#: What joins with the text beside it, as a word, a sentence, a grapheme or a token.
JOINING_PARTS = [
    *(" the", " word", ". A", "! ", "\n", "\r\n", "\n \n", "  ", "don't", "1234", "Ā", "🧠"),
    *("🇩🇪", "👨\u200d👩", "क\u094dष", "日本語。", "แม่", "\u3042A", "functio", "\u0301", "|>"),
]

#: Markers where text was removed.
MARKERS = ["", " …", "n", "[cut]"]

#: Texts that others lost, tore or never finished.
AWKWARD = [
    "",
    "hello 🧠",
    "Ā",
    "日本__\n//",
    "functio",
    "👨‍👩‍👧‍👦" * 3,
    "🇩🇪🇫🇷" * 9,
    "Z̷̢̛" * 9,
    "a\r\nb\r\n\r\nc",
    "a\u2028b\u2029 \u2029c\vd\f\fe\x85 \x85f\x1cg\x1e\x1eh",
    " " * 300,
    "\u0301" * 200,
    "x" * 700,
    "🏴󠁧󠁢󠁥󠁮󠁧󠁿" * 4,
    "1234567" * 40,
    "\n!" * 100,
    "あA" * 100,
]


def shorter(text: str) -> str:
    """The first characters of an awkward text: enough of one that repeats itself."""
    return text[:48]


texts = st.lists(st.sampled_from(PARTS), max_size=40).map("".join)
repeated = st.lists(st.sampled_from(PARTS), min_size=1, max_size=3).flatmap(
    lambda few: st.lists(st.sampled_from(few), max_size=60).map("".join)
)
encodings = st.sampled_from(list_encodings())
levels = st.sampled_from(LEVELS)
budgets = st.sampled_from([0, 1, 2, 3, 5, 8, 13, 30])

_LINE_END = r"\r\n|[\n\r\v\f\x85\u2028\u2029]"


def boundaries(text: str, level: Level) -> list[int]:
    """Every boundary of a level, by the whole text at once; its end is one."""
    if level == "code_point":
        return list(range(1, len(text) + 1))
    if level in ("grapheme", "word", "sentence"):
        return break_ends(text, level)
    lines = [(match.start(), match.end()) for match in re.finditer(_LINE_END, text)]
    if level == "line":
        ends = [end for _, end in lines]
    else:
        ends = [
            end
            for (_, before), (start, end) in pairwise(lines)
            if not text[before:start].strip(" \t")
        ]
    return sorted({*ends, len(text)} - {0})


def inside_special(text: str, names: frozenset[str]) -> set[int]:
    """The places inside a special token that a text contains."""
    found = _any_of(names).finditer(text)
    return {place for match in found for place in range(match.start() + 1, match.end())}


@cache
def _any_of(names: frozenset[str]) -> re.Pattern[str]:
    ordered = sorted(names, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, ordered)) or r"[^\s\S]")


def tried_levels(level: Level) -> Iterator[Level]:
    """The level, and the finer ones that are tried where nothing fits."""
    yield level
    yield from (
        finer for finer in ("grapheme", "code_point") if LEVELS.index(finer) < LEVELS.index(level)
    )


def longest(
    text: str, level: Level, fits: Callable[[int], bool], forbidden: set[int], *, last: bool
) -> tuple[int, Level] | None:
    """The last, or first, boundary inside a text that fits, at the first level that has one, and
    that level."""
    for tried in tried_levels(level):
        found = [
            place
            for place in boundaries(text, tried)
            if place < len(text) and place not in forbidden and fits(place)
        ]
        if found:
            return (max(found) if last else min(found)), tried
    return None
