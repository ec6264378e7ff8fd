"""The fewest tokens that the parts of a text can have, whatever they are merged to.

A token spells what it stands for. So the characters of a text of which it is certain that they are
in its pieces have to be *covered*: each of their units (bytes or characters, as the model has them)
is in some token. A token covers neighbouring units only if it holds each two of them next to each
other, and no more of them than the longest token that holds these two. With fewer tokens than it
takes to cover a text's first units so, each time as many as possible, no text has them all: that
bounds every text that begins with them.

It is certain of a character if no step of a pipeline drops it, or makes something of it that
depends on what stands beside it. All others may cost nothing, and may stand inside of any token.
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

#: Pairs of units are told apart by a hash of so many bits. Two that share one are taken to be in
#: each other's tokens: then less is known, and nothing wrong.
_BITS: Final = 18
_MASK: Final = 2**_BITS - 1

#: No token is taken to be longer than that.
_LONGEST: Final = 2**16 - 1

#: Characters that are remembered for each encoding: texts choose which.
_KEPT: Final = 4096

_BYTES: Final = 256

#: A class, and what makes it matter what stands around a match. A pattern that has none of the
#: second outside of the first matches a string wherever that stands.
_CLASS: Final = regex.compile(r"\[(?:[^\[\]\\]|\\.)*\]")
_LOOKS_AROUND: Final = regex.compile(r"\(\?(?!:)|[\^$]|\\[bBAZzGKX0-9]")

#: What a character becomes of which nothing is known.
_ANYTHING: Final = (None,)

Unit = int
#: What a step makes of a character by itself; None where that is not known.
Change = Callable[[str], str | None]
#: What a character becomes: characters, and None where there may be anything, or nothing.
Image = Callable[[str], tuple[str | None, ...]]
#: Whether what two neighbours become does not depend on each other.
Apart = Callable[[str, str], bool]


class Cover:
    """How many units of a text a token can cover."""

    def __init__(
        self,
        tokens: Iterable[bytes],
        units: Literal["bytes", "characters"],
        image: Image,
        apart: Apart,
    ) -> None:
        """Prepare.

        Args:
            tokens: All that can come of a text, as what is spelled.
            units: What tokens consist of.
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
        """The first place known at and after which every part of a text from `start` on has more
        than `budget` tokens; None if there is none."""
        return self._place(text, start, len(text), 1, budget)

    def start(self, text: str, start: int, end: int, budget: int) -> int | None:
        """The last place known at and before which every part of a text, from `start` on, up to
        `end` has more than `budget` tokens; None if there is none."""
        return self._place(text, end - 1, start - 1, -1, budget)

    def _place(self, text: str, at: int, stop: int, step: int, budget: int) -> int | None:
        """Cover units one after the other, the first that one token more would need ends it."""
        count = length = 0
        most = self._longest
        before: Unit | None = None  # the unit beside the next one, if that is certain
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
        """The units that a character of a text becomes, wherever the text is cut."""
        if at > 0 and not self._apart(text[at - 1], text[at]):
            return _ANYTHING
        if at + 1 < len(text) and not self._apart(text[at], text[at + 1]):
            return _ANYTHING
        return self._of_character(text[at])


def _pair(left: Unit, right: Unit) -> int:
    # Different for each two of ASCII, and for each two bytes.
    return (left << 8 ^ left >> 7 ^ right ^ right >> 8 << 3) & _MASK


def _bytes_of(token: bytes) -> Sequence[Unit]:
    return token


def _characters_of(token: bytes) -> Sequence[Unit]:
    return [ord(character) for character in token.decode(errors="replace")]


@lru_cache(16)
def cover(encoding: Encoding) -> Cover | None:
    """What the tokens of an encoding can cover; None where that is not known."""
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
    if _merges_stand_ins(model):
        return None
    # White space beside these is a part of them: they are found before all steps, and here.
    strips = any(token.left_strip or token.right_strip for token in pipeline.added)
    found = _without_space if strips else _itself
    changes: list[tuple[object, Change | None]] = [
        (None, found),
        *((step, _change(step)) for step in pipeline.normalisers),
        (None, found),
    ]
    written = False
    for step in pipeline.pre_tokenizers:
        if written:  # it sees how bytes are written
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

    # Added tokens are found before all steps, or between two.
    added = {token.content for token in pipeline.added}
    spelled = set(added)
    for _, change in known:
        spelled = added | {"".join(change(c) or "" for c in text) for text in spelled}
    tokens = [*model.tokens, *(text.encode() for text in spelled)]
    return Cover(tokens, model.units, image, _apart_rule(pipeline, image))


def _merges_stand_ins(model: Model) -> bool:
    """Whether what stands for text without spelling it may merge, so that a token covers what it
    does not spell."""
    stand_ins = {*model.byte_tokens.values(), model.unknown} - {None}
    if isinstance(model.rule, Merges):
        return not stand_ins.isdisjoint(model.rule.lefts) or not stand_ins.isdisjoint(
            model.rule.rights
        )
    return isinstance(model.rule, Ranks) and bool(stand_ins)


def _stays(model: Model) -> Callable[[str], bool]:
    """Whether a character of a piece is sure to be in tokens of its own units, and no part of a
    token that is unknown together with others."""
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
    """What a step makes of a character by itself; None where it may change anything."""
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
    """What a split that removes some of a text leaves of it."""
    if step in WITHOUT_SPACE:
        return lambda c: "" if c.isspace() else c
    pattern = compiled(step.pattern)
    if not step.inverted:
        one = ONE_CHARACTER.fullmatch(step.pattern) is not None
        return (lambda c: "" if pattern.fullmatch(c) else c) if one else None
    if pattern.match("") or _LOOKS_AROUND.search(_CLASS.sub("", step.pattern)):
        return None
    # Where what matches by itself is in no match, it is one.
    return lambda c: c if pattern.fullmatch(c) else None


def _removes(step: object) -> bool:
    return isinstance(step, Split) and step.behaviour == "removed"


def _apart_rule(pipeline: Pipeline, image: Image) -> Apart:
    """By the normalisers that look at several characters."""
    rules: list[Apart] = []
    for step in pipeline.normalisers:
        if isinstance(step, UnicodeForm):
            rules.append(lambda a, b: _opens(image, a) and _opens(image, b))
        elif isinstance(step, CharsMap):
            # Clusters are mapped: of ASCII, all but CR LF are one character each.
            rules.append(lambda a, b: (a + b).isascii() and a + b != "\r\n")
        elif isinstance(step, Spacing) and (step.table or step.kept):
            rules.append(_spacing_rule(step))
    return lambda a, b: all(rule(a, b) for rule in rules)


def _opens(image: Image, character: str) -> bool:
    """Whether a character, and what it becomes, composes with nothing before it. Where a form is
    applied to something that may, nothing is known of the character."""
    return starts_cluster(character) and image(character) not in ((), _ANYTHING)


def _spacing_rule(step: Spacing) -> Apart:
    keys = [] if not step.table else [key.decode() for key, _ in charsmap(step.table).items()]
    within = {text[i : i + 2] for text in (*keys, *step.kept) for i in range(len(text) - 1)}
    return lambda a, b: a + b not in within
