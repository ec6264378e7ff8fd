"""Apply pre-tokenizers to a piece."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

import regex

from bytepair_engine.pipeline.aligned import Aligned
from bytepair_engine.pipeline.byte_alphabet import write_bytes
from bytepair_engine.pipeline.definition import (
    Behaviour,
    ByteAlphabet,
    Prefix,
    PreTokenizer,
    Split,
    Substitute,
)


def pre_tokenize(piece: Aligned, steps: Iterable[PreTokenizer]) -> list[Aligned]:
    """Apply the steps of a pipeline to one stretch of normalised text.

    Returns:
        The non-empty pieces in order.
    """
    pieces = [piece]
    for step in steps:
        pieces = [part for piece in pieces for part in _apply(piece, step) if part.text]
    return [piece for piece in pieces if piece.text]


def _apply(piece: Aligned, step: PreTokenizer) -> Iterator[Aligned]:
    match step:
        case Split():
            yield from (piece.part(*span) for span in spans(piece.text, step))
        case Substitute():
            yield Aligned(piece.text.replace(step.old, step.new), piece.starts)
        case Prefix():
            at_start = piece.starts[:1] == (0,)
            if piece.text.startswith(step.character) or (step.first_only and not at_start):
                yield piece
            else:
                yield Aligned(step.character + piece.text, (*piece.starts[:1], *piece.starts))
        case ByteAlphabet():
            yield Aligned.joined((write_bytes(c.encode()), start) for c, start in piece.pairs())


def spans(text: str, step: Split) -> list[tuple[int, int]]:
    """Return the start and the end of each piece of `text` in characters; pieces may be empty."""
    marked = list(_marked(text, compiled(step.pattern)))
    if step.inverted:
        marked = [(start, end, not is_match) for start, end, is_match in marked]
    if step.behaviour == "removed":
        return [(start, end) for start, end, is_match in marked if not is_match]
    if step.behaviour == "merged_with_next":
        backwards = [(-end, -start, is_match) for start, end, is_match in reversed(marked)]
        return [(-end, -start) for start, end in reversed(_merged(backwards, step.behaviour))]
    return _merged(marked, step.behaviour)


@lru_cache(1024)
def compiled(pattern: str) -> regex.Pattern[str]:
    """Compile a regular expression of a pipeline; cached."""
    return regex.compile(pattern)


def _marked(text: str, pattern: regex.Pattern[str]) -> Iterator[tuple[int, int, bool]]:
    """Yield the matches and the text between them in order, and whether each is a match."""
    end = 0
    for match in pattern.finditer(text):
        if match.start() > end:
            yield end, match.start(), False
        yield match.start(), match.end(), True
        end = match.end()
    if end < len(text):
        yield end, len(text), False


def _merged(marked: list[tuple[int, int, bool]], behaviour: Behaviour) -> list[tuple[int, int]]:
    """Join parts to the previous part as the behaviour requires."""
    merged: list[tuple[int, int]] = []
    before = False  # whether the part before was a match
    for start, end, is_match in marked:
        joins = {
            "isolated": False,
            "contiguous": is_match == before,
        }.get(behaviour, is_match and not before)
        if joins and merged:
            merged[-1] = (merged[-1][0], end)
        else:
            merged.append((start, end))
        before = is_match
    return merged
