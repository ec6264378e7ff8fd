"""Apply normalisers to a stretch of text."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Final, Literal

import regex

from bytepair_engine.pipeline.aligned import Aligned
from bytepair_engine.pipeline.charsmap import CharsMapTable, charsmap
from bytepair_engine.pipeline.definition import (
    CharsMap,
    Lowercase,
    Normaliser,
    Prepend,
    Replace,
    Spacing,
    Strip,
    Surround,
    UnicodeForm,
)
from bytepair_engine.pipeline.spacing import space
from bytepair_engine.pipeline.splitting import compiled
from bytepair_engine.pipeline.unicode_tables import LOWER_CASE, YOUNGER

#: A character that normalisation by Unicode 9 leaves alone and nothing combines with.
_YOUNGER: Final = regex.compile(f"[{YOUNGER}]")
_WHITE_SPACE: Final = regex.compile(r"\s*")
_WHITE_SPACE_AT_END: Final = regex.compile(r"(?r)\s*$")
_CLUSTER: Final = regex.compile(r"\X")

FormName = Literal["NFC", "NFD", "NFKC", "NFKD"]

#: Maximum length of a cluster, in characters, whose result is aligned by character. All of a longer
#: one's result has the cluster's start.
_MAX_ALIGNED_CLUSTER: Final = 32

#: Length in bytes from which a grapheme cluster is mapped character by character.
_LONG_CLUSTER: Final = 6


def normalise(stretch: Aligned, steps: Iterable[Normaliser]) -> Aligned:
    """Apply the steps of a pipeline to one stretch of text."""
    for step in steps:
        stretch = _apply(stretch, step)
    return stretch


def normalise_text(text: str, steps: Iterable[Normaliser]) -> str:
    """Apply the steps of a pipeline to text, without tracking its origin."""
    return normalise(Aligned.original(text), steps).text


def _apply(stretch: Aligned, step: Normaliser) -> Aligned:
    match step:
        case UnicodeForm():
            return Aligned.joined(_unicode_form(stretch, step))
        case Lowercase():
            return Aligned.joined((lower(c), start) for c, start in stretch.pairs())
        case Prepend():
            if not stretch.text:
                return stretch
            return Aligned(
                step.text + stretch.text, stretch.starts[:1] * len(step.text) + stretch.starts
            )
        case Replace():
            return Aligned.joined(_replaced(stretch, step))
        case Surround():
            return Aligned.joined(_surrounded(stretch, step))
        case Strip():
            return _stripped(stretch, step)
        case CharsMap():
            mapped = Aligned.joined(_mapped(stretch, charsmap(step.table)))
            # As in `tokenizers`: characters that the map drops at the start move its place.
            starts = (*stretch.starts[:1], *mapped.starts[1:])
            return Aligned(mapped.text, starts[: len(mapped.text)])
        case Spacing():
            return space(stretch, step)


def lower(character: str) -> str:
    """Return the full lower-case mapping of a character, independent of Python's version."""
    return LOWER_CASE.get(character) or character.lower()


def unicode_form(text: str, form: FormName) -> str:
    """Return `text` in a normalisation form, by the tables of Unicode 9."""
    parts, end = [], 0
    for match in _YOUNGER.finditer(text):
        parts += [unicodedata.normalize(form, text[end : match.start()]), match.group()]
        end = match.end()
    return "".join([*parts, unicodedata.normalize(form, text[end:])])


@cache
def composes_backwards() -> frozenset[str]:
    """Return the characters that may compose with the character before them in some form,
    including those whose decomposition starts with one."""
    seconds = {*map(chr, range(0x1161, 0x1176)), *map(chr, range(0x11A8, 0x11C3))}
    decompose = []
    for code in range(0x20000):
        parts = unicodedata.decomposition(chr(code)).split()
        if len(parts) == 2 and not parts[0].startswith("<"):
            seconds.add(chr(int(parts[1], 16)))
        if parts:
            decompose.append(chr(code))
    firsts = ((c, unicodedata.normalize("NFKD", c)[0]) for c in decompose)
    return frozenset(
        seconds | {c for c, first in firsts if first in seconds or unicodedata.combining(first)}
    )


