"""One training, from files to files: count, merge, write; stopped and resumed where it must be."""

from __future__ import annotations

import signal
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from types import FrameType
from typing import Any, Final, Self

from bytepair_engine import Encoding, TrainingError
from bytepair_engine._core import PretokenCounts
from bytepair_engine.training.counting import BATCH_CHARACTERS, Counting, parts
from bytepair_engine.training.merging import Progress, Trained, merge_counts
from bytepair_engine.training.output import configuration, rank_file
from bytepair_engine.training.settings import TrainingSettings
from bytepair_engine.training.tokenizer_json import tokenizer_json
from bytepair_engine.training.training import encoding_of

from bytepair_tools.failure import INTERRUPTED, Failure
from bytepair_tools.files import write_whole
from bytepair_tools.training import checkpoint
from bytepair_tools.training.checkpoint import Position
from bytepair_tools.training.display import Display
from bytepair_tools.training.documents import Documents
from bytepair_tools.training.opening import STANDARD_INPUT

#: How often a checkpoint is written while texts are read.
CHECKPOINT_EVERY_S: Final = 300.0


class _Interrupted(Exception):
    """The person at the terminal pressed Ctrl-C."""


class _Interrupts:
    """What Ctrl-C does meanwhile: it ends the reading at once, as that may wait for input, and
    anything else at its next stop. A second one ends the program where it stands."""

    def __init__(self) -> None:
        self.is_reading = False
        self.is_pressed = False

    def __enter__(self) -> Self:
        self._before = signal.signal(signal.SIGINT, self._press)
        return self

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self._before)

    def _press(self, number: int, frame: FrameType | None) -> None:
        if self.is_pressed:
            signal.default_int_handler(number, frame)
        self.is_pressed = True
        if self.is_reading:
            raise _Interrupted

    def check(self) -> None:
        """Raises _Interrupted: it was pressed."""
        if self.is_pressed:
            raise _Interrupted


@dataclass
class Job:
    """What is to be done.

    Attributes:
        files: Names, or STANDARD_INPUT.
        folder: Where everything is written; it exists.
        name: The encoding's.
        memory_bytes: What counts may take before they go to temporary files; None for no limit.
    """

    files: Sequence[str]
    documents: Documents
    settings: TrainingSettings
    folder: Path
    name: str
    display: Display
    threads: int = 0
    memory_bytes: int | None = None

    @property
    def asked(self) -> dict[str, Any]:
        """What a resumed training must ask for too."""
        files = [
            [file, None if file == STANDARD_INPUT else Path(file).stat().st_size]
            for file in self.files
        ]
        return {
            "files": files,
            "format": self.documents.format,
            "column": self.documents.column,
            "invalid": self.documents.invalid,
            "pattern": self.settings.pattern,
        }

    @property
    def _checkpoint(self) -> Path:
        return self.folder / checkpoint.NAME

    def run(self, *, resume: bool) -> tuple[Trained, Encoding, list[str]]:
        """Train, and write what came of it.

        Returns:
            The merge table, its encoding, and notes on what was not written.
        Raises:
            Failure: Something was refused, or the person interrupted it. Where texts had been
                counted, there is a checkpoint.
            TrainingError: There is no text.
        """
        with _Interrupts() as interrupts:
            try:
                counts = self._count(interrupts, resume=resume)
            except _Interrupted:
                raise Failure(
                    f"interrupted; what was counted is in {self._checkpoint}, and --resume goes "
                    "on from there",
                    INTERRUPTED,
                ) from None

            def report(progress: Progress) -> None:
                self.display.show(progress)
                if progress.phase != "done":
                    interrupts.check()

            try:
                trained = merge_counts(counts, self.settings, report)
            except _Interrupted:
                documents = self.documents
                end = Position(len(self.files), 0, documents.replaced, documents.skipped)
                self._save(end, counts)
                raise Failure(
                    f"interrupted; all that was counted is in {self._checkpoint}, and --resume "
                    "merges from there",
                    INTERRUPTED,
                ) from None
        encoding = encoding_of(trained, name=self.name)
        notes = self._write(trained, encoding)
        self._checkpoint.unlink(missing_ok=True)
        return trained, encoding, notes

    def _save(self, position: Position, counts: PretokenCounts) -> None:
        checkpoint.write_checkpoint(
            self._checkpoint, asked=self.asked, position=position, counts=counts
        )

    def _count(self, interrupts: _Interrupts, *, resume: bool) -> PretokenCounts:
        position = Position()
        with Counting(
            self.settings.pattern,
            threads=self.threads,
            memory_bytes=self.memory_bytes,
            folder=str(self.folder),
        ) as counting:
            if resume:
                position, before = checkpoint.read_checkpoint(self._checkpoint, self.asked)
                counting.add_counts(before)
                self.documents.replaced = position.replaced
                self.documents.skipped = position.skipped
            try:
                self._read(counting, position, interrupts)
            except OSError as error:
                raise Failure(
                    f"the temporary files of --memory cannot be written: {error.strerror}"
                ) from None
            return counting.counts()

    def _read(self, counting: Counting, position: Position, interrupts: _Interrupts) -> None:
        """Count all parts after a position; leave a checkpoint where that ends early."""
        saved = monotonic()
        wanted = self.settings.ordinary_tokens
        try:
            interrupts.is_reading = True
            for batch in _batches(self._parts(position)):
                interrupts.is_reading = False
                counting.add([part for part, _ in batch])
                position = batch[-1][1]
                self.display.show(Progress("count", counting.bytes, 0, 256, wanted))
                interrupts.check()
                if monotonic() - saved > CHECKPOINT_EVERY_S:
                    self._save(position, counting.counts())
                    saved = monotonic()
                interrupts.is_reading = True
            interrupts.is_reading = False
        except (Failure, _Interrupted):
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
                for part in parts(document, self.settings.pattern)
            )
            for done, part in enumerate(cut, 1):
                if done > skip:
                    yield part, Position(number, done, documents.replaced, documents.skipped)

    def _write(self, trained: Trained, encoding: Encoding) -> list[str]:
        ranks = rank_file((token, rank) for rank, token in enumerate(trained.tokens))
        file = f"{self.name}.tiktoken"
        lines = configuration(
            self.name,
            file=file,
            data=ranks,
            pattern=encoding.pattern,
            special_tokens=encoding.special_tokens,
        )
        notes = []
        try:
            write_whole(self.folder / "tokenizer.json", [tokenizer_json(trained).encode()])
        except TrainingError as error:
            notes.append(f"no tokenizer.json was written: {error}")
        write_whole(self.folder / "bytepair.toml", [lines.encode()])
        # Last: where it is, everything is.
        write_whole(self.folder / file, [ranks])
        return notes


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
