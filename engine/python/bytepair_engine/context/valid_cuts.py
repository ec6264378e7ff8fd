"""Where a pipeline's text can be cut so that its tokens follow from those of shorter starts.

The core finds the tokens of each start of a text from those of shorter ones
(`pipeline/starts.rs`). Two conditions make that valid. First, pre-tokenizers see single characters
or words, or follow a published pattern. So the pieces of a start are those of the text, the last
one cut. Second, the normalised text can be cut between the two characters there: the second changes
nothing up to the first, and the first is not stripped at the end of a text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, ClassVar, Final, Self
from weakref import WeakKeyDictionary

import regex

from bytepair_engine.encoding import Encoding
from bytepair_engine.pipeline.charsmap import charsmap
from bytepair_engine.pipeline.definition import (
    ByteAlphabet,
    CharsMap,
    Lowercase,
    Merges,
    Model,
    Normaliser,
    Pipeline,
    Prefix,
    Prepend,
    PreTokenizer,
    Ranks,
    Replace,
    Scores,
    Spacing,
    Split,
    Strip,
    Substitute,
    Surround,
    UnicodeForm,
)
from bytepair_engine.pipeline.normalising import normalise_text, starts_cluster
from bytepair_engine.pipeline.splitting import compiled
from bytepair_engine.streaming.pipeline_split_points import ONE_CHARACTER, is_local
from bytepair_engine.vocabulary.patterns import PATTERNS
from bytepair_engine.vocabulary.special_search import special_search

#: Maximum number of pairs of characters that are cached for each encoding.
KEPT: Final = 4096
#: Maximum number of sets of allowed special tokens that are cached for each encoding.
_MAX_CACHED_SETS: Final = 32
#: `of_pipeline` of each class for the pipeline of an encoding, with its own cache.
_KNOWN: Final[WeakKeyDictionary[Encoding, dict[type, Any]]] = WeakKeyDictionary()

_BYTES: Final = 256
_SINGLE: Final = [bytes((byte,)) for byte in range(_BYTES)]

#: Whether a text can be cut between two characters.
Pair = Callable[[str, str], bool]

#: Patterns in which the letters of a word are a run, and two letters are in another match only
#: after an apostrophe: cut between two others, the start has the same matches, the last one cut.
_OF_WORDS: Final = {PATTERNS[name] for name in ("gpt2", "cl100k_base", "llama3", "qwen2")}
_WITHIN_WORD: Final = regex.compile(r"(?<!')\p{L}\p{L}")

_SPACE: Final = regex.compile(r"\s$")


class ValidCuts:
    """The positions at which texts of a pipeline can be cut.

    Attributes:
        of_ends: Whether the rest of a text is kept, as in `valid_ends`.
        is_known: Whether all that the search needs is known.
        found: The added tokens that are found in texts.
    """

    of_ends: ClassVar = False
    is_known = True

    def __init__(
        self, pipeline: Pipeline, allowed: frozenset[str], pair: Pair, *, in_words: bool
    ) -> None:
        """See `of_pipeline`.

        Args:
            pipeline: The pipeline.
            allowed: The allowed special tokens.
            pair: The rule of the normalisers.
            in_words: Whether cuts are valid within words only, as with a published pattern.
        """
        self._in_words: Final = in_words
        found = [token for token in pipeline.added if not token.special or token.name in allowed]
        self.found: Final = found
        self._pair: Final = pair
        self._steps: Final = pipeline.normalisers
        # A special token that is text hides others, which are found where it is cut.
        hidden = [token.content for token in pipeline.added if found and token not in found]
        self._hidden: Final = special_search(frozenset(hidden))
        raw = [len(token.content) for token in found if not token.normalised]
        raw += map(len, hidden)
        normalised = [len(token.content) for token in found if token.normalised]
        self._longest: Final = max(raw, default=0), max(normalised, default=0)

    @classmethod
    def of(cls, encoding: Encoding, allowed: frozenset[str]) -> Self | None:
        """Return where texts of an encoding can be cut; None for rank tables, and as for
        `of_pipeline`. Cached."""
        if encoding.pipeline is None:
            return None
        known = _KNOWN.setdefault(encoding, {})
        if cls not in known:
            known[cls] = lru_cache(_MAX_CACHED_SETS)(partial(cls.of_pipeline, encoding.pipeline))
        cuts: Self | None = known[cls](allowed)
        return cuts

    @classmethod
    def of_pipeline(cls, pipeline: Pipeline, allowed: frozenset[str]) -> Self | None:
        """Return where texts of a pipeline can be cut; None if the tokens of a start, or an end,
        may be others than those that shorter ones lead to."""
        rule = _rule_of_pipeline(pipeline, allowed, of_ends=cls.of_ends)
        if rule is None:
            return None
        pair, in_words = rule
        cuts = cls(pipeline, allowed, pair, in_words=in_words)
        return cuts if cuts.is_known else None

    def has(self, text: str, position: int) -> bool:
        """Whether a text can be cut at a position, which is not inside an added token."""
        return position == len(text) or (
            self._pair(text[position - 1], text[position])
            and not (self._in_words and _WITHIN_WORD.match(text, position - 1) is None)
            and self._hidden.across(text, position) is None
        )

    def first(self, text: str, position: int, *, is_complete: bool) -> int | None:
        """Return the first such position from `position` on, whatever follows the text unless it is
        complete; None if there is none."""
        while not self.has(text, position):
            position += 1
        if is_complete:
            return position
        raw, normalised = self._longest
        # An added token that starts before the position may not be complete.
        rest = text[position : position + 1 + raw + 4 * normalised]
        is_known = rest and len(rest) >= raw
        if is_known and normalised:
            is_known = len(normalise_text(rest, self._steps)) >= normalised
        return position if is_known else None


def _rule_of_pipeline(
    pipeline: Pipeline, allowed: frozenset[str], *, of_ends: bool
) -> tuple[Pair, bool] | None:
    """Return the rule of the normalisers, and whether cuts are valid within words only; None as for
    `ValidCuts.of_pipeline`."""
    found = [token for token in pipeline.added if not token.special or token.name in allowed]
    hides = found and any(token.normalised for token in pipeline.added if token not in found)
    if (
        not _counts(pipeline)
        or hides
        or any(token.left_strip or token.right_strip or token.single_word for token in found)
    ):
        return None
    steps = pipeline.pre_tokenizers
    words = [s for s in steps if isinstance(s, Split) and s.pattern in _OF_WORDS]
    if words and pipeline.normalisers not in ((), (UnicodeForm("NFC"),)):
        return None
    for at, step in enumerate(steps):
        if step in words:
            known = step == Split(step.pattern) and not any(map(_changes_words, steps[:at]))
        else:
            known = isinstance(step, ByteAlphabet) or is_local(step)
        if not known:
            return None
    rules: list[Pair] = []
    for at, normaliser in enumerate(pipeline.normalisers):
        rule = _rule(normaliser, pipeline.normalisers[:at], of_ends=of_ends)
        if rule is None:
            return None
        rules.append(rule)
    pair = lru_cache(KEPT)(lambda a, b: all(rule(a, b) for rule in rules))
    return pair, bool(words)


def _changes_words(step: PreTokenizer) -> bool:
    """Whether a step may change letters, or put an apostrophe before them."""
    match step:
        case Substitute(" ", character) | Prefix(character):
            return character == "'"
        case Split():
            return False
    return True


def _counts(pipeline: Pipeline) -> bool:
    """Whether the last part of each start of a piece follows that of a shorter one: every unit has
    its place and its own symbol, wherever it stands."""
    model = pipeline.model
    if model.prefix or model.suffix or _merges_stand_ins(model):
        return False
    # Without these a unit that is not a token is dropped, and those beside it meet.
    special = {token.content.encode() for token in pipeline.added if token.special}
    every = len(model.byte_tokens) == _BYTES or (
        model.units == "bytes"
        and all(byte in model.tokens and byte not in special for byte in _SINGLE)
    )
    return every or model.unknown is not None or isinstance(model.rule, Scores)


def local_steps(steps: tuple[Normaliser, ...]) -> list[Normaliser]:
    """Return steps without what they do at the ends of a text."""
    return [
        replace(step, tidy=False, pad="nowhere") if isinstance(step, Spacing) else step
        for step in steps
        if not isinstance(step, (Prepend, Strip))
    ]


def _rule(step: Normaliser, before: tuple[Normaliser, ...], *, of_ends: bool) -> Pair | None:
    """Return the rule of a step for the characters of a text that other steps come to first."""
    local = local_steps(before)

    def image(character: str) -> str:
        return normalise_text(character, local)

    match step:
        case Prepend() | Lowercase() | Strip(right=False):
            return _always
        case Replace(pattern, _) | Surround(pattern, _) if ONE_CHARACTER.fullmatch(pattern):
            return _always
        case Replace(pattern, _) if ONE_CHARACTER.fullmatch(pattern.removesuffix("+")):
            run = compiled(pattern)

            def between(a: str, b: str) -> bool:
                left, right = image(a)[-1:], image(b)[:1]
                return bool(left and right) and not (run.match(left) and run.match(right))

            return between
        case Strip() if of_ends:
            return _always
        case Strip():
            return lambda a, _b: bool(image(a)) and not _SPACE.search(image(a))
        case UnicodeForm():
            return lambda _a, b: bool(image(b)) and starts_cluster(image(b)[0])
        case CharsMap() if not before:
            # It maps clusters. In ASCII each is one character, except CR LF.
            return lambda a, b: (a + b).isascii() and a + b != "\r\n"
        case Spacing(tidy=tidy, pad=pad, mark=mark) if not before and (of_ends or pad != "after"):
            between_keys = _spacing_rule(step)
            single = replace(step, tidy=False, pad="nowhere")

            def apart(a: str, b: str) -> bool:
                if not between_keys(a, b):
                    return False
                return (
                    of_ends or not tidy or normalise_text(a, (single,))[-1:] not in ("", mark, " ")
                )

            return apart
    return None


def _always(_a: str, _b: str) -> bool:
    return True


def _merges_stand_ins(model: Model) -> bool:
    """Whether byte tokens or the unknown token may merge, so that a token covers text that it does
    not contain."""
    stand_ins = {*model.byte_tokens.values(), model.unknown} - {None}
    if isinstance(model.rule, Merges):
        return not stand_ins.isdisjoint(model.rule.lefts) or not stand_ins.isdisjoint(
            model.rule.rights
        )
    return isinstance(model.rule, Ranks) and bool(stand_ins)


def _spacing_rule(step: Spacing) -> Pair:
    """Return the rule that no key of a map and no kept string contains two characters."""
    keys = (
        []
        if not step.table
        else [key.decode(errors="replace") for key, _ in charsmap(step.table).items()]
    )
    within = {text[i : i + 2] for text in (*keys, *step.kept) for i in range(len(text) - 1)}
    return lambda a, b: a + b not in within
