"""A lower bound of the number of tokens of a text.

Each unit of a text (a byte or a character, by the model) must be in some token that contains it. A
token can cover adjacent units only if each two of them are adjacent in some token, and at most as
many as the longest token with these two has. Covering the units in order, with each token as many
as that allows, gives a lower bound. It holds for every text that starts with these units.

This applies to characters that the pipeline keeps and maps independently of their neighbours. All
other characters are taken to need no token, and to be possible inside any token.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Final, Literal

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
    PreTokenizer,
    Ranks,
    Replace,
    Spacing,
    Split,
    Strip,
    Substitute,
    Surround,
    UnicodeForm,
)
from bytepair_engine.pipeline.normalising import normalise_text, starts_cluster
from bytepair_engine.pipeline.splitting import compiled
from bytepair_engine.streaming.pipeline_split_points import ONE_CHARACTER, WITHOUT_SPACE

#: Bits of the hash of a pair of units. A collision makes the bound lower, never wrong.
_BITS: Final = 18
_MASK: Final = 2**_BITS - 1

#: Maximum length of a token that is distinguished.
_LONGEST: Final = 2**16 - 1

#: Maximum number of characters that are cached for each encoding.
_KEPT: Final = 4096

_BYTES: Final = 256

#: A character class, and the constructs that look at the text around a match. A pattern without
#: these, outside of classes, matches a string regardless of its context.
_CLASS: Final = regex.compile(r"\[(?:[^\[\]\\]|\\.)*\]")
_LOOKS_AROUND: Final = regex.compile(r"\(\?(?!:)|[\^$]|\\[bBAZzGKX0-9]")

#: The image of a character of which nothing is known.
_ANYTHING: Final = (None,)

Unit = int
#: Maps a character alone, as a step does; None if the result is unknown.
Change = Callable[[str], str | None]
#: Maps a character to characters, and None for unknown text, which may be empty.
Image = Callable[[str], tuple[str | None, ...]]
#: Whether two adjacent characters are mapped independently of each other.
Apart = Callable[[str, str], bool]


class Cover:
    """How many units of a text one token can cover."""

    def __init__(
        self,
        tokens: Iterable[bytes],
        units: Literal["bytes", "characters"],
        image: Image,
        apart: Apart,
    ) -> None:
        """Index the tokens.

        Args:
            tokens: The content of every token that a text can have.
            units: The units of tokens.
            image: See `Image`.
            apart: See `Apart`.
        """
        self._units_of: Final = _bytes_of if units == "bytes" else _characters_of
        self._apart: Final = apart

        @lru_cache(_KEPT)
        def of_character(character: str) -> tuple[Unit | None, ...]:
            units: list[Unit | None] = []
            for part in image(character):
                units += [None] if part is None else self._units_of(part.encode())
            return tuple(units)

        self._of_character: Final = of_character
        most = array("H", bytes(2 << _BITS))
        longest = 1
        for token in tokens:
            spelled = self._units_of(token)
            length = min(len(spelled), _LONGEST)
            longest = max(longest, length)
            before = -1
            for unit in spelled:
                pair = _pair(before, unit)
                if before >= 0 and most[pair] < length:
                    most[pair] = length
                before = unit
        self._most: Final = most
        self._longest: Final = longest

    def end(self, text: str, start: int, budget: int) -> int | None:
        """Return a position such that the text from `start` to it, or to any later position, has
        more than `budget` tokens; None if there is none."""
        return self._place(text, start, len(text), 1, budget)

    def start(self, text: str, start: int, end: int, budget: int) -> int | None:
        """Return a position after `start` such that the text from it, or from any earlier position,
        to `end` has more than `budget` tokens; None if there is none."""
        return self._place(text, end - 1, start - 1, -1, budget)

    def _place(self, text: str, at: int, stop: int, step: int, budget: int) -> int | None:
        """Cover units in order, until one needs more than `budget` tokens."""
        count = length = 0
        most = self._longest
        before: Unit | None = None  # the previous unit, if it is certain
        while at != stop:
            for unit in self._certain(text, at)[::step]:
                if unit is None:
                    before = None
                    continue
                pair = self._longest
                if before is not None:
                    pair = self._most[_pair(before, unit) if step > 0 else _pair(unit, before)]
                most = min(most, pair)
                if count == 0 or length >= most:
                    count, length, most = count + 1, 0, self._longest
                    if count > budget:
                        return at + 1 if step > 0 else at
                length += 1
                before = unit
            at += step
        return None

    def _certain(self, text: str, at: int) -> tuple[Unit | None, ...]:
        """Return the units of a character, wherever the text is cut."""
        if at > 0 and not self._apart(text[at - 1], text[at]):
            return _ANYTHING
        if at + 1 < len(text) and not self._apart(text[at], text[at + 1]):
            return _ANYTHING
        return self._of_character(text[at])


def _pair(left: Unit, right: Unit) -> int:
    # Without collisions for two ASCII characters, and for two bytes.
    return (left << 8 ^ left >> 7 ^ right ^ right >> 8 << 3) & _MASK


def _bytes_of(token: bytes) -> Sequence[Unit]:
    return token


def _characters_of(token: bytes) -> Sequence[Unit]:
    return [ord(character) for character in token.decode(errors="replace")]


@lru_cache(16)
def cover(encoding: Encoding) -> Cover | None:
    """Return what the tokens of an encoding can cover; None if it is unknown."""
    names = [name.encode() for name in encoding.special_tokens]
    if encoding.pipeline is not None:
        return _of_pipeline(encoding.pipeline)
    return Cover([*encoding.token_byte_values(), *names], "bytes", _one, _always)


def _one(character: str) -> tuple[str]:
    return (character,)


def _itself(character: str) -> str:
    return character


def _without_space(character: str) -> str | None:
    return None if character.isspace() else character


def _always(_left: str, _right: str) -> bool:
    return True


def _of_pipeline(pipeline: Pipeline) -> Cover | None:
    model = pipeline.model
    if merges_stand_ins(model):
        return None
    # Added tokens may take adjacent white space, before all steps and after the normalisers.
    strips = any(token.left_strip or token.right_strip for token in pipeline.added)
    found = _without_space if strips else _itself
    changes: list[tuple[object, Change | None]] = [
        (None, found),
        *((step, _change(step)) for step in pipeline.normalisers),
        (None, found),
    ]
    written = False
    for step in pipeline.pre_tokenizers:
        if written:  # this step sees bytes written as characters
            changes.append((step, None if _removes(step) else _itself))
        elif isinstance(step, ByteAlphabet):
            written = True
        else:
            changes.append((step, _change(step)))
    known = [(step, change) for step, change in changes if change is not None]
    if len(known) < len(changes):
        return None
    stays = _stays(model)

    @lru_cache(_KEPT)
    def image(character: str) -> tuple[str | None, ...]:
        parts: list[str | None] = [character]
        for step, change in known:
            if isinstance(step, UnicodeForm) and not all(c and starts_cluster(c) for c in parts):
                return _ANYTHING
            given = [None if c is None else change(c) for c in parts]
            parts = []
            for text in given:
                parts += [None] if text is None else text
        return tuple(c if c is not None and stays(c) else None for c in parts)

    # Added tokens are matched before or between the steps.
    added = {token.content for token in pipeline.added}
    spelled = set(added)
    for _, change in known:
        spelled = added | {"".join(change(c) or "" for c in text) for text in spelled}
    tokens = [*model.tokens, *(text.encode() for text in spelled)]
    return Cover(tokens, model.units, image, _apart_rule(pipeline, image))


def merges_stand_ins(model: Model) -> bool:
    """Whether byte tokens or the unknown token may merge, so that a token covers text that it does
    not contain."""
    stand_ins = {*model.byte_tokens.values(), model.unknown} - {None}
    if isinstance(model.rule, Merges):
        return not stand_ins.isdisjoint(model.rule.lefts) or not stand_ins.isdisjoint(
            model.rule.rights
        )
    return isinstance(model.rule, Ranks) and bool(stand_ins)


def _stays(model: Model) -> Callable[[str], bool]:
    """Return whether a character is certain to be in tokens that contain it, rather than in an
    unknown token together with others."""
    if model.unknown is not None and not model.fuse_unknown:
        return _always_one
    if len(model.byte_tokens) == _BYTES:
        return _always_one
    prefix, suffix = model.prefix.encode(), model.suffix.encode()
    befores, afters = {b"", prefix}, {b"", suffix}

    def stays(character: str) -> bool:
        data = character.encode()
        units = [data] if model.units == "characters" else [bytes((byte,)) for byte in data]
        return all(
            before + unit + after in model.tokens
            for unit in units
            for before in befores
            for after in afters
        )

    return stays


def _always_one(_character: str) -> bool:
    return True


def _change(step: Normaliser | PreTokenizer) -> Change | None:
    """Return how a step maps a character alone; None if it may change any text."""
    match step:
        case Strip():
            return _without_space
        case Spacing(tidy=tidy, mark=mark):
            single = Spacing(step.table, (), False, "nowhere", mark)

            def spaced(character: str) -> str | None:
                text = normalise_text(character, (single,))
                return None if tidy and (mark in text or " " in text) else text

            return spaced
        case Replace(pattern, _) | Surround(pattern, _) if ONE_CHARACTER.fullmatch(pattern):
            return lambda c: normalise_text(c, (step,))
        case Replace(pattern, _) if ONE_CHARACTER.fullmatch(pattern.removesuffix("+")):
            several = compiled(pattern)
            return lambda c: None if several.fullmatch(c) else c
        case Replace() | Surround():
            return None
        case UnicodeForm() | Lowercase() | CharsMap():
            return lambda c: normalise_text(c, (step,))
        case Substitute(old, new):
            return lambda c: c.replace(old, new)
        case Split(behaviour="removed"):
            return _kept_by(step)
    return _itself


def _kept_by(step: Split) -> Change | None:
    """Return what a split that removes text keeps of a character."""
    if step in WITHOUT_SPACE:
        return lambda c: "" if c.isspace() else c
    pattern = compiled(step.pattern)
    if not step.inverted:
        one = ONE_CHARACTER.fullmatch(step.pattern) is not None
        return (lambda c: "" if pattern.fullmatch(c) else c) if one else None
    if pattern.match("") or _LOOKS_AROUND.search(_CLASS.sub("", step.pattern)):
        return None
    # A character that matches alone is always part of a match, and kept.
    return lambda c: c if pattern.fullmatch(c) else None


def _removes(step: object) -> bool:
    return isinstance(step, Split) and step.behaviour == "removed"


def _apart_rule(pipeline: Pipeline, image: Image) -> Apart:
    """Combine the rules of the normalisers that map several characters together."""
    rules: list[Apart] = []
    for step in pipeline.normalisers:
        if isinstance(step, UnicodeForm):
            rules.append(lambda a, b: _opens(image, a) and _opens(image, b))
        elif isinstance(step, CharsMap):
            # It maps clusters. In ASCII each is one character, except CR LF.
            rules.append(lambda a, b: (a + b).isascii() and a + b != "\r\n")
        elif isinstance(step, Spacing) and (step.table or step.kept):
            rules.append(spacing_rule(step))
    return lambda a, b: all(rule(a, b) for rule in rules)


def _opens(image: Image, character: str) -> bool:
    """Whether neither a character nor its image composes with the text before it."""
    return starts_cluster(character) and image(character) not in ((), _ANYTHING)


def spacing_rule(step: Spacing) -> Apart:
    """Return the rule that no key of a map and no kept string contains two characters."""
    keys = (
        []
        if not step.table
        else [key.decode(errors="replace") for key, _ in charsmap(step.table).items()]
    )
    within = {text[i : i + 2] for text in (*keys, *step.kept) for i in range(len(text) - 1)}
    return lambda a, b: a + b not in within
