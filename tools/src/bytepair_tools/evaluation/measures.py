"""Measures: what is counted of a text and of its tokens, and what follows from it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Self


@dataclass(slots=True)
class Counts:
    """What was counted of some text in some encoding; docs/training.md defines each.

    A measure is None where there is nothing to divide by: no token, or no word.

    Attributes:
        bytes: Of the text, in UTF-8.
        characters: Of the text: Unicode's code points.
        tokens: That start in it.
        words: In it.
        word_tokens: That hold some of a word, added up over the words.
        whole_words: Words that one token holds.
        unknown: Tokens that stand for text which the vocabulary cannot spell.
    """

    bytes: int = 0
    characters: int = 0
    tokens: int = 0
    words: int = 0
    word_tokens: int = 0
    whole_words: int = 0
    unknown: int = 0

    def __iadd__(self, other: Counts) -> Self:
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))
        return self

    @property
    def bytes_per_token(self) -> float | None:
        return ratio(self.bytes, self.tokens)

    @property
    def characters_per_token(self) -> float | None:
        return ratio(self.characters, self.tokens)

    @property
    def tokens_per_word(self) -> float | None:
        return ratio(self.word_tokens, self.words)

    @property
    def whole_word_share(self) -> float | None:
        return ratio(self.whole_words, self.words)


def ratio(part: int, whole: int) -> float | None:
    """One number by another; None for one by none."""
    return part / whole if whole else None
