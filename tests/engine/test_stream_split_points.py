"""The safe split points of every named split pattern, compared with the definition: whatever text
follows, the parts split as the whole does."""

from __future__ import annotations

import itertools
import random

import pytest
import regex
from bytepair_engine.backends.reference import split
from bytepair_engine.streaming.split_points import split_points_of
from bytepair_engine.vocabulary.patterns import PATTERNS
from support.hard_text import HARD_CHARACTERS, HARD_PIECES

#: At least one character for each case that a pattern can distinguish.
ALPHABET = ["a", "A", "r", "あ", "\u0301", "1", " ", "\n", "'", "/", ".", "\x00", "ー", "・", "é"]

#: A smaller set whose order matters, for longer texts.
SHORT_ALPHABET = ["A", "r", "\u0301", "・", " ", "\n", "'"]

#: Texts that would be cut wrongly if a rule were slightly wider.
TRAPS = [
    "x'rEx",
    "あ'lLあ",
    "x'sAあ",
    "あ・\n \nx",
    "\u0301\n \nx",
    "  1",
    "/\n/x",
    "あAAAAa",
    "'S'S",
]

SEED = 20261120


def borders_found(pattern: str, text: str) -> set[int]:
    """Return every split point that the rules find in some prefix of `text`."""
    points = split_points_of(pattern)
    assert points is not None
    found = set()
    for end in range(len(text) + 1):
        found |= {points.local(text, end), points.settled(text[:end])}
    return found - {0}


def check(pattern: str, text: str) -> int:
    whole = split(text, pattern)
    found = borders_found(pattern, text)
    for point in found:
        assert split(text[:point], pattern) + split(text[point:], pattern) == whole, (
            f"{text!r} cannot be cut at {point}"
        )
    return len(found)


@pytest.mark.slow
@pytest.mark.parametrize("name", PATTERNS)
def test_texts_can_be_cut_at_their_split_points(name: str) -> None:
    pattern = PATTERNS[name]
    found = sum(check(pattern, text) for text in TRAPS)
    for alphabet, length in ((ALPHABET, 2), (ALPHABET, 3), (SHORT_ALPHABET, 4)):
        for characters in itertools.product(alphabet, repeat=length):
            found += check(pattern, "".join(characters))
    rng = random.Random(SEED)
    for _ in range(1500):
        pool = rng.choice([ALPHABET, HARD_CHARACTERS, HARD_PIECES, rng.sample(ALPHABET, 4)])
        found += check(pattern, "".join(rng.choice(pool) for _ in range(rng.randrange(4, 14))))
    assert found > 1000


@pytest.mark.slow
@pytest.mark.parametrize("name", PATTERNS)
def test_a_long_text_without_a_split_point_is_a_few_pre_tokens(name: str) -> None:
    """So only long pre-tokens are held, and never many short ones."""
    pattern = PATTERNS[name]
    rng = random.Random(SEED)
    for _ in range(600):
        pool = rng.sample(ALPHABET, rng.randrange(1, 4))
        unit = "".join(rng.choice(pool) for _ in range(rng.randrange(1, 5)))
        text = unit * 12
        last = max(borders_found(pattern, text), default=0)
        assert len(split(text[last:], pattern)) <= 8, f"{text[last:]!r} is held"


@pytest.mark.slow
def test_spaces_are_split_points_in_every_version_of_unicode() -> None:
    """A code point that only some versions of Unicode classify as a letter does not move these
    split points."""
    for pattern in PATTERNS.values():
        points = split_points_of(pattern)
        assert points is not None
        for code_point in range(0, 0x110000, 97):
            character = chr(code_point)
            if not regex.match(r"\s", character) and not 0xD800 <= code_point < 0xE000:
                assert points.local(character + " ", 2) == 1


def test_an_unknown_pattern_has_no_split_points() -> None:
    assert split_points_of(r"\w+|\s+") is None
