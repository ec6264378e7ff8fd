"""A training: obtain the counts, merge, and write the files; can be interrupted and resumed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from bytepair_engine import Encoding, TrainingError
from bytepair_engine._core import PretokenCounts
from bytepair_engine.training.merging import Progress, Trained, merge_counts
from bytepair_engine.training.output import configuration, rank_file
from bytepair_engine.training.settings import TrainingSettings
from bytepair_engine.training.tokenizer_json import tokenizer_json
from bytepair_engine.training.training import encoding_of

from bytepair_tools.counts.display import Display
from bytepair_tools.shared.failure import INTERRUPTED, Failure
from bytepair_tools.shared.interrupts import Interrupted, Interrupts
from bytepair_tools.training.output import CONFIGURATION, TOKENIZER_JSON, write_files


class Source(Protocol):
    """A source of counts."""

    @property
    def replaced(self) -> int:
        """Number of documents with replaced bytes that were not UTF-8."""

    @property
    def skipped(self) -> int:
        """Number of skipped documents."""

    def count(self, interrupts: Interrupts, *, resume: bool) -> PretokenCounts:
        """Return the counts; raise Failure if input is rejected, or the work is interrupted."""

    def keep(self, counts: PretokenCounts, /) -> str:
        """Save the counts of an interrupted training, and return a message about it."""

    def forget(self) -> None:
        """Delete the saved counts."""


@dataclass
class Job:
    """A training.

    Attributes:
        source: The source of the counts.
        settings: The settings.
        folder: The output folder, which exists.
        name: The name of the encoding.
        display: Shows the progress.
    """

    source: Source
    settings: TrainingSettings
    folder: Path
    name: str
    display: Display

    def run(self, *, resume: bool) -> tuple[Trained, Encoding, list[str]]:
        """Train, and write the files.

        Args:
            resume: Whether to continue from the checkpoint.
        Returns:
            The result, its encoding, and notes on files that were not written.
        Raises:
            Failure: Input was rejected, or the user interrupted the work. If texts were counted,
                there is a checkpoint.
            TrainingError: There is no text.
        """
        with Interrupts() as interrupts:
            counts = self.source.count(interrupts, resume=resume)

            def report(progress: Progress) -> None:
                self.display.show(progress)
                if progress.phase != "done":
                    interrupts.check()

            try:
                trained = merge_counts(counts, self.settings, report)
            except Interrupted:
                raise Failure(f"interrupted; {self.source.keep(counts)}", INTERRUPTED) from None
        encoding = encoding_of(trained, name=self.name)
        notes = self._write(trained, encoding)
        self.source.forget()
        return trained, encoding, notes

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
        files, notes = {CONFIGURATION: lines.encode()}, []
        try:
            files[TOKENIZER_JSON] = tokenizer_json(trained).encode()
        except TrainingError as error:
            notes.append(f"no tokenizer.json was written: {error}")
        # The rank file is last, so that its presence means that all files are complete.
        write_files(self.folder, files | {file: ranks})
        return notes
