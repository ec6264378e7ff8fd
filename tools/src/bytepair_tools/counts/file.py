"""Read and write pre-token counts in Parquet.

A row is a pre-token, as bytes, and its count, in order of first occurrence. The metadata describe
the pre-tokens, so that files which do not match are rejected. Counts of one corpus may be divided
into several files, the parts of a *run*, which can only be used together.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bytepair_engine._core import PretokenCounts

from bytepair_tools.counts.table import GROUP_ROWS, schema, tables
from bytepair_tools.shared.failure import Failure, reason
from bytepair_tools.shared.files import atomic_file
from bytepair_tools.texts.documents import Invalid

if TYPE_CHECKING:
    import pyarrow
    from pyarrow import parquet

#: The key of the metadata below.
KEY: Final = b"bytepair.pretoken_counts"
VERSION: Final = 1


@dataclass(frozen=True)
class Counted:
    """The description of a file of counts.

    Attributes:
        pattern: The split pattern, resolved; None for none.
        invalid: The handling of documents that are not UTF-8.
        special_tokens: Special tokens that were removed from the texts; none in this version.
        run: The id of the run; "" for a run with one part.
        part: The index of the part, from 0.
        parts: The number of parts.
        replaced: Number of documents with replaced bytes that were not UTF-8.
        skipped: Number of skipped documents.
        text_bytes: Number of bytes of text counted.
    """

    pattern: str | None
    invalid: Invalid
    special_tokens: tuple[str, ...] = ()
    run: str = ""
    part: int = 0
    parts: int = 1
    replaced: int = 0
    skipped: int = 0
    text_bytes: int = 0

    def metadata(self) -> dict[bytes, bytes]:
        """Return the description as metadata of a file."""
        return {KEY: json.dumps({"version": VERSION, **asdict(self)}).encode()}


def check_installed() -> None:
    """Raise Failure if the dependency of Parquet is not installed."""
    if find_spec("pyarrow") is None:
        raise Failure(
            "counts are stored in Parquet, which needs pyarrow: pip install bytepair-tools[parquet]"
        )


def write_counts(path: Path, counts: PretokenCounts, counted: Counted) -> None:
    """Write a file of counts.

    Raises:
        Failure: The file cannot be written, or a count exceeds 2⁶³ - 1; there is no file then.
    """
    write_groups(path, counted.metadata(), tables(counts))


def write_groups(path: Path, metadata: dict[bytes, bytes], groups: Iterator[pyarrow.Table]) -> None:
    """Write tables of counts, each as a row group of one file.

    Raises:
        Failure: The file cannot be written; there is no file then.
    """
    from pyarrow import parquet

    with (
        atomic_file(path) as file,
        parquet.ParquetWriter(
            file,
            schema().with_metadata(metadata),
            compression="zstd",
            use_dictionary=False,
            write_page_checksum=True,
        ) as writer,
    ):
        for group in groups:
            writer.write_table(group, row_group_size=max(1, len(group)))


def read_counted(path: Path) -> Counted:
    """Read the description of a file of counts.

    Raises:
        Failure: The file cannot be read, or is not a file of counts of a supported version.
    """
    found = metadata_of(path).get(KEY)
    if found is None:
        raise Failure(
            f"{path}: its metadata do not contain the split pattern of its pre-tokens: it was not "
            "written by bytepair"
        )
    try:
        fields = json.loads(found)
        version = fields.pop("version")
        if version != VERSION:
            raise Failure(f"{path}: has version {version!r}; this program supports {VERSION}")
        return Counted(**fields | {"special_tokens": tuple(fields["special_tokens"])})
    except (ValueError, KeyError, TypeError, AttributeError):
        raise Failure(f"{path}: its metadata {KEY.decode()!r} is damaged; count again") from None


def metadata_of(path: Path) -> dict[bytes, bytes]:
    """Read the metadata of a Parquet file; {} if it has none.

    Raises:
        Failure: The file cannot be read.
    """
    with opened_counts(path) as file:
        metadata: dict[bytes, bytes] = file.metadata.metadata or {}
        return metadata


def batches(path: Path) -> Iterator[pyarrow.RecordBatch]:
    """Yield the rows of a file of counts, GROUP_ROWS at a time.

    Raises:
        Failure: The file cannot be read.
    """
    with opened_counts(path) as file:
        yield from file.iter_batches(batch_size=GROUP_ROWS)


@contextmanager
def opened_counts(path: Path) -> Iterator[parquet.ParquetFile]:
    """Open a Parquet file for the duration of the block.

    Raises:
        Failure: The file cannot be read, on opening or within the block.
    """
    check_installed()
    from pyarrow import ArrowException, parquet

    try:
        with (
            path.open("rb") as source,
            parquet.ParquetFile(source, page_checksum_verification=True) as file,
        ):
            yield file
    except (OSError, ArrowException) as error:
        # Arrow's own input errors, such as a wrong checksum, have no errno.
        if isinstance(error, OSError) and error.errno is not None:
            raise Failure(f"{path}: {reason(error)}") from None
        raise Failure(f"{path}: not a Parquet file, or damaged: {error}") from None