@cache
def composes_forwards() -> frozenset[str]:
    """Return the characters that may compose with the character after them in some form."""
    firsts = {*map(chr, range(0x1100, 0x1113)), *map(chr, range(0xAC00, 0xD7A4))}
    for code in range(0x20000):
        parts = unicodedata.decomposition(chr(code)).split()
        if len(parts) == 2 and not parts[0].startswith("<"):
            firsts.add(chr(int(parts[0], 16)))
    lasts = ((chr(c), unicodedata.normalize("NFKD", chr(c))[-1]) for c in range(0x20000))
    return frozenset(firsts | {c for c, last in lasts if last in firsts or last != c})


def starts_cluster(character: str) -> bool:
    """Whether the text before `character` and the text from it on normalise independently in every
    form: it is a starter that does not compose with the text before it."""
    return (
        character < "\u0300"
        or not (unicodedata.combining(character) or character in composes_backwards())
        or _YOUNGER.match(character) is not None
    )


def _unicode_form(stretch: Aligned, step: UnicodeForm) -> Iterator[tuple[str, int]]:
    """Normalise each cluster separately, and align it: if a cluster can be split into parts that
    normalise independently, the result of each part has that part's start."""
    text, start = stretch.text, 0
    if text.isascii():
        yield from stretch.pairs()
        return
    for end in range(1, len(text) + 1):
        if end == len(text) or starts_cluster(text[end]):
            cluster, starts = text[start:end], stretch.starts[start:end]
            normal = unicode_form(cluster, step.form)
            done = 0
            for i in range(1, len(cluster) if len(cluster) <= _MAX_ALIGNED_CLUSTER else 1):
                before = unicode_form(cluster[:i], step.form)
                if before + unicode_form(cluster[i:], step.form) == normal:
                    yield normal[done : len(before)], starts[0]
                    starts, done = stretch.starts[start + i : end], len(before)
            yield normal[done:], starts[0]
            start = end


def _replaced(stretch: Aligned, step: Replace) -> Iterator[tuple[str, int]]:
    end = 0
    for match in compiled(step.pattern).finditer(stretch.text):
        yield from stretch.part(end, match.start()).pairs()
        end = match.end()
        yield step.content, stretch.starts[end - 1] if end else (stretch.starts or (0,))[0]
    yield from stretch.part(end, len(stretch.text)).pairs()


def _surrounded(stretch: Aligned, step: Surround) -> Iterator[tuple[str, int]]:
    end = 0
    for match in compiled(step.pattern).finditer(stretch.text):
        start = match.start()
        yield from stretch.part(end, start).pairs()
        end = match.end()
        yield step.content, stretch.starts[start]
        yield from stretch.part(start, end).pairs()
        yield step.content, stretch.starts[start]
    yield from stretch.part(end, len(stretch.text)).pairs()


def _stripped(stretch: Aligned, step: Strip) -> Aligned:
    text = stretch.text
    start, end = 0, len(text)
    if step.left and (match := _WHITE_SPACE.match(text)):
        start = match.end()
    if step.right and (match := _WHITE_SPACE_AT_END.search(text)):
        end = max(start, match.start())
    return stretch.part(start, end)


def _mapped(stretch: Aligned, table: CharsMapTable) -> Iterator[tuple[str, int]]:
    for cluster in _CLUSTER.finditer(stretch.text):
        start, end = cluster.span()
        whole = None
        if len(cluster.group().encode()) < _LONG_CLUSTER:
            whole = _shortest(table, cluster.group())
        if whole is None:
            for character, origin in stretch.part(start, end).pairs():
                value = _shortest(table, character)
                yield character if value is None else value, origin
        else:
            # Aligned one to one; any further characters have the start of the cluster's last one.
            for i, character in enumerate(whole):
                yield character, stretch.starts[min(start + i, end - 1)]


def _shortest(table: CharsMapTable, text: str) -> str | None:
    """Return the value of the shortest key that `text` starts with; None if there is none."""
    return next((value for _, value in table.prefixes(text.encode(), 0)), None)
