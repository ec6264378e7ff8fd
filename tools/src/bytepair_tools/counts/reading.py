"""Texts to counts of their pre-tokens, with a checkpoint where that is stopped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from time import monotonic
from typing import Any, Final

from bytepair_engine._core import PretokenCounts
from bytepair_engine.training.counting import BATCH_CHARACTERS, Counting, parts

from bytepair_tools.counts import checkpoint
from bytepair_tools.counts.checkpoint import Position
from bytepair_tools.counts.display import Display
from bytepair_tools.shared.failure import INTERRUPTED, Failure
from bytepair_tools.shared.interrupts import Interrupted, Interrupts
from bytepair_tools.texts.documents import Documents
from bytepair_tools.texts.opening import STANDARD_INPUT

#: How often a checkpoint is written while texts are read.
CHECKPOINT_EVERY_S: Final = 300.0


@dataclass
class Reading:
    """Texts that are to be counted.

    Attributes:
        files: Names, or STANDARD_INPUT.
        pattern: The split pattern, resolved; None for none.
        checkpoint: The file that is left behind where reading stops early, in a folder that
            exists; temporary files go there too.
        wanted: How many ordinary tokens the training is to end with, as progress tells it; 256
            where there is none.
        memory_bytes: What counts may take before they go to temporary files; None for no limit.
    """

    files: Sequence[str]
    documents: Documents
    pattern: str | None
    checkpoint: Path
    display: Display
    wanted: int = 256
    threads: int = 0
    memory_bytes: int | None = None

    @property
    def replaced(self) -> int:
        """How many documents had something replaced."""
        return self.documents.replaced

    @property
    def skipped(self) -> int:
        """How many documents were left out."""
        return self.documents.skipped

    @cached_property
    def asked(self) -> dict[str, Any]:
        """What the counts depend on, which a resumed run must share. It is looked up when
        reading starts: a file may be gone when a checkpoint is written.

        Raises:
            Failure: A file is not there.
        """
        return {
            "files": [[file, _size(file)] for file in self.files],
            "format": self.documents.format,
            "column": self.documents.column,
            "invalid": self.documents.invalid,
            "pattern": self.pattern,
        }

    def count(self, interrupts: Interrupts, *, resume: bool) -> PretokenCounts:
        """Count all of it.

        Args:
            resume: Go on from the checkpoint.
        Raises:
            Failure: Something was refused, or the person interrupted it. Where texts had been
                counted, there is a checkpoint.
        """
        position, asked = Position(), self.asked
        with Counting(
            self.pattern,
            threads=self.threads,
            memory_bytes=self.memory_bytes,
            folder=str(self.checkpoint.parent),
        ) as counting:
            try:
                if resume:
                    position, before = checkpoint.read_checkpoint(self.checkpoint, asked)
                    counting.add_counts(before)
                    self.documents.replaced = position.replaced
                    self.documents.skipped = position.skipped
                self._read(counting, position, interrupts)
                return counting.counts()
            except Interrupted:
                raise Failure(
                    f"interrupted; what was counted is in {self.checkpoint}; --resume continues "
                    "from it",
                    INTERRUPTED,
                ) from None
            except OSError as error:
                raise Failure(
                    f"the temporary files of --memory cannot be written: {error.strerror}"
                ) from None

    def keep(self, counts: PretokenCounts, /) -> str:
        """Leave a checkpoint of all that was counted; a sentence that says so."""
        end = Position(len(self.files), 0, self.replaced, self.skipped)
        self._save(end, counts)
        return f"all that was counted is in {self.checkpoint}, and --resume continues from it"

    def forget(self) -> None:
        """Remove the checkpoint: what it was for is written."""
        self.checkpoint.unlink(missing_ok=True)

    def _save(self, position: Position, counts: PretokenCounts) -> None:
        checkpoint.write_checkpoint(
            self.checkpoint, asked=self.asked, position=position, counts=counts
        )

    def _read(self, counting: Counting, position: Position, interrupts: Interrupts) -> None:
        """Count all parts after a position; leave a checkpoint where that ends early."""
        saved = monotonic()
        try:
            interrupts.is_reading = True
            interrupts.check()  # after that is set, or one in between would be lost
            for batch in _batches(self._parts(position)):
                interrupts.is_reading = False
                counting.add([part for part, _ in batch])
                position = batch[-1][1]
                self.display.counted(counting.bytes, self.wanted)
                if monotonic() - saved > CHECKPOINT_EVERY_S:
                    self._save(position, counting.counts())
                    saved = monotonic()
                interrupts.is_reading = True
                interrupts.check()
            interrupts.is_reading = False
        except (Failure, Interrupted):
            interrupts.is_reading = False
            if counting.bytes or interrupts.is_pressed:
                self._save(position, counting.counts())
            raise

    def _parts(self, start: Position) -> Iterator[tuple[str, Position]]:
        """Every part to count, and the position after it."""
        documents = self.documents
        for number in range(start.file, len(self.files)):
            skip = start.parts if number == start.file else 0
            cut = (
                part
                for document in documents.read(self.files[number])
                for part in parts(document, self.pattern)
            )
            for done, part in enumerate(cut, 1):
                if done > skip:
                    yield part, Position(number, done, documents.replaced, documents.skipped)


def _size(file: str) -> int | None:
    try:
        return None if file == STANDARD_INPUT else Path(file).stat().st_size
    except OSError as error:
        raise Failure(f"{file}: {error.strerror}") from None


def _batches(parts: Iterable[tuple[str, Position]]) -> Iterator[list[tuple[str, Position]]]:
    batch: list[tuple[str, Position]] = []
    held = 0
    for part, position in parts:
        batch.append((part, position))
        held += len(part)
        if held >= BATCH_CHARACTERS:
            yield batch
            batch, held = [], 0
    if batch:
        yield batch
