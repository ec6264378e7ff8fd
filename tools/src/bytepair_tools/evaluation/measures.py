"""The counts of a text and its tokens, and the measures computed from them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Self


@dataclass(slots=True)
class Counts:
    """The counts of a text in an encoding; docs/training.md defines each.

    A measure is None if its divisor is 0: there is no token, or no word.

    Attributes:
        bytes: Number of UTF-8 bytes of the text.
        characters: Number of Unicode code points of the text.
        tokens: Number of tokens that start in the text.
        words: Number of words.
        word_tokens: Sum over the words of the number of tokens that contain a part of the word.
        whole_words: Number of words within a single token.
        unknown: Number of tokens for text that the vocabulary cannot represent.
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
    """Divide two numbers; None if the divisor is 0."""
    return part / whole if whole else None
