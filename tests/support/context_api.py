"""The methods that the laws of Truncate, Split, SplitStream and Inspect are about: those of the
library here, and through a server in tests/server/test_context_laws.py.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Protocol, get_args

from bytepair_engine import Encoding
from bytepair_engine.context.boundaries import Level
from bytepair_engine.context.inspecting import Inspection, inspect
from bytepair_engine.context.splitting import Chunk, SplitOptions, split
from bytepair_engine.context.stream import StreamChunker
from bytepair_engine.context.truncating import truncated
from bytepair_engine.context.truncation_search import Keep, Truncation
from bytepair_engine.errors import BudgetTooSmall, SpecialTokenFound

KEEPS: Final[tuple[Keep, ...]] = get_args(Keep)


class Encode(Protocol):
    """What gives the ids of a text: another library."""

    def __call__(
        self, text: str, /, *, special: frozenset[str] = frozenset(), template: bool = False
    ) -> list[int]:
        """The ids; `special` are encoded as special tokens, all or none of them if the library
        knows no more; with `template`, its tokens are added."""


@dataclass(frozen=True)
class Cut:
    """How a text is truncated."""

    most: int
    keep: Keep = "start"
    level: Level = "grapheme"
    marker: str = ""
    percent: int = 50
    allowed: frozenset[str] = frozenset()
    template: bool = False


class Api(Protocol):
    """What is checked.

    Attributes:
        special_tokens: The names of the encoding's special tokens.
    """

    special_tokens: Collection[str]

    def truncate(self, text: str, cut: Cut) -> Truncation:
        """Raises BudgetTooSmall."""

    def split(self, text: str, options: SplitOptions) -> Iterable[Chunk]:
        """Raises BudgetTooSmall."""

    def stream(self, text: str, options: SplitOptions, size: int) -> Iterable[Chunk]:
        """The same, of pieces of `size` bytes. Raises BudgetTooSmall after the chunks before it."""

    def inspect(self, text: str, max_findings: int | None = None) -> Inspection: ...

    def spelled(self, text: str) -> tuple[str, int] | None:
        """The special token for which Encode rejects a text, and its byte; None for none."""


class Library:
    """The methods of an encoding."""

    def __init__(self, encoding: Encoding) -> None:
        self._encoding = encoding
        self.special_tokens: Collection[str] = encoding.special_tokens

    def truncate(self, text: str, cut: Cut) -> Truncation:
        return truncated(
            self._encoding,
            text,
            cut.most,
            keep=cut.keep,
            level=cut.level,
            marker=cut.marker,
            start_percent=cut.percent,
            allowed_special=cut.allowed,
            add_special_tokens=cut.template,
        )

    def split(self, text: str, options: SplitOptions) -> Iterator[Chunk]:
        return split(self._encoding, text, options)

    def stream(self, text: str, options: SplitOptions, size: int) -> Iterator[Chunk]:
        chunker, data = StreamChunker(self._encoding, options), text.encode()
        try:
            for start in range(0, len(data), size):
                yield from chunker.feed(data[start : start + size])
            yield from chunker.finish()
        except BudgetTooSmall:
            yield from chunker.before_fault
            raise

    def inspect(self, text: str, max_findings: int | None = None) -> Inspection:
        return inspect(self._encoding, text, max_findings=max_findings)

    def spelled(self, text: str) -> tuple[str, int] | None:
        try:
            self._encoding.encode(text)
        except SpecialTokenFound as found:
            return found.token, found.byte_offset
        return None


def outcome(chunks: Iterable[Chunk]) -> list[Chunk | tuple[int, int | None]]:
    """The chunks, and the facts of the fault that ends them."""
    found: list[Chunk | tuple[int, int | None]] = []
    try:
        found.extend(chunks)
    except BudgetTooSmall as error:
        found.append((error.needed, error.byte_offset))
    return found
