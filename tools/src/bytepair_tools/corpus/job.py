"""A job over a corpus: the request, and the folder of its results.

The folder has `_job.json`, which says what is requested; a file `part-NNNNN.parquet` for each
result; and `_SUCCESS` once all are there. A file is there wholly or not at all, and carries the
job's fingerprint, so a job that was stopped continues with what is missing.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal, Self

from bytepair_tools.counts.file import metadata_of
from bytepair_tools.shared.failure import Failure
from bytepair_tools.shared.files import write_whole

Task = Literal["count-pretokens", "encode", "count"]

JOB_FILE: Final = "_job.json"
SUCCESS_FILE: Final = "_SUCCESS"
#: What is between two stages, and removed in the end.
BETWEEN: Final = "_partitions"
#: The key of the metadata of results: the job's fingerprint, and what was done.
KEY: Final = b"bytepair.corpus"
_VERSION: Final = 1


@dataclass(frozen=True)
class Outcome:
    """What was done for one partition.

    Attributes:
        documents: How many there were, without those left out.
        text_bytes: The UTF-8 bytes of their texts.
        tokens: How many tokens they have; 0 where pre-tokens are counted.
        replaced, skipped: How many documents had something replaced, or were left out.
    """

    documents: int = 0
    text_bytes: int = 0
    tokens: int = 0
    replaced: int = 0
    skipped: int = 0

    @classmethod
    def total(cls, outcomes: Sequence[Outcome]) -> Self:
        """All of them together."""
        columns = zip(*(asdict(outcome).values() for outcome in outcomes), strict=True)
        return cls(*map(sum, columns)) if outcomes else cls()


@dataclass(frozen=True)
class Job:
    """What is requested.

    Attributes:
        task: What is done with each document.
        settings: All that the results depend on beside the texts, as JSON has it.
        partitions: The files, which must be where every worker finds them.
        sizes: How many bytes each has.
    """

    task: Task
    settings: Mapping[str, Any]
    partitions: tuple[str, ...]
    sizes: tuple[int, ...]

    @classmethod
    def over(cls, names: Sequence[str], task: Task, settings: Mapping[str, Any]) -> Self:
        """A job over files, and all files of folders.

        Raises:
            Failure: A file is not there, is named twice, or there is none.
        """
        files = [str(file) for name in names for file in _files(Path(name))]
        if twice := [file for file, times in Counter(files).items() if times > 1]:
            raise Failure(f"{twice[0]}: given twice")
        try:
            return cls(task, settings, tuple(files), tuple(Path(f).stat().st_size for f in files))
        except OSError as error:
            raise Failure(f"{error.filename}: {error.strerror}") from None

    @cached_property
    def fingerprint(self) -> str:
        """One name for all of it: the same request has the same name."""
        text = json.dumps(asdict(self) | {"version": _VERSION}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def begin(self, folder: Path) -> None:
        """Make the folder the job's, or find that it is.

        Raises:
            Failure: It is another job's, has other files in it, or cannot be written.
        """
        known = folder / JOB_FILE
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if known.exists():
                self._compare(folder, json.loads(known.read_bytes()))
            elif any(folder.iterdir()):
                raise Failure(f"{folder}: has other files in it; give another --output")
            else:
                write_whole(known, [json.dumps(asdict(self), indent=1).encode()])
            for leftover in folder.rglob(".part-*.parquet-*"):  # of workers that died
                leftover.unlink()
        except OSError as error:
            raise Failure(f"{error.filename or folder}: {error.strerror}") from None
        except (ValueError, KeyError, TypeError, AttributeError):
            raise Failure(f"{known}: damaged; give another --output") from None

    def _compare(self, folder: Path, known: Mapping[str, Any]) -> None:
        asked = json.loads(json.dumps(asdict(self)))
        differ = [key for key in ("task", "partitions", "sizes") if known[key] != asked[key]]
        differ += sorted(
            key
            for key in known["settings"].keys() | asked["settings"].keys()
            if known["settings"].get(key) != asked["settings"].get(key)
        )
        if differ:
            raise Failure(
                f"{folder}: belongs to a job with other {', '.join(differ)}; give the same ones to "
                "continue it, or another --output"
            )

    def metadata(self, outcome: Outcome) -> dict[bytes, bytes]:
        """What a result's file says of itself."""
        return {KEY: json.dumps({"job": self.fingerprint, **asdict(outcome)}).encode()}

    def outcome(self, path: Path) -> Outcome | None:
        """What a result's file says was done; None if it is not there.

        Raises:
            Failure: It is damaged, or another job's.
        """
        if not path.exists():
            return None
        try:
            fields = json.loads(metadata_of(path)[KEY])
            owner = fields.pop("job")
            outcome = Outcome(**fields)
        except (ValueError, KeyError, TypeError, AttributeError):
            owner, outcome = "", Outcome()
        if owner != self.fingerprint:
            raise Failure(
                f"{path}: does not belong to this job; remove it, or give another --output"
            )
        return outcome


def part(folder: Path, number: int) -> Path:
    """Where a result is."""
    return folder / f"part-{number:05}.parquet"


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path.absolute()]
    found = sorted(
        file.absolute()
        for file in path.rglob("*")
        if not file.is_dir()
        and not any(name.startswith((".", "_")) for name in file.relative_to(path).parts)
    )
    if not found:
        raise Failure(f"{path}: contains no files")
    return found
