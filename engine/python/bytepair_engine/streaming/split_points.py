r"""The safe split points of each split pattern, for text that is not complete yet.

A position p of a text t is a *safe split point* if s(t + c) = s(t[:p]) + s(t[p:] + c) for every
continuation c, where s splits a text into pre-tokens (`reference.split`). All published patterns
have three properties, which can be read off them:

1. No alternative looks behind: a match does not depend on the text before it.
2. Only white space looks ahead: the only assertions are `$` and `(?!\S)`, and each follows a run of
   `\s`.
3. Nothing overlaps: matches follow one another, and text that no alternative matches (only
   DeepSeek's pattern leaves some) is a piece up to the next match.

**Lemma.** If p is an end of a pre-token of t + c for every c, and the character before p is not
white space, then p is a safe split point.

*Right side.* By 1 and 3 the matches after p are those of the text that starts at p. *Left side.*
Compare the run of the pattern over t[:p] with that over t + c. An attempt to match chooses the
first alternative, in the pattern's order, that succeeds. An alternative that consumes only
characters before p and meets no assertion at p succeeds in both texts or in neither. An alternative
that would consume more fails in t[:p], and was not chosen in t + c, because p is an end there. By
2, an assertion can be met at p only right after white space, and the character before p is not
white space. So the choices before p are the same. ∎

The same holds if the character before p is white space but belongs to a pre-token with other
characters (line ends after punctuation): a run of white space that starts in an earlier pre-token
cannot extend past those characters, and within this pre-token the alternatives for white space come
after the one that was chosen.

For several splits in sequence (DeepSeek), a piece of an earlier split is a whole text for the next
one. So an end of a piece of an earlier split is a safe split point whatever comes before it. For a
position inside such a piece, the lemma applies to the piece.

It remains to find positions that are ends for every continuation. Write L, M, N, P, S for the
Unicode categories, *X* for a character that is neither white space nor L nor N (so M is in X), *nl*
for CR and LF, *sp* for other white space, *rest* for all characters other than white space, L, M,
N, P and S (controls, formats, unassigned). The rules take the categories from the `regex` package;
the engine's dependencies pin it to the core's version of Unicode (`_core.UNICODE_VERSION`).

A position between two characters is an end for every continuation if no alternative can consume the
two one after the other. So list the pairs that a match can contain; every other pair is a split
point, provided the first character is not white space.

- gpt2: a match can hold L L, N N, X X, `'` L; split points are L·(not L), N·(not N), X·(L, N or
  white space), except `'`·L.
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

Two cases need an explanation. *Ll·(Lu or Lt)*: in a word of o200k or Tekken, `[Lu Lt Lm Lo M]*[Ll
Lm Lo M]+`, an Ll is always in the second part, which no Lu or Lt continues. In the suffix `'re`,
`'ve` or `'ll`, which ignores case, an Lu can follow; but there `'` comes before the Ll. *DeepSeek's
first splits* isolate numbers, then Han and kana, so both ends of these are ends of pieces, even
after white space.

In every pattern, the position between a character that is not white space and sp is a split point.
This does not depend on categories, so no difference between versions of Unicode can change it.

Some texts with many pre-tokens have no such split point. They are searched as a whole, each time
the buffered text has doubled (from 4,096 characters on), and before the limit is enforced.

- *Numbers in threes* (`\p{N}{1,3}`). No other alternative consumes a number, so a match starts at
  the first of a run of numbers, and at every third after it.
- *Line ends after punctuation* (cl100k, llama3, qwen2, o200k, tekken, deepseek_v3). An X before nl
  can only have been consumed by ` ?[^\s\p{L}\p{N}]+[\r\n]*`, because a prefix or suffix of a word
  is followed by a letter; this alternative consumes every nl that follows. So the position after a
  run of nl after X is an end. In o200k and Tekken the run must not be followed by `/`, which may
  continue it, and X must not be M, which may have ended a word. In DeepSeek the character must be P
  or S and neither Han nor kana, which an earlier split isolates.
- *Words of o200k and Tekken* depend on the case of letters ahead, without a limit: `あAAA` splits
  after `あ` unless a lower-case letter follows. Here the buffered text is split from its start,
  which is a split point, as long as the match cannot have looked at the end of the text. The reach
  of a match is known: the first alternative that can match decides, and it looks at most at `[Lu Lt
  Lm Lo M]*[Ll Lm Lo M]*` after an optional prefix, at three numbers, at the run of punctuation with
  line ends and slashes, or at the run of white space; and at three characters beyond (`'re`). Such
  a match is the same for every continuation. By the lemma, its end is a safe split point if the
  match contains a character that is not white space.
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
        local: Returns the last split point before an index that is determined by the adjacent
            characters; 0 if there is none.
        settled: Returns the last split point of a text that starts at a split point and contains
            no special token; 0 if there is none.
        isolated: For a pipeline, the special tokens between two of which a text can be split; None
            if it can be split after any. In a pipeline the text after a special token is not
            encoded as at the start of a text, nor as after the token's last character.
    """

    local: Callable[[str, int], int]
    settled: Callable[[str], int]
    isolated: frozenset[str] | None = None


def split_points_of(pattern: str) -> SplitPoints | None:
    """Return the split points of a split pattern; None if it is not in `patterns.PATTERNS`: those
    of other patterns are unknown."""
    return _SPLIT_POINTS.get(pattern)


