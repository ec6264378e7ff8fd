"""Files of pre-token counts as the source of a training."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bytepair_engine._core import PretokenCounts
from bytepair_engine.training.counting import Counting
from bytepair_engine.training.settings import Ties
from bytepair_engine.vocabulary.patterns import GENERAL_PATTERNS, PATTERNS

from bytepair_tools.counts.display import Display
from bytepair_tools.counts.file import Counted, batches, read_counted
from bytepair_tools.counts.reading import temporary_files
from bytepair_tools.counts.table import add_table
from bytepair_tools.shared.failure import INTERRUPTED, Failure
from bytepair_tools.shared.folders import entries, is_folder
from bytepair_tools.shared.interrupts import Interrupted, Interrupts


@dataclass
class CountFiles:
    """Files of counts to train on.

    Attributes:
        names: Files, or folders with `*.parquet` files, in order of first occurrence.
        pattern: The required split pattern, resolved; None for none.
        ties: The tie rule of the training.
        display: Shows the progress.
        folder: The folder of temporary files.
        wanted: Requested number of ordinary tokens, for the display.
        memory_bytes: Maximum memory of counts, above which they go to temporary files; None for no
            limit.
        replaced: Number of counted documents with replaced bytes that were not UTF-8.
        skipped: Number of documents skipped when counting.
    """

    names: Sequence[str]
    pattern: str | None
    ties: Ties
    display: Display
    folder: Path
    wanted: int = 256
    memory_bytes: int | None = None
    replaced: int = field(default=0, init=False)
    skipped: int = field(default=0, init=False)

    def count(self, interrupts: Interrupts, *, resume: bool) -> PretokenCounts:
        """Sum the counts.

        Raises:
            Failure: A file is not a file of counts, or does not match the others; a part of a run
                is missing or given twice; or the user interrupted the work.
        """
        if resume:
            raise Failure("--resume applies to texts, not to --counts")
        files = {path: read_counted(path) for path in _files(self.names)}
        self._check(files)
        self.replaced = sum(counted.replaced for counted in files.values())
        self.skipped = sum(counted.skipped for counted in files.values())
        with (
            Counting(None, memory_bytes=self.memory_bytes, folder=str(self.folder)) as counting,
            temporary_files(),
        ):
            try:
                for path in files:
                    for batch in batches(path):
                        add_table(counting, batch, str(path))
                        self.display.counted(counting.bytes, self.wanted)
                        interrupts.check()
                return counting.counts()
            except Interrupted:
                raise Failure("interrupted; the counts are unchanged", INTERRUPTED) from None

    def keep(self, _counts: PretokenCounts, /) -> str:
        """Return a message: nothing needs to be saved."""
        return "the counts are unchanged; run the command again to start over"

    def forget(self) -> None:
        """Do nothing: nothing was saved."""

    def _check(self, files: dict[Path, Counted]) -> None:
        first, of_first = next(iter(files.items()))
        runs: dict[str, dict[int, Path]] = defaultdict(dict)
        for path, counted in files.items():
            if counted.pattern != self.pattern:
                raise Failure(
                    f"{path}: its pre-tokens were split by {_pattern(counted.pattern)}, not by "
                    f"{_pattern(self.pattern)}: count the texts again, or train with that pattern"
                )
            if counted.special_tokens:
                raise Failure(
                    f"{path}: special tokens were removed from its texts; count the texts again"
                )
            if counted.invalid != of_first.invalid:
                raise Failure(
                    f"{path}: was counted with '--invalid {counted.invalid}', and {first} with "
                    f"'--invalid {of_first.invalid}': count all texts with the same option"
                )
            if counted.parts > 1:
                if self.ties == "first-seen":
                    raise Failure(
                        f"{path}: the order of first occurrence is not known across the "
                        f"{counted.parts} parts of a run; count into one part, or train with "
                        "'--ties lowest'"
                    )
                other = runs[counted.run].setdefault(counted.part, path)
                if other != path:
                    raise Failure(f"{path}: is the same part of the same counts as {other}")
        for parts in runs.values():
            some = next(iter(parts.values()))
            wanted = files[some].parts
            if missing := sorted(set(range(wanted)) - set(parts)):
                raise Failure(
                    f"{some}: belongs to a run of {wanted} parts; missing: "
                    f"{', '.join(str(part) for part in missing[:5])}; pass all parts"
                )


def _files(names: Sequence[str]) -> Iterator[Path]:
    """Yield the files.

    Raises:
        Failure: A folder has none or cannot be read, or a file is given twice or not a regular
            file.
    """
    seen: set[Path] = set()
    for name in names:
        given = Path(name)
        found = [given]
        if is_folder(given):
            found = [path for path in entries(given) if path.suffix == ".parquet"]
        if not found:
            raise Failure(f"{given}: contains no *.parquet")
        for path in found:
            if is_folder(path):
                raise Failure(f"{path}: a folder, not a Parquet file")
            if (known := path.resolve()) in seen:
                raise Failure(f"{path}: given twice; its counts would be summed twice")
            seen.add(known)
            yield path


def _pattern(pattern: str | None) -> str:
    if pattern is None:
        return "no pattern"
    known = PATTERNS | GENERAL_PATTERNS
    return next((name for name, regex in known.items() if regex == pattern), repr(pattern))
