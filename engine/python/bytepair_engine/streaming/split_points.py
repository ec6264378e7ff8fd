r"""Where a text that is not complete can be split: the safe split points of each split pattern.

A position p of a text t is a *safe split point* if s(t + c) = s(t[:p]) + s(t[p:] + c) for every
continuation c, where s splits a text into pre-tokens (`reference.split`). All published patterns
have three properties, which can be read off them:

1. No alternative looks behind: what is matched from a position on does not depend on what stands
   before it.
2. Only white space looks ahead: the only assertions are `$` and `(?!\S)`, and each follows a run of
   `\s`.
3. Nothing overlaps: matches follow one another, and what no alternative matches (DeepSeek alone has
   such characters) is a piece up to the next match.

**Lemma.** If p is an end of a pre-token of t + c for every c, and the character before p is not
white space, then p is a safe split point.

*Right side.* By 1 and 3 the matches after p are those of the text that starts at p. *Left side.*
Compare the run of the pattern over t[:p] with that over t + c. An attempt to match chooses the
first alternative, in the pattern's order, that succeeds. One that consumes only characters before
p and meets no assertion at p succeeds in the one text exactly if it does in the other. One that
would consume more fails in t[:p], and was not chosen in t + c, as p is an end there. An assertion
can only be met at p right after white space, by 2, and the character before p is none. So the
choices before p are the same. ∎

The same holds where the character before p is white space but belongs to a pre-token that contains
something else (line ends that punctuation takes along): a run of white space that starts in an
earlier pre-token cannot pass that something else, and within this pre-token the alternatives for
white space come after the one that was chosen.

For several splits in sequence (DeepSeek) a piece of an earlier split is a whole text for the next
one, so an end of a piece of an earlier split is a safe split point whatever stands before it; for a
position inside such a piece the lemma applies to the piece.

It remains to find positions that are ends for every continuation. Write L, M, N, P, S for the
Unicode categories, *X* for a character that is neither white space nor L nor N (so M is in X), *nl*
for CR and LF, *sp* for other white space, *rest* for what is none of white space, L, M, N, P and S
(controls, formats, unassigned). The rules take these from the `regex` package, which the engine's
dependencies hold to the version of Unicode that the core has (`_core.UNICODE_VERSION`).

A position between two characters is an end for every continuation if no alternative can consume the
two one after the other. So list the pairs that a match can hold; every other pair is a split point,
provided the first is not white space.

- gpt2: a match can hold L L, N N, X X, `'` L; split points are L·(not L), N·(not N), X·(L, N or
  white space), but `'`·L is none.
- cl100k, llama3: a match can hold L L, N N, X X, X L, X nl; split points are L·(not L), N·(not N),
  X·(N or sp).
- qwen2: a match can hold L L, X X, X L, X nl; split points are L·(not L), N·(anything), X·(N or
  sp).
- o200k: a match can hold what tekken's can, and L `'`, `'` L (the suffix of a word); split points
  are L·(not L, M, `'`), N·(not N), X·(N or sp), Ll·(Lu or Lt) unless `'` stands before the Ll.
- tekken: a match can hold letters and marks in a word, X X, X L, X nl, X `/`; split points are
  L·(not L, M), N·(anything), X·(N or sp), Ll·(Lu or Lt).
- deepseek_v3: a match can hold L or M with L or M, N N, [PS] [PS], [PS] L, [PS] nl, rest L, rest M;
  split points are (L or M)·(neither), N·(not N), (not N)·N, Han or kana·(neither) and the reverse,
  [PS]·(sp, or none of L, M, P, S), rest·(white space, P or S).

Two need a word. *Ll·(Lu or Lt)*: in a word of o200k or Tekken, `[Lu Lt Lm Lo M]*[Ll Lm Lo M]+`, an
Ll is always in the second part, which no Lu or Lt continues. In the suffix `'re`, `'ve` or `'ll`,
which ignores case, it can be followed by one; there `'` stands before the Ll. *DeepSeek's first
splits* isolate numbers, then Han and kana, so both ends of these are ends of pieces, even after
white space.

In every pattern anything but white space, followed by sp, is a split point. This does not ask what
kind of character it is, so no difference between versions of Unicode can move it.

Some texts of many pre-tokens have no such split point. They are looked at as a whole, each time
that the held text has doubled (from 4,096 characters on) and before the bound is enforced.

- *Numbers in threes* (`\p{N}{1,3}`). No other alternative consumes a number, so the first of a run
  of numbers begins a match, and so does every third after it.
- *Line ends after punctuation* (cl100k, llama3, qwen2, o200k, tekken, deepseek_v3). A character of
  X that nl follows can only have been consumed by ` ?[^\s\p{L}\p{N}]+[\r\n]*`, as a prefix or
  suffix of a word would have a letter next; this takes every nl that follows. So the position after
  a run of nl that follows X, before anything else, is an end. In o200k and Tekken the run must not
  be followed by `/`, which may continue it, and X must not be M, which may have ended a word. In
  DeepSeek the character must be P or S and neither Han nor kana, which an earlier split cuts off.
- *Words of o200k and Tekken* depend on the case of letters ahead, without a limit: `あAAA` splits
  after `あ` unless a lower-case letter follows. There the text held is split from its start, which
  is a split point, as long as the match cannot have looked at the end of the text. How far a match
  looks is known: the first alternative that can match decides, and it looks at most at `[Lu Lt Lm
  Lo M]*[Ll Lm Lo M]*` after an optional prefix, at three numbers, at the run of punctuation with
  line ends and slashes, or at the run of white space; and at three characters beyond (`'re`). Such
  a match is the same whatever follows, and its end is a safe split point by the lemma if it holds
  anything but white space.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import regex

from bytepair_engine.vocabulary.patterns import PATTERNS


@dataclass(frozen=True)
class SplitPoints:
    """The safe split points of one split pattern.

    Attributes:
        local: The last split point by its neighbours alone, of those before an index; 0 if
            there is none.
        settled: The last split point in a text that starts at one and holds no special token; 0
            if there is none.
    """

    local: Callable[[str, int], int]
    settled: Callable[[str], int]


def split_points_of(pattern: str) -> SplitPoints | None:
    """The split points of a split pattern; None if it is none of `patterns.PATTERNS`, because
    nothing is known of its split points then, and none is guessed."""
    return _BORDERS.get(pattern)


def _local(*rules: str) -> Callable[[str, int], int]:
    pattern = _backwards(*rules)

    def local(text: str, end: int) -> int:
        found = pattern.search(text, 0, end)
        return found.start() if found else 0

    return local


def _backwards(*rules: str) -> regex.Pattern[str]:
    return regex.compile("(?r)" + "|".join(rules))


# Rules are written "behind the split point, before it". Letters, then anything that
# continues no word:
_AFTER_LETTER: Final = r"(?<=\p{L})(?=\P{L})"
_AFTER_LETTER_OR_MARKS: Final = r"(?<=\p{L})(?=[^\p{L}\p{M}])"
_AFTER_LETTER_OR_SUFFIX: Final = r"(?<=\p{L})(?=[^\p{L}\p{M}'])"
# Numbers, then anything else; or anything at all, where each is a pre-token:
_AFTER_NUMBER: Final = r"(?<=\p{N})(?=\P{N})"
_AFTER_EACH_NUMBER: Final = r"(?<=\p{N})(?=\p{Any})"
# Punctuation, then what neither belongs to it nor starts with it:
_AFTER_PUNCTUATION: Final = r"(?<=[^\s\p{L}\p{N}])(?=\p{N}|[^\S\r\n])"
# A new word in camel case, but not within the suffixes 're, 've and 'll:
_AFTER_LOWER: Final = r"(?<=\p{Ll})(?=[\p{Lu}\p{Lt}])"
_AFTER_LOWER_OF_WORD: Final = r"(?<=(?<!')\p{Ll})(?=[\p{Lu}\p{Lt}])"

# Line ends that belong to the punctuation before them:
_AFTER_LINE_ENDS: Final = r"(?<=[^\s\p{L}\p{N}][\r\n]+)(?=[^\r\n])"
_AFTER_LINE_ENDS_OR_SLASHES: Final = r"(?<=[^\s\p{L}\p{N}\p{M}][\r\n]+)(?=[^\r\n/])"

_LAST_NUMBERS: Final = regex.compile(r"(?r)\p{N}+")
_HAN_OR_KANA: Final = "一-龥぀-ゟ゠-ヿ"


def _nothing_settled(text: str) -> int:  # noqa: ARG001
    return 0


def _settled_runs(line_ends: str) -> Callable[[str], int]:
    """For what the local rules leave: numbers in threes, and line ends that follow
    punctuation and belong to it, which `line_ends` finds."""
    after_line_ends = _backwards(line_ends)

    def settled(text: str) -> int:
        numbers = _LAST_NUMBERS.match(text)
        length = len(numbers.group()) if numbers else 0
        if length >= 3:
            return len(text) - length % 3
        found = after_line_ends.search(text)
        return found.start() if found else 0

    return settled


# How far a match of the o200k family looks from where it starts, by the first alternative that
# can match there: a word, a number, punctuation, white space; and how far beyond that ('re).
_REACH: Final = regex.compile(
    r"[^\r\n\p{L}\p{N}]?(?=[\p{L}\p{M}])"
    r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*+"
    r"|\p{N}{1,3}+"
    r"| ?[^\s\p{L}\p{N}]++[\r\n/]*+"
    r"|\s++"
)
_PEEK: Final = 3
_NOT_SPACE: Final = regex.compile(r"\S")


def _settled_words(pattern: str) -> Callable[[str], int]:
    """For the o200k family, whose words depend on the case of letters ahead: where nothing
    cheaper helps, split the text, as far as no more text can change it."""
    split = regex.compile(pattern)
    settled_runs = _settled_runs(_AFTER_LINE_ENDS_OR_SLASHES)

    def settled(text: str) -> int:
        start, point = 0, settled_runs(text)
        if point:
            return point
        while (reach := _REACH.match(text, start)) and reach.end() + _PEEK <= len(text):
            match = split.match(text, start)
            assert match is not None  # as every character begins a match
            if _NOT_SPACE.search(match.group()):
                point = match.end()
            start = match.end()
        return point

    return settled


_BORDERS: Final[dict[str, SplitPoints]] = {
    PATTERNS[name]: SplitPoints(local, settled)
    for name, local, settled in (
        (
            "gpt2",
            _local(
                _AFTER_LETTER,
                _AFTER_NUMBER,
                r"(?<=[^\s\p{L}\p{N}'])(?=[\s\p{L}\p{N}])",
                r"(?<=')(?=[\s\p{N}])",
            ),
            _nothing_settled,
        ),
        (
            "cl100k_base",
            _local(_AFTER_LETTER, _AFTER_NUMBER, _AFTER_PUNCTUATION),
            _settled_runs(_AFTER_LINE_ENDS),
        ),
        (
            "llama3",
            _local(_AFTER_LETTER, _AFTER_NUMBER, _AFTER_PUNCTUATION),
            _settled_runs(_AFTER_LINE_ENDS),
        ),
        (
            "qwen2",
            _local(_AFTER_LETTER, _AFTER_EACH_NUMBER, _AFTER_PUNCTUATION),
            _settled_runs(_AFTER_LINE_ENDS),
        ),
        (
            "o200k_base",
            _local(
                _AFTER_LETTER_OR_SUFFIX, _AFTER_NUMBER, _AFTER_PUNCTUATION, _AFTER_LOWER_OF_WORD
            ),
            _settled_words(PATTERNS["o200k_base"]),
        ),
        (
            "tekken",
            _local(_AFTER_LETTER_OR_MARKS, _AFTER_EACH_NUMBER, _AFTER_PUNCTUATION, _AFTER_LOWER),
            _settled_words(PATTERNS["tekken"]),
        ),
        (
            "deepseek_v3",
            _local(
                r"(?<=[\p{L}\p{M}])(?=[^\p{L}\p{M}])",
                _AFTER_NUMBER,
                r"(?<=\P{N})(?=\p{N})",
                rf"(?<=[{_HAN_OR_KANA}])(?=[^{_HAN_OR_KANA}])",
                rf"(?<=[^{_HAN_OR_KANA}])(?=[{_HAN_OR_KANA}])",
                r"(?<=[\p{P}\p{S}])(?=[^\S\r\n]|[^\s\p{L}\p{M}\p{P}\p{S}])",
                r"(?<=[^\s\p{L}\p{M}\p{N}\p{P}\p{S}])(?=[\s\p{P}\p{S}])",
            ),
            _settled_runs(rf"(?<=(?![{_HAN_OR_KANA}])[\p{{P}}\p{{S}}][\r\n]+)(?=[^\r\n])"),
        ),
    )
}
