r"""Split points of pipelines: positions where text can be split while it arrives.

A text is split between two characters a and b only if the result does not depend on the text before
a and after b. The text after the split is encoded with a before it, and the ids of a alone are
removed: so a space that is inserted at the start of a text is inserted only once. The split is safe
if all of these conditions hold:

- *Added tokens.* a is not white space, and not the last character of an added token: so no token
  ends at the split or strips white space across it. No added token contains ab: so no token, even a
  skipped one, extends across it. The same holds for the last character that a becomes and the first
  that b becomes, because tokens can be searched in normalised text.
- *Normalisers.* Prepend and Strip act at the ends of a stretch, and what a becomes before them is
  not white space. Lowercase and Replace of one character act on each character separately. For
  Unicode normalisation, what a and b have become before it are starters that do not compose with
  the text before them, and b not with the text after it: so both sides are normalised
  independently. SentencePiece's spacing only depends on whether a space comes before a space.
- *A published pattern*, if the pre-tokenizers end with one: the position is one of its split points
  (docs/streaming.md) in the text that it sees, after the substitutions of earlier steps. NFC leaves
  a and b unchanged if they stand alone; b may compose with the text after it, which keeps the
  classes of patterns. Or b is a space, but no line end, before which any character that is not
  white space ends a match, also a mark that may have composed.
- *Otherwise* every pre-tokenizer sees single characters or words, or changes single characters. Let
  x be the last character that a becomes, and y the first that b becomes. x is a token, so it is not
  an unknown character, which could be fused or dropped. No token contains xy, or x and the first
  character of the replacement of an unknown y. A merge across the split would produce a token that
  contains it, so there is none. No piece that is a token becomes it without merging: beside more
  text it would be others. Or y is white space where a step removes white space from all pieces.

A text is also split between two allowed special tokens that are *isolated*: without options, with
no white space at their ends, and such that no occurrence of an added token can overlap theirs. So
each occurrence is found in every text, and no other token extends across the split or strips white
space across it. The stretches of text on both sides are those of the whole text, and the character
that is put before the text after the split is a stretch of its own, whose ids are removed.

SentencePiece. Text can be streamed into a model unless its dummy prefix is a suffix, or it tidies
spaces and has user-defined symbols with spaces. A text is split between two characters *a* and *b*
if *a* is not a space; no key of the map and no symbol contains *ab*, so no rule extends across; and
no piece contains the last character of any result of *a* (itself, unless it is a key; or the value
of a key that ends with it) before the first character of any result of *b*. None of these may be
empty, a space on *a*'s side, or unknown if adjacent unknown characters are one token.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Final

import regex

from bytepair_engine.pipeline.charsmap import charsmap
from bytepair_engine.pipeline.definition import (
    AddedToken,
    Lowercase,
    Pipeline,
    Prefix,
    Prepend,
    Replace,
    Scores,
    Spacing,
    Split,
    Strip,
    Substitute,
    UnicodeForm,
)
from bytepair_engine.pipeline.normalising import (
    composes_forwards,
    normalise_text,
    starts_cluster,
)
from bytepair_engine.streaming.split_points import SplitPoints, split_points_of

#: Patterns whose splits depend only on the characters on both sides: single characters, and words
#: and other characters.
_WORDS: Final = r"\w+|[^\w\s]+"
ONE_CHARACTER: Final = regex.compile(
    r"(?s)(?:\\?.|\\s|(?:\(\?!\[[^\[\]]*\]\))?\[(?:[^\[\]\\]|\\.)*\])"
)

#: Splits that leave no white space in any piece.
WITHOUT_SPACE: Final = (Split(r"\s", "removed"), Split(_WORDS, "removed", inverted=True))

#: Unlike for `str.isspace`, U+001C to U+001F are not white space.
_SPACE: Final = regex.compile(r"\s")
_BLANK: Final = regex.compile(r"[^\S\r\n]")

_BYTES: Final = 256

#: Number of characters and of pairs cached for each pipeline; bounded because texts choose them.
_MAX_CACHED: Final = 4096

#: Whether a text can be split between two characters.
Pair = Callable[[str, str], bool]


def pipeline_split_points(pipeline: Pipeline) -> SplitPoints | None:
    """Return the split points of a pipeline; None if a step has unknown ones."""
    named = [
        step
        for step in pipeline.pre_tokenizers
        if isinstance(step, Split) and step == Split(step.pattern) and split_points_of(step.pattern)
    ]
    others = [step for step in pipeline.pre_tokenizers if step not in named]
    joined = _joined_pattern(pipeline)
    if joined is not None and split_points_of(joined) is not None:
        pattern, others = joined, []
    elif len(named) == 1 and pipeline.pre_tokenizers[-1] in named:
        pattern = named[0].pattern
    else:
        pattern = None
        others = list(pipeline.pre_tokenizers)
    if not all(is_local(step) for step in others):
        return None
    pair = _pair_rule(pipeline) if pattern is None else _pattern_pair_rule(pipeline)
    if pair is None:
        return None
    published = None if pattern is None else split_points_of(pattern)
    substitutes = [step for step in others if isinstance(step, Substitute)]
    last = _last(pair, published, substitutes)
    return SplitPoints(last, _nothing_settled, _isolated(pipeline.added))


def _isolated(added: Sequence[AddedToken]) -> frozenset[str]:
    """Return the isolated special tokens that are found by their characters: no name starts with
    a character inside another one, and none is the start of another one."""
    names = {text for token in added for text in (token.content, token.name) if text}
    firsts = {name[0] for name in names}
    inside = {character for name in names for character in name[1:]}
    nested: set[str] = set()
    start = ""
    for name in sorted(names):
        if start and name.startswith(start):
            nested |= {start, name}
        else:
            start = name
    return frozenset(
        token.name
        for token in added
        if token.name
        and token == AddedToken(content=token.name, name=token.name, id=token.id, special=True)
        and token.name == token.name.strip()
        and token.name not in nested
        and token.name[0] not in inside
        and firsts.isdisjoint(token.name[1:])
    )


def _joined_pattern(pipeline: Pipeline) -> str | None:
    steps = [step for step in pipeline.pre_tokenizers if isinstance(step, Split)]
    plain = len(steps) == len(pipeline.pre_tokenizers) and all(s == Split(s.pattern) for s in steps)
    return "\n".join(step.pattern for step in steps) if plain else None


def is_local(step: object) -> bool:
    """Whether a pre-tokenizer splits between two characters by these two alone, or not at all."""
    if isinstance(step, Split):
        return step.pattern == _WORDS or ONE_CHARACTER.fullmatch(step.pattern) is not None
    return isinstance(step, (Prefix, Substitute))


def _last(
    pair: Pair, published: SplitPoints | None, substitutes: Sequence[Substitute]
) -> Callable[[str, int], int]:
    """Return a function that finds the last split point: one that both `pair` and the pattern
    allow, which sees the text after `substitutes`."""

    def last(text: str, end: int) -> int:
        end = min(end, len(text))
        seen = text if published is None else _substituted(text, substitutes)
        while end > 1:
            at = end - 1 if published is None else published.local(seen, end)
            if at < 1 or pair(text[at - 1], text[at]):
                return max(at, 0)
            end = at
        return 0

    return last


def _substituted(text: str, substitutes: Iterable[Substitute]) -> str:
    for step in substitutes:
        text = text.replace(step.old, step.new)
    return text


def _nothing_settled(_text: str) -> int:
    return 0


def _added_rule(pipeline: Pipeline) -> Pair:
    """Return the rule of added tokens, for the original text and for normalised text: none extends
    across, ends at, or strips white space at the position."""
    last = {token.content[-1] for token in pipeline.added} | {
        token.name[-1:] for token in pipeline.added
    }
    across = _bigrams(token.content for token in pipeline.added)
    across |= _bigrams(token.name for token in pipeline.added)
    return lambda a, b: not a.isspace() and a not in last and a + b not in across


def _normalised_ends(pipeline: Pipeline, a: str, b: str) -> tuple[str, str] | None:
    """Return the last character that a becomes and the first that b becomes, whatever stands before
    and after them; None if that is not certain, or if there is none."""
    for step in pipeline.normalisers:
        match step:
            case UnicodeForm() if not (
                starts_cluster(a) and starts_cluster(b) and b not in composes_forwards()
            ):
                return None
            case Strip() if a.isspace():
                return None
            case Spacing():
                b = b.replace(" ", step.mark)
            case Lowercase() | Replace() | UnicodeForm():
                a, b = normalise_text(a, [step])[-1:], normalise_text(b, [step])[:1]
        if not a or not b:
            return None
    return a, b


def _pattern_pair_rule(pipeline: Pipeline) -> Pair | None:
    """Return the rule for a published pattern: its character classes are the same before and after
    composition."""
    added = _added_rule(pipeline)
    if not pipeline.normalisers:
        return added
    if pipeline.normalisers != (UnicodeForm("NFC"),):
        return None
    normalised = any(token.normalised for token in pipeline.added)
    # Other steps depend on what a has become.
    alone = all(isinstance(step, Prefix) for step in pipeline.pre_tokenizers[:-1])

    @lru_cache(_MAX_CACHED)
    def pair(a: str, b: str) -> bool:
        if not added(a, b) or not starts_cluster(b):
            return False
        if normalised:
            ends = _normalised_ends(pipeline, a, b)
            if ends is None or not added(*ends):
                return False
        same = starts_cluster(a) and normalise_text(a + b, pipeline.normalisers) == a + b
        return same or (alone and _BLANK.match(b) is not None)

    return pair


def _pair_rule(pipeline: Pipeline) -> Pair | None:
    """Return the rule without a published pattern: no token contains the results of both
    characters."""
    model = pipeline.model
    known = all(map(_is_known, pipeline.normalisers))
    if model.units != "characters" or model.whole_first or not known:
        return None
    marks = {s.mark for s in pipeline.normalisers if isinstance(s, Spacing)}
    across = _bigrams(token.decode() for token in model.tokens)
    across |= _bigrams(token.content for token in pipeline.added)
    # The tokens of bytes and of unknown characters start with these.
    others = [i for i in (*model.byte_tokens.values(), model.unknown) if i is not None]
    spelling = {i: token.decode() for token, i in model.tokens.items()}
    by_score = isinstance(model.rule, Scores)  # then these tokens appear only after merging
    starts = set() if by_score else {spelling[i][0] for i in others}
    mapped = _mapped_rule(pipeline)
    added = _added_rule(pipeline)

    @lru_cache(_MAX_CACHED)
    def pair(a: str, b: str) -> bool:
        ends = _normalised_ends(pipeline, a, b)
        if ends is None or not added(a, b) or not added(*ends) or a in marks:
            return False
        if mapped is not None:
            return mapped(a, b, across)
        x, y = ends
        for step in pipeline.pre_tokenizers:
            if step in WITHOUT_SPACE and _SPACE.match(y):
                return True  # no piece contains white space
            if isinstance(step, Substitute):
                x, y = _substituted(x, [step]), _substituted(y, [step])
        if model.prefix or model.suffix or x.encode() not in model.tokens:
            return False
        known = y.encode() in model.tokens
        if not known and model.unknown is None and len(model.byte_tokens) < _BYTES:
            return False  # b may be dropped, and the text on both sides of it joined
        after = {y} if known else {y, *starts}
        return not any(x + c in across for c in after)

    return pair


def _mapped_rule(pipeline: Pipeline) -> Callable[[str, str, set[str]], bool] | None:
    """Return the rule of a SentencePiece map: no key extends across, and no token contains the
    results of both sides. None without a map."""
    step = pipeline.normalisers[0] if len(pipeline.normalisers) == 1 else None
    if not isinstance(step, Spacing) or not step.table:
        return None
    model = pipeline.model
    whole = len(model.byte_tokens) == _BYTES
    items = [(key.decode(errors="replace"), value) for key, value in charsmap(step.table).items()]
    keys = dict(items)
    within = _bigrams([*keys, *step.kept])
    before: defaultdict[str, set[str]] = defaultdict(set)
    after: defaultdict[str, set[str]] = defaultdict(set)
    for key, value in items:
        before[key[-1]].add(value[-1:])
        after[key[0]].add(value[:1].replace(" ", step.mark))

    def rule(a: str, b: str, across: set[str]) -> bool:
        ends = before[a] | (set() if a in keys else {a})
        starts = after[b] | (set() if b in keys else {step.mark if b == " " else b})
        if a + b in within or ends & {"", " ", step.mark} or "" in starts:
            return False
        if not whole and not all(start.encode() in model.tokens for start in starts):
            return False  # two unknown characters may become one token
        return not any(end + start in across for end in ends for start in starts)

    return rule


def _is_known(step: object) -> bool:
    match step:
        case Replace():
            return ONE_CHARACTER.fullmatch(step.pattern) is not None
        case Spacing():
            # Kept strings are not tidied.
            spaced = step.tidy and any(" " in string for string in step.kept)
            return step.pad != "after" and not spaced
        case Lowercase() | Prepend() | Strip() | UnicodeForm():
            return True
    return False


def _bigrams(texts: Iterable[str]) -> set[str]:
    return {text[i : i + 2] for text in texts for i in range(len(text) - 1)}
