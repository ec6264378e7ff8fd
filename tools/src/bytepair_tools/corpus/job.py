"""A job over a corpus, and the folder of its results.

The folder contains `_job.json` with the definition of the job, a file `part-NNNNN.parquet` for each
result, and `_SUCCESS` once all are complete. Files are written atomically and contain the job's
fingerprint, so an interrupted job continues with the missing ones. A file without a result may
change in between, because a job ends at a file that it rejects.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from stat import S_ISREG
from typing import Any, Final, Literal, Self

from bytepair_tools.corpus.lock import LOCK_FILE
from bytepair_tools.counts.file import metadata_of
from bytepair_tools.shared.failure import Failure, reason
from bytepair_tools.shared.files import write_atomically
from bytepair_tools.shared.folders import files_below

Task = Literal["count-pretokens", "encode", "count"]

JOB_FILE: Final = "_job.json"
SUCCESS_FILE: Final = "_SUCCESS"
#: The folder of intermediate results, which is removed at the end.
INTERMEDIATE: Final = "_partitions"
#: The metadata key of results: the job's fingerprint and the outcome.
KEY: Final = b"bytepair.corpus"
_VERSION: Final = 2


@dataclass(frozen=True)
class Outcome:
    """The outcome of one partition.

    Attributes:
        documents: Number of documents, without skipped ones.
        text_bytes: Number of UTF-8 bytes of their texts.
        tokens: Number of their tokens; 0 if pre-tokens are counted.
        replaced: Number of documents with replaced bytes that were not UTF-8.
        skipped: Number of skipped documents.
    """

    documents: int = 0
    text_bytes: int = 0
    tokens: int = 0
    replaced: int = 0
    skipped: int = 0

    @classmethod
    def total(cls, outcomes: Sequence[Outcome]) -> Self:
        """Return the sum of outcomes."""
        columns = zip(*(asdict(outcome).values() for outcome in outcomes), strict=True)
        return cls(*map(sum, columns)) if outcomes else cls()


@dataclass(frozen=True)
class Job:
    """The definition of a job.

    Attributes:
        task: The task.
        settings: All settings that affect the results, as JSON values.
        partitions: The files, which all workers must be able to read.
        sizes: The size of each file in bytes.
        modified_ns: The time when each file was last modified; 0 for a named pipe.
    """

    task: Task
    settings: Mapping[str, Any]
    partitions: tuple[str, ...]
    sizes: tuple[int, ...]
    modified_ns: tuple[int, ...]

    @classmethod
    def over(cls, names: Sequence[str], task: Task, settings: Mapping[str, Any]) -> Self:
        """Create a job over files, and over all files in folders.

        Raises:
            Failure: A file does not exist or is given twice, or a folder has no files, cannot be
                read, or has other things than files and folders in it.
        """
        try:
            files = [str(file) for name in names for file in _files(Path(name))]
            if twice := [file for file, times in Counter(files).items() if times > 1]:
                raise Failure(f"{twice[0]}: given twice")
            found = [Path(file).stat() for file in files]
        except OSError as error:
            raise Failure(f"{error.filename}: {reason(error)}") from None
        sizes = tuple(s.st_size for s in found)
        modified = tuple(s.st_mtime_ns if S_ISREG(s.st_mode) else 0 for s in found)
        return cls(task, settings, tuple(files), sizes, modified)

    @classmethod
    def of_folder(cls, folder: Path) -> Self:
        """Read the job of a folder, which `begin` has created or compared."""
        known = json.loads((folder / JOB_FILE).read_bytes())
        files = (tuple(known[key]) for key in ("partitions", "sizes", "modified_ns"))
        return cls(known["task"], known["settings"], *files)

    @cached_property
    def fingerprint(self) -> str:
        """The hash of the definition, without the sizes and times of files, which may change."""
        definition = [_VERSION, self.task, self.settings, self.partitions]
        text = json.dumps(definition, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def begin(self, folder: Path) -> None:
        """Write the definition to the folder, or check that its results belong to it.

        Raises:
            Failure: The folder has results of another job, has other files, or cannot be written.
        """
        known = folder / JOB_FILE
        try:
            if not known.exists() and any(path.name != LOCK_FILE for path in folder.iterdir()):
                raise Failure(f"{folder}: has other files in it; use another --output")
            # A job without results, such as one with a wrong column, is replaced.
            if any(folder.rglob("part-*.parquet")):
                self._compare(folder, json.loads(known.read_bytes()))
            write_atomically(known, [json.dumps(asdict(self), indent=1).encode()])
            for leftover in folder.rglob(".part-*.parquet-*"):  # from workers that died
                leftover.unlink()
        except OSError as error:
            raise Failure(f"{error.filename or folder}: {reason(error)}") from None
        except (ValueError, KeyError, TypeError, AttributeError):
            raise Failure(f"{known}: damaged; use another --output") from None

    def _compare(self, folder: Path, known: Mapping[str, Any]) -> None:
        own = json.loads(json.dumps(asdict(self)))
        differ = [key for key in ("task", "partitions") if known[key] != own[key]]
        differ += sorted(
            key
            for key in known["settings"].keys() | own["settings"].keys()
            if known["settings"].get(key) != own["settings"].get(key)
        )
        if differ:
            raise Failure(
                f"{folder}: belongs to a job with other {', '.join(differ)}; use the same ones to "
                "continue it, or another --output"
            )
        for key in ("sizes", "modified_ns"):
            for number, (before, now) in enumerate(zip(known[key], own[key], strict=True)):
                if before != now and self._has_result(folder, number):
                    file = self.partitions[number]
                    raise Failure(f"{file}: has changed since an earlier run; use another --output")

    def _has_result(self, folder: Path, number: int) -> bool:
        """Whether a result depends on a partition."""
        if self.task != "count-pretokens":
            return part(folder, number).exists()
        is_counted = part(folder / INTERMEDIATE, number).exists()
        return is_counted or any(folder.glob("part-*.parquet"))

    def metadata(self, outcome: Outcome) -> dict[bytes, bytes]:
        """Return the metadata of a file of results."""
        return {KEY: json.dumps({"job": self.fingerprint, **asdict(outcome)}).encode()}

    def outcome(self, path: Path) -> Outcome | None:
        """Read the outcome from a file of results; None if it does not exist.

        Raises:
            Failure: The file is damaged, or belongs to another job.
        """
        return self.owned(path, metadata_of(path)) if path.exists() else None

    def owned(self, path: Path, metadata: Mapping[bytes, bytes]) -> Outcome:
        """Return the outcome in the metadata of a file of results.

        Raises:
            Failure: The file belongs to another job.
        """
        try:
            fields = json.loads(metadata[KEY])
            owner = fields.pop("job")
            outcome = Outcome(**fields)
        except (ValueError, KeyError, TypeError, AttributeError):
            owner, outcome = "", Outcome()
        if owner != self.fingerprint:
            raise Failure(
                f"{path}: does not belong to this job; remove it, or use another --output"
            )
        return outcome


def part(folder: Path, number: int) -> Path:
    """Return the path of a file of results."""
    return folder / f"part-{number:05}.parquet"


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path.absolute()]
    found = [file.absolute() for file in files_below(path)]
    if not found:
        raise Failure(f"{path}: contains no files")
    return found
