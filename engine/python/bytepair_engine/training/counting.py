"""Count the pre-tokens of texts, on all cores and in bounded memory."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Final, Self

from bytepair_engine import _core
from bytepair_engine.errors import (
    InvalidOption,
    InvalidUnicode,
    TrainingError,
    check_least,
    has_surrogate,
    wrong_type,
)
from bytepair_engine.resources import MAX_THREADS
from bytepair_engine.streaming.split_points import split_points_of
from bytepair_engine.streaming.splitter import StreamSplitter
from bytepair_engine.training.merging import checked_counts
from bytepair_engine.vocabulary.special_search import SpecialSearch

#: Number of characters of a batch, which is counted on all threads.
BATCH_CHARACTERS: Final = 8 * 2**20
#: Longer texts are split at split points, so that all threads have work.
PART_CHARACTERS: Final = 2**20
#: Longer texts without split points are rejected: the core has 32-bit positions.
_MAX_CHARACTERS: Final = 2**29

_NO_NAMES: Final = SpecialSearch(frozenset())
_NO_LIMIT: Final = 2**62

# In a class with a property `bytes`, the name is not a type.
_Column = bytes


class Counting:
    """Counts the pre-tokens of texts. Use it as a context manager: it may have temporary files."""

    def __init__(
        self,
        pattern: str | None,
        *,
        threads: int = 0,
        memory_bytes: int | None = None,
        folder: str | None = None,
    ) -> None:
        """Start without counts.

        Args:
            pattern: The split pattern, resolved; None to count each text as one pre-token.
            threads: Number of threads in [0, 1024]; 0 for one per core that the process may use.
            memory_bytes: Maximum memory of the counts, above which they are written to a temporary
                file as a run. Runs are added up at the end, so counts are exact. None for no
                limit.
            folder: The folder of temporary files; None for the system's default.
        Raises:
            InvalidOption: A number is out of range.
            VocabularyError: The native core cannot run the pattern.
        """
        if check_least("threads", threads, 0) > MAX_THREADS:
            raise InvalidOption("threads", f"must be from 0 to {MAX_THREADS}")
        self._pattern: Final = pattern
        self._folder = None
        spill = None
        if memory_bytes is not None:
            memory_bytes = check_least("memory_bytes", memory_bytes, 1)
            self._folder = tempfile.TemporaryDirectory(prefix="bytepair-train-", dir=folder)
            spill = (self._folder.name, memory_bytes)
        self._counter: _core.PretokenCounter | None = _core.PretokenCounter(pattern, threads, spill)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._counter = None
        if self._folder is not None:
            self._folder.cleanup()

    @property
    def _open(self) -> _core.PretokenCounter:
        if self._counter is None:
            raise ValueError("the counting has ended")
        return self._counter

    @property
    def bytes(self) -> int:
        """Number of bytes of text that were counted."""
        return self._open.bytes

    @property
    def runs(self) -> int:
        """Number of runs that were written to files."""
        return self._open.runs

    def add(self, texts: Sequence[str]) -> None:
        """Count texts, each separately.

        Raises:
            InvalidUnicode: A text has a lone surrogate; none of the texts was counted.
            TrainingError: A text is too long.
            OSError: A run cannot be written.
        """
        for text in texts:
            if len(text) > _MAX_CHARACTERS:
                raise TrainingError(
                    f"a text has {len(text)} characters, and its pattern has no known split points",
                    "train with a named pattern, or on shorter texts",
                )
        self._open.add(list(texts))

    def add_all(self, texts: Iterable[str]) -> Iterator[int]:
        """Count texts of any length, in batches.

        Yields:
            The number of bytes that were counted, after each batch.
        Raises:
            InvalidUnicode: A text has a lone surrogate; the error has its index.
            TypeError: A text is not a `str`.
            TrainingError, OSError: See `add`.
        """
        indices: list[int] = []
        for batch in batches(_parts(texts, self._pattern, indices)):
            try:
                self.add(batch)
            except InvalidUnicode as error:
                error.index = next(
                    i for i, part in zip(indices, batch, strict=True) if has_surrogate(part)
                )
                raise
            indices.clear()
            yield self.bytes

    def add_counts(self, counts: _core.PretokenCounts) -> None:
        """Add earlier counts, as if their texts were counted now.

        Raises:
            OSError: A run cannot be written.
        """
        self._open.add_counts(counts)

    def add_columns(self, words: _Column, offsets: _Column, counts: _Column) -> None:
        """Add counts in columns, in Arrow's format, in order of first occurrence.

        Args:
            words: The concatenated pre-tokens.
            offsets: The start of each pre-token in `words`, then the end of the last: 64 bits
                each, little-endian.
            counts: The count of each pre-token, from 1 to 2⁶³ - 1: 64 bits each, little-endian.
        Raises:
            TrainingError: The columns do not match, a pre-token is empty, or a count is out of
                range; nothing was added.
            OSError: A run cannot be written.
        """
        if not self._open.add_columns(words, offsets, counts):
            raise TrainingError(
                "counts with an empty pre-token, or a count that is not positive",
                "count the texts again",
            )

    def counts(self) -> _core.PretokenCounts:
        """Return all counts so far, in order of first occurrence.

        Raises:
            OSError: A run cannot be read.
        """
        return self._open.counts()


def _parts(texts: Iterable[str], pattern: str | None, indices: list[int]) -> Iterator[str]:
    """Divide texts into parts, and append the index of the text of each part to `indices`."""
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise wrong_type(f"corpus: text {index}", "str", text)
        is_short = len(text) <= PART_CHARACTERS
        try:
            for part in (text,) if is_short else parts((text,), pattern):
                indices.append(index)
                yield part
        except InvalidUnicode as error:
            error.index = index
            raise


def counts_of(counts: Mapping[bytes, int] | Mapping[str, int]) -> _core.PretokenCounts:
    """Convert a mapping from pre-tokens to counts.

    Raises:
        Exception: Those of `merging.checked_counts`.
    """
    return _core.PretokenCounts.from_items(checked_counts(counts))


def parts(pieces: Iterable[str], pattern: str | None) -> Iterator[str]:
    """Divide one text into parts whose pre-tokens are those of the text.

    Args:
        pieces: The text in pieces of any length; a tuple if all of it is in memory.
        pattern: The split pattern. If it is None or has no known split points, the text is one
            part.
    """
    split_points = None if pattern is None else split_points_of(pattern)
    # Splitting a short text would take a third of the time of counting it, for no benefit.
    is_short = isinstance(pieces, tuple) and sum(map(len, pieces)) <= PART_CHARACTERS
    if split_points is None or is_short:
        if whole := "".join(pieces):
            yield whole
        return
    splitter = StreamSplitter(
        split_points,
        allowed=_NO_NAMES,
        disallowed=_NO_NAMES,
        either=_NO_NAMES,
        max_pending_bytes=_NO_LIMIT,
    )
    for piece in pieces:
        for start in range(0, len(piece), PART_CHARACTERS):
            if part := splitter.feed(piece[start : start + PART_CHARACTERS]):
                yield part
    if rest := splitter.finish():
        yield rest


def batches(texts: Iterable[str]) -> Iterator[list[str]]:
    """Group texts into lists of about BATCH_CHARACTERS."""
    batch: list[str] = []
    held = 0
    for text in texts:
        batch.append(text)
        held += len(text)
        if held >= BATCH_CHARACTERS:
            yield batch
            batch, held = [], 0
    if batch:
        yield batch