def _local(run: str, *rules: str) -> Callable[[str, int], int]:
    """Return the search by `rules`. None of them finds a point within a `run`, which is skipped
    first: a run may be long, and the rules take a hundred times as long for a character."""
    pattern, runs = _backwards(*rules), _backwards(run)

    def local(text: str, end: int) -> int:
        last = runs.match(text, 0, end)
        found = pattern.search(text, 0, last.start() + 1) if last else None
        return found.start() if found else 0

    return local


def _backwards(*rules: str) -> regex.Pattern[str]:
    return regex.compile("(?r)" + "|".join(rules))


# Runs of characters of one kind at the end of a text:
_KINDS: Final = r"\p{L}+|[^\s\p{L}\p{N}]+|\s+"
_KINDS_BY_CASE: Final = r"\p{Ll}+|[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+|[^\s\p{L}\p{N}\p{M}]+|\s+"
_NUMBERS: Final = r"|\p{N}+"
_EACH_NUMBER: Final = r"|\p{N}"

# Rules are a lookbehind and a lookahead at the split point. Letters, then anything that does not
# continue a word:
_AFTER_LETTER: Final = r"(?<=\p{L})(?=\P{L})"
_AFTER_LETTER_OR_MARKS: Final = r"(?<=\p{L})(?=[^\p{L}\p{M}])"
_AFTER_LETTER_OR_SUFFIX: Final = r"(?<=\p{L})(?=[^\p{L}\p{M}'])"
# Numbers, then anything else; or any character, if each number is a pre-token:
_AFTER_NUMBER: Final = r"(?<=\p{N})(?=\P{N})"
_AFTER_EACH_NUMBER: Final = r"(?<=\p{N})(?=\p{Any})"
# Punctuation, then a character that neither continues it nor follows it in a match:
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
    """Return the search for the other split points: in numbers in threes, and after line ends that
    belong to punctuation, which `line_ends` matches."""
    after_line_ends = _backwards(line_ends)

    def settled(text: str) -> int:
        numbers = _LAST_NUMBERS.match(text)
        length = len(numbers.group()) if numbers else 0
        if length >= 3:
            return len(text) - length % 3
        found = after_line_ends.search(text)
        return found.start() if found else 0

    return settled


# The reach of a match of the o200k family, by the first alternative that can match: a word, a
# number, punctuation, white space; and the number of characters beyond it ('re).
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
    """Return the search for the o200k family, whose words depend on the case of letters ahead: if
    nothing cheaper helps, split the text as far as more text cannot change it."""
    split = regex.compile(pattern)
    settled_runs = _settled_runs(_AFTER_LINE_ENDS_OR_SLASHES)

    def settled(text: str) -> int:
        start, point = 0, settled_runs(text)
        if point:
            return point
        while (reach := _REACH.match(text, start)) and reach.end() + _PEEK <= len(text):
            match = split.match(text, start)
            assert match is not None  # a match starts at every character
            if _NOT_SPACE.search(match.group()):
                point = match.end()
            start = match.end()
        return point

    return settled


_SPLIT_POINTS: Final[dict[str, SplitPoints]] = {
    PATTERNS[name]: SplitPoints(local, settled)
    for name, local, settled in (
        (
            "gpt2",
            _local(
                _KINDS + _NUMBERS,
                _AFTER_LETTER,
                _AFTER_NUMBER,
                r"(?<=[^\s\p{L}\p{N}'])(?=[\s\p{L}\p{N}])",
                r"(?<=')(?=[\s\p{N}])",
            ),
            _nothing_settled,
        ),
        (
            "cl100k_base",
            _local(_KINDS + _NUMBERS, _AFTER_LETTER, _AFTER_NUMBER, _AFTER_PUNCTUATION),
            _settled_runs(_AFTER_LINE_ENDS),
        ),
        (
            "llama3",
            _local(_KINDS + _NUMBERS, _AFTER_LETTER, _AFTER_NUMBER, _AFTER_PUNCTUATION),
            _settled_runs(_AFTER_LINE_ENDS),
        ),
        (
            "qwen2",
            _local(_KINDS + _EACH_NUMBER, _AFTER_LETTER, _AFTER_EACH_NUMBER, _AFTER_PUNCTUATION),
            _settled_runs(_AFTER_LINE_ENDS),
        ),
        (
            "o200k_base",
            _local(
                _KINDS_BY_CASE + _NUMBERS,
                _AFTER_LETTER_OR_SUFFIX,
                _AFTER_NUMBER,
                _AFTER_PUNCTUATION,
                _AFTER_LOWER_OF_WORD,
            ),
            _settled_words(PATTERNS["o200k_base"]),
        ),
        (
            "tekken",
            _local(
                _KINDS_BY_CASE + _EACH_NUMBER,
                _AFTER_LETTER_OR_MARKS,
                _AFTER_EACH_NUMBER,
                _AFTER_PUNCTUATION,
                _AFTER_LOWER,
            ),
            _settled_words(PATTERNS["tekken"]),
        ),
        (
            "deepseek_v3",
            _local(
                r"\p{N}+|\s+|[a-z]+|[A-Z]+|[!-/:-@\[-`{-~]+|\p{Any}",
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
