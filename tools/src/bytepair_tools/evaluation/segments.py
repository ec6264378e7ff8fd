r"""Segment text into words, and into stretches of one script.

Both depend only on the text, so encodings are compared on the same segments.

- A *word* is a maximal run of letters, marks and numbers that contains a letter; it includes
  apostrophes between two of them. Characters of scripts without spaces between words
  (`scripts.WITHOUT_SPACES`) are not part of words.
- A *stretch* is a maximal run of characters of one script, with its marks, the single spaces
  between its words and the one directly before it. The text between such stretches is a stretch of
  `COMMON`.

The script of a word is that of its first letter.
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

#: Number of characters from which text is divided into blocks, which end outside words.
BLOCK_CHARACTERS: Final = 1 << 18

_UNSPACED: Final = "".join(rf"\p{{Script={script}}}" for script in WITHOUT_SPACES)
_LETTER: Final = rf"[\p{{L}}--[{_UNSPACED}]]"
_INNER: Final = rf"[[\p{{L}}\p{{M}}\p{{N}}]--[{_UNSPACED}]]"
_BEFORE: Final = rf"[[\p{{M}}\p{{N}}]--[{_UNSPACED}]]"
_REST: Final = rf"{_INNER}*+(?:['’]{_INNER}++)*+"
#: A run of only numbers is matched too, without a group, so that no character is tested twice.
_WORD: Final = regex.compile(rf"(?V1)({_LETTER}){_REST}|{_BEFORE}++(?:({_LETTER}){_REST})?+")

#: On the letters of `ScriptLetters`: a script with the space before it, or a run without a script.
_STRETCH: Final = re.compile(r"S?([^SCI])(?:\1|I|S(?=\1))*+|(?:[CI]|S(?![^SCI]))++")

#: Byte to 1 if it is the first byte of a character in UTF-8.
_IS_FIRST: Final = bytes(byte & 0xC0 != 0x80 for byte in range(256))


@dataclass(slots=True)
class Spans:
    """Ranges of text without overlaps, in order, in bytes of UTF-8 from the start of the document.

    Attributes:
        starts: The start of each range.
        ends: The end of each range.
        characters: Their total number of characters.
    """

    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    characters: int = 0

    def add(self, start: int, end: int, at: Sequence[int]) -> None:
        """Add a range of characters; `at` has the byte offset of each character."""
        self.starts.append(at[start])
        self.ends.append(at[end])
        self.characters += end - start

    @property
    def bytes(self) -> int:
        """Their total number of bytes."""
        return sum(self.ends) - sum(self.starts)


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a document. No word or stretch extends across its ends.

    Attributes:
        end: The end in the document, in bytes of UTF-8.
        stretches: Script to its stretches.
        words: Script to its words.
    """

    end: int
    stretches: dict[str, Spans]
    words: dict[str, Spans]


class Segmenter:
    """Segments documents, which may arrive in pieces."""

    def __init__(self, block_characters: int = BLOCK_CHARACTERS) -> None:
        """Create a segmenter.

        Args:
            block_characters: Number of characters from which text is divided; a block ends before
                the last white space.
        """
        self._min_characters: Final = block_characters
        self._letters: Final = ScriptLetters()

    def blocks(self, pieces: Iterable[str]) -> Iterator[tuple[str, Block | None]]:
        """Segment one document.

        Args:
            pieces: The text in pieces of any length.
        Yields:
            Each piece with the block that it completes, or None. At the end, an empty piece may
            come with the last block.
        """
        held, start, threshold = "", 0, self._min_characters
        for piece in pieces:
            held += piece
            block = None
            if len(held) >= threshold:
                # No word contains white space, which belongs to the stretch after it.
                cut = max(held.rfind(" "), held.rfind("\n"))
                if cut > 0:
                    block = self._block(held[:cut], start)
                    held, start = held[cut:], block.end
                # Try again only when the text has doubled, however short the pieces are.
                threshold = max(self._min_characters, 2 * len(held))
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
