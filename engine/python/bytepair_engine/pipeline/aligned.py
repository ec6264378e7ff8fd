"""Text that remembers where in the original each of its characters comes from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Aligned:
    """A stretch or piece of text on its way from the original to the model.

    Attributes:
        text: What it is by now.
        starts: For each character, the index in the original text at which what it was made
            from starts. As many as `text` has characters.
    """

    text: str
    starts: tuple[int, ...]

    @classmethod
    def original(cls, text: str) -> Aligned:
        """The original text."""
        return cls(text, tuple(range(len(text))))

    @classmethod
    def joined(cls, parts: Iterable[tuple[str, int]]) -> Aligned:
        """Text made of (text, start of what all of it was made from)."""
        kept = [(text, start) for text, start in parts if text]
        return cls(
            "".join(text for text, _ in kept),
            tuple(start for text, start in kept for _ in text),
        )

    def part(self, start: int, end: int) -> Aligned:
        """The characters from `start` to `end`."""
        return Aligned(self.text[start:end], self.starts[start:end])

    def pairs(self) -> Iterable[tuple[str, int]]:
        """Each character with its start."""
        return zip(self.text, self.starts, strict=True)
