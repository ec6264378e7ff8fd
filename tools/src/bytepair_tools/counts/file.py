"""Pre-token counts in Parquet: written by counting, read by training.

A row is a pre-token, as bytes, and how often it occurs; rows are in the order of first occurrence.
The file's metadata says what was counted, so that counts of other pre-tokens are rejected. Counts
of one corpus may be in several files, which then are the parts of one *run*: all of them, or none.
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
from bytepair_tools.shared.failure import Failure
from bytepair_tools.shared.files import whole_file
from bytepair_tools.texts.documents import Invalid

if TYPE_CHECKING:
    import pyarrow
    from pyarrow import parquet

#: The key of the metadata below.
KEY: Final = b"bytepair.pretoken_counts"
VERSION: Final = 1


@dataclass(frozen=True)
class Counted:
    """What the counts of a file are of.

    Attributes:
        pattern: The split pattern, resolved; None for none.
        invalid: What became of documents that are not UTF-8.
        special_tokens: Which special tokens were cut out of the texts: none, in this version.
        run: What all parts of one run have, and no other run has; "" for a run of one part.
        part: Which part of its run it is, from 0.
        parts: How many there are.
        replaced, skipped: How many documents had something replaced, or were left out.
        text_bytes: How many bytes of text were counted.
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
        """It, as the metadata of a file."""
        return {KEY: json.dumps({"version": VERSION, **asdict(self)}).encode()}


def check_installed() -> None:
    """Raises Failure: Parquet needs what is not installed."""
    if find_spec("pyarrow") is None:
        raise Failure(
            "counts are kept in Parquet, which needs pyarrow: pip install bytepair-tools[parquet]"
        )


def write_counts(path: Path, counts: PretokenCounts, counted: Counted) -> None:
    """Write a file of counts.

    Raises:
        Failure: It cannot be written, and is not there; or a count is over 2⁶³ - 1.
    """
    write_groups(path, counted.metadata(), tables(counts))


def write_groups(path: Path, metadata: dict[bytes, bytes], groups: Iterator[pyarrow.Table]) -> None:
    """Write tables of counts, each as a row group of one file.

    Raises:
        Failure: It cannot be written, and is not there.
    """
    from pyarrow import parquet

    with (
        whole_file(path) as file,
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
    """What the counts of a file are of.

    Raises:
        Failure: It cannot be read, or is no file of counts that this version knows.
    """
    found = metadata_of(path).get(KEY)
    if found is None:
        raise Failure(
            f"{path}: its metadata do not name the split pattern of its pre-tokens: it was not "
            "written by bytepair"
        )
    try:
        fields = json.loads(found)
        version = fields.pop("version")
        if version != VERSION:
            raise Failure(f"{path}: has version {version!r}; this program reads {VERSION}")
        return Counted(**fields | {"special_tokens": tuple(fields["special_tokens"])})
    except (ValueError, KeyError, TypeError, AttributeError):
        raise Failure(f"{path}: its metadata {KEY.decode()!r} is damaged; count again") from None


def metadata_of(path: Path) -> dict[bytes, bytes]:
    """The metadata of a Parquet file; {} if it has none.

    Raises:
        Failure: It cannot be read.
    """
    with opened_counts(path) as file:
        metadata: dict[bytes, bytes] = file.metadata.metadata or {}
        return metadata


def batches(path: Path) -> Iterator[pyarrow.RecordBatch]:
    """The rows of a file of counts, this many at once.

    Raises:
        Failure: It cannot be read.
    """
    with opened_counts(path) as file:
        yield from file.iter_batches(batch_size=GROUP_ROWS)


@contextmanager
def opened_counts(path: Path) -> Iterator[parquet.ParquetFile]:
    """A Parquet file, open for as long as the block runs.

    Raises:
        Failure: It cannot be read, now or within the block.
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
        # Arrow's own errors of input, such as a wrong checksum, have no number.
        if isinstance(error, OSError) and error.errno is not None:
            raise Failure(f"{path}: {error.strerror}") from None
        raise Failure(f"{path}: not a Parquet file, or damaged: {error}") from None
