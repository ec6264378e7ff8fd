"""Count the pre-tokens of texts, with checkpoints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from stat import S_ISREG
from time import monotonic
from typing import Any, Final

from bytepair_engine._core import PretokenCounts
from bytepair_engine.training.counting import BATCH_CHARACTERS, Counting, parts

from bytepair_tools.counts import checkpoint
from bytepair_tools.counts.checkpoint import Position
from bytepair_tools.counts.display import Display
from bytepair_tools.shared.failure import INTERRUPTED, Failure, reason
from bytepair_tools.shared.interrupts import Interrupted, Interrupts
from bytepair_tools.texts.documents import Documents
from bytepair_tools.texts.opening import STANDARD_INPUT

#: Interval of checkpoints while texts are read.
CHECKPOINT_EVERY_S: Final = 300.0


@dataclass
class Reading:
    """Texts to count.

    Attributes:
        files: File names, or STANDARD_INPUT.
        documents: The reader of the files.
        pattern: The split pattern, resolved; None for none.
        checkpoint: The file for checkpoints, in an existing folder, which also gets the temporary
            files.
        display: Shows the progress.
        wanted: Requested number of ordinary tokens, for the display; 256 without a training.
        threads: Number of threads; 0 for one per core.
        memory_bytes: Maximum memory of counts, above which they go to temporary files; None for no
            limit.
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
        """Number of documents with replaced bytes that were not UTF-8."""
        return self.documents.replaced

    @property
    def skipped(self) -> int:
        """Number of skipped documents."""
        return self.documents.skipped

    @cached_property
    def settings(self) -> dict[str, Any]:
        """The settings that affect the counts, which a resumed run must share. Cached when reading
        starts, because a file may be gone when a checkpoint is written.

        Raises:
            Failure: A file does not exist.
        """
        return {
            "files": [[file, *_version(file)] for file in self.files],
            "format": self.documents.format,
            "column": self.documents.column,
            "invalid": self.documents.invalid,
            "pattern": self.pattern,
        }

    def count(self, interrupts: Interrupts, *, resume: bool) -> PretokenCounts:
        """Count all texts.

        Args:
            interrupts: The handler of Ctrl-C.
            resume: Whether to continue from the checkpoint.
        Raises:
            Failure: Input was rejected, or the user interrupted the work. If texts were counted,
                there is a checkpoint.
        """
        position, settings = Position(), self.settings
        with (
            Counting(
                self.pattern,
                threads=self.threads,
                memory_bytes=self.memory_bytes,
                folder=str(self.checkpoint.parent),
            ) as counting,
            temporary_files(),
        ):
            try:
                if resume:
                    position, before = checkpoint.read_checkpoint(self.checkpoint, settings)
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

    def keep(self, counts: PretokenCounts, /) -> str:
        """Write a checkpoint of all counts, and return a message about it."""
        end = Position(len(self.files), 0, self.replaced, self.skipped)
        self._save(end, counts)
        return f"all counts are in {self.checkpoint}; --resume continues from it"

    def forget(self) -> None:
        """Delete the checkpoint, which is no longer needed."""
        self.checkpoint.unlink(missing_ok=True)

    def _save(self, position: Position, counts: PretokenCounts) -> None:
        checkpoint.write_checkpoint(
            self.checkpoint, settings=self.settings, position=position, counts=counts
        )

    def _read(self, counting: Counting, position: Position, interrupts: Interrupts) -> None:
        """Count all parts after a position; write a checkpoint if this is interrupted or fails."""
        saved = monotonic()
        try:
            interrupts.is_reading = True
            interrupts.check()  # afterwards, or an interrupt in between would be lost
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
        """Yield every part to count with the position after it."""
        documents = self.documents
        for number in range(start.file, len(self.files)):
            skip = start.parts if number == start.file else 0
            replaced, skipped = documents.replaced, documents.skipped
            all_parts = (
                part
                for document in documents.read(self.files[number])
                for part in parts(document, self.pattern)
            )
            for done, part in enumerate(all_parts, 1):
                if done > skip:
                    yield part, Position(number, done, replaced, skipped)


@contextmanager
def temporary_files() -> Iterator[None]:
    """Convert errors of the temporary files of counts to Failure."""
    try:
        yield
    except OSError as error:
        # Those of the core have no errno. Others are of the output, such as a closed pipe.
        if error.errno is not None:
            raise
        raise Failure(
            f"the temporary files of --memory cannot be written: {reason(error)}"
        ) from None


def _version(file: str) -> tuple[int, ...]:
    """Return the size of a regular file, and when it was last modified."""
    try:
        found = None if file == STANDARD_INPUT else Path(file).stat()
    except OSError as error:
        raise Failure(f"{file}: {reason(error)}") from None
    if found is None or not S_ISREG(found.st_mode):
        return ()
    return found.st_size, found.st_mtime_ns


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
