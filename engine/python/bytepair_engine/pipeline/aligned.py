"""Processed text with the position in the original of each character."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Aligned:
    """A stretch or piece of text between the original and the model.

    Attributes:
        text: The processed text.
        starts: For each character of `text`, the start of its source in the original text.
    """

    text: str
    starts: tuple[int, ...]

    @classmethod
    def original(cls, text: str) -> Aligned:
        """Return the original text, unprocessed."""
        return cls(text, tuple(range(len(text))))

    @classmethod
    def joined(cls, parts: Iterable[tuple[str, int]]) -> Aligned:
        """Join parts, each with the start of its source."""
        kept = [(text, start) for text, start in parts if text]
        return cls(
            "".join(text for text, _ in kept),
            tuple(start for text, start in kept for _ in text),
        )

    def part(self, start: int, end: int) -> Aligned:
        """Return the characters from `start` to `end`."""
        return Aligned(self.text[start:end], self.starts[start:end])

    def pairs(self) -> Iterable[tuple[str, int]]:
        """Return each character with the start of its source."""
        return zip(self.text, self.starts, strict=True)
