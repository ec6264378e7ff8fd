r"""Text in segments: its words, and its stretches of one script.

Both are properties of the text alone, so that encodings are compared on the same things.

- A *word* is a maximal run of letters, marks and numbers that holds a letter; apostrophes between
  two of them belong to it. Characters of scripts that write no spaces between words
  (`scripts.WITHOUT_SPACES`) are in no word.
- A *stretch* is a maximal run of characters of one script, with the marks in it, the single spaces
  between its words and the one right before it; all that lies between is a stretch of `COMMON`.

A word is of the script of its first letter.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Final

import regex

from bytepair_tools.evaluation.scripts import WITHOUT_SPACES, ScriptLetters

#: Text is split in blocks of this many characters, each up to a place outside words.
BLOCK_CHARACTERS: Final = 1 << 18

_UNSPACED: Final = "".join(rf"\p{{Script={script}}}" for script in WITHOUT_SPACES)
_LETTER: Final = rf"[\p{{L}}--[{_UNSPACED}]]"
_INNER: Final = rf"[[\p{{L}}\p{{M}}\p{{N}}]--[{_UNSPACED}]]"
_BEFORE: Final = rf"[[\p{{M}}\p{{N}}]--[{_UNSPACED}]]"
_REST: Final = rf"{_INNER}*+(?:['’]{_INNER}++)*+"
#: A run of numbers alone is matched too, so that none is looked at twice; it has no group.
_WORD: Final = regex.compile(rf"(?V1)({_LETTER}){_REST}|{_BEFORE}++(?:({_LETTER}){_REST})?+")

#: Over the letters of `ScriptLetters`: a script with the space before it, or nothing of any script.
_STRETCH: Final = re.compile(r"S?([^SCI])(?:\1|I|S(?=\1))*+|(?:[CI]|S(?![^SCI]))++")

#: Byte to 1 if it is a character's first in UTF-8.
_IS_FIRST: Final = bytes(byte & 0xC0 != 0x80 for byte in range(256))


@dataclass(slots=True)
class Spans:
    """Stretches of text that do not overlap, in order, in bytes of UTF-8 from the start of the
    document.

    Attributes:
        starts: Where each starts.
        ends: Where each ends.
        characters: How many characters they have together.
    """

    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    characters: int = 0

    def add(self, start: int, end: int, at: Sequence[int]) -> None:
        """Add one, given in characters, by where each character starts."""
        self.starts.append(at[start])
        self.ends.append(at[end])
        self.characters += end - start

    @property
    def bytes(self) -> int:
        """How many bytes they have together."""
        return sum(self.ends) - sum(self.starts)


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a document, cut where nothing that is measured lies across.

    Attributes:
        end: Where in the document it ends, in bytes of UTF-8.
        stretches: Script to all stretches of it.
        words: Script to the words of it.
    """

    end: int
    stretches: dict[str, Spans]
    words: dict[str, Spans]


class Segmenter:
    """Looks at documents, each of which may come in pieces."""

    def __init__(self, block_characters: int = BLOCK_CHARACTERS) -> None:
        """Start with any document.

        Args:
            block_characters: How much text there must be before it is cut; a block is what stands
                before the last white space of it.
        """
        self._least: Final = block_characters
        self._letters: Final = ScriptLetters()

    def blocks(self, pieces: Iterable[str]) -> Iterator[tuple[str, Block | None]]:
        """Segment one document.

        Args:
            pieces: Its text, cut anywhere.
        Returns:
            Each piece, with the block that it completes; or None if it completes none. At the end
            an empty piece may come with the last block.
        """
        held, start, wanted = "", 0, self._least
        for piece in pieces:
            held += piece
            block = None
            if len(held) >= wanted:
                # No word goes across white space, and it belongs to the stretch after it.
                cut = max(held.rfind(" "), held.rfind("\n"))
                if cut > 0:
                    block = self._block(held[:cut], start)
                    held, start = held[cut:], block.end
                # Looked at again only when there is twice as much, however it came.
                wanted = max(self._least, 2 * len(held))
            yield piece, block
        if held:
            yield "", self._block(held, start)

    def _block(self, text: str, start: int) -> Block:
        data = text.encode()
        size = len(data)
        at: Sequence[int] = range(start, start + size + 1)
        if size != len(text):
            at = [*compress(at, data.translate(_IS_FIRST)), start + size]
        letters = text.translate(self._letters)
        names = self._letters.names
        stretches: defaultdict[str, Spans] = defaultdict(Spans)
        for found in _STRETCH.finditer(letters):
            script = names[found.group(1) or ScriptLetters.SPACE]
            stretches[script].add(*found.span(), at)
        words: defaultdict[str, Spans] = defaultdict(Spans)
        for word in _WORD.finditer(text):
            if first := word.lastindex:
                script = names[letters[word.start(first)]]
                words[script].add(*word.span(), at)
        return Block(start + size, stretches, words)
