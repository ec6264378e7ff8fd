"""One training: take the counts, merge, write; stopped and resumed where it must be."""

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
from bytepair_tools.shared.files import write_whole
from bytepair_tools.shared.interrupts import Interrupted, Interrupts


class Source(Protocol):
    """Where the counts come from."""

    @property
    def replaced(self) -> int:
        """How many documents had something replaced that was not UTF-8."""

    @property
    def skipped(self) -> int:
        """How many documents were left out."""

    def count(self, interrupts: Interrupts, *, resume: bool) -> PretokenCounts:
        """The counts; raises Failure where something is refused or interrupted."""

    def keep(self, counts: PretokenCounts, /) -> str:
        """Keep what was counted although the training stops; a sentence that says where it is."""

    def forget(self) -> None:
        """Keep it no longer."""


@dataclass
class Job:
    """What is to be done.

    Attributes:
        folder: Where everything is written; it exists.
        name: The encoding's.
    """

    source: Source
    settings: TrainingSettings
    folder: Path
    name: str
    display: Display

    def run(self, *, resume: bool) -> tuple[Trained, Encoding, list[str]]:
        """Train, and write what came of it.

        Returns:
            The merge table, its encoding, and notes on what was not written.
        Raises:
            Failure: Something was refused, or the person interrupted it. Where texts had been
                counted, there is a checkpoint.
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
        notes = []
        try:
            write_whole(self.folder / "tokenizer.json", [tokenizer_json(trained).encode()])
        except TrainingError as error:
            notes.append(f"no tokenizer.json was written: {error}")
        write_whole(self.folder / "bytepair.toml", [lines.encode()])
        # Last: where it is, everything is.
        write_whole(self.folder / file, [ranks])
        return notes
