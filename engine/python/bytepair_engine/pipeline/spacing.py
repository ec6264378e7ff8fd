"""The normaliser `Spacing` of docs/formats.md: map strings and normalise spaces in one pass."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from bytepair_engine.pipeline.aligned import Aligned
from bytepair_engine.pipeline.charsmap import charsmap
from bytepair_engine.pipeline.definition import Spacing

_SPACE: Final = " "


def space(stretch: Aligned, step: Spacing) -> Aligned:
    """Apply the step to one stretch."""
    mapped = list(_mapped(stretch, step))
    if step.tidy:
        while mapped and mapped[0][0] == _SPACE:
            del mapped[0]
    if not mapped:
        return Aligned("", ())
    after = stretch.starts[-1] + 1 if stretch.starts else 0
    parts = [(_SPACE, mapped[0][1])] if step.pad == "before" else []
    after_space = True
    for value, start in mapped:
        kept = value.lstrip(_SPACE) if step.tidy and after_space else value
        if kept:
            parts.append((kept, start))
            after_space = kept.endswith(_SPACE)
    spaced = Aligned.joined(parts)
    text = spaced.text.replace(_SPACE, step.mark)
    end = len(text.rstrip(step.mark)) if step.tidy else len(text)
    pad, starts = "", spaced.starts[:end]
    if step.pad == "after":
        pad = step.mark
        starts += (after if end == len(text) else spaced.starts[end],)
    return Aligned(text[:end] + pad, starts)


def _mapped(stretch: Aligned, step: Spacing) -> Iterator[tuple[str, int]]:
    """Yield the mapped strings of a stretch, each with the start of its source."""
    text = stretch.text
    table = charsmap(step.table) if step.table else None
    data = text.encode() if table else b""
    at = byte = 0
    while at < len(text):
        kept = _longest_kept(step.kept).match(text, at) if step.kept else 0
        if kept:
            value, length = text[at : at + kept], kept
        elif table and (found := table.longest(data, byte)):
            value, length = found[1], len(data[byte : byte + found[0]].decode())
        else:
            value, length = text[at], 1
        yield value, stretch.starts[at]
        byte += len(text[at : at + length].encode())
        at += length


class _Kept:
    """A set of strings to search for: the longest at a position."""

    def __init__(self, strings: tuple[str, ...]) -> None:
        self._strings = frozenset(strings)
        self._lengths: dict[str, list[int]] = {}
        for first in {string[0] for string in strings}:
            lengths = {len(string) for string in strings if string[0] == first}
            self._lengths[first] = sorted(lengths, reverse=True)

    def match(self, text: str, at: int) -> int:
        """Return the length of the longest string at a position; 0 if there is none."""
        for length in self._lengths.get(text[at], ()):
            if text[at : at + length] in self._strings:
                return length
        return 0


@lru_cache(16)
def _longest_kept(strings: tuple[str, ...]) -> _Kept:
    return _Kept(strings)
