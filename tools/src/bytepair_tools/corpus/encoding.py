"""Encode or count the documents of a partition: one row of results per document, in order."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bytepair_engine import BytepairError, Encoding, SpecialTokenFound

from bytepair_tools.corpus.job import Job, Outcome, part
from bytepair_tools.shared.encodings import one_encoding
from bytepair_tools.shared.failure import Failure
from bytepair_tools.shared.files import atomic_file
from bytepair_tools.texts.documents import Documents
from bytepair_tools.texts.parquet_rows import ROWS

if TYPE_CHECKING:
    import pyarrow

#: Task to the name of the column of results.
COLUMNS: Final = {"encode": "ids", "count": "count"}
#: Number of tokens from which a row group is written.
_GROUP_TOKENS: Final = 1 << 22


def encode_partition(job: Job, folder: Path, number: int) -> Outcome:
    """Encode or count one partition.

    Raises:
        Failure: The partition cannot be read, a text is rejected, or the result cannot be written.
    """
    import pyarrow
    from pyarrow import parquet

    name, settings = job.partitions[number], job.settings
    documents = Documents(settings["format"], settings["column"], settings["invalid"])
    encode = _encoder(job)
    rows = text_bytes = tokens = 0
    writer: Any = None
    group: list[pyarrow.RecordBatch] = []
    held = 0
    with ExitStack() as stack:
        file = stack.enter_context(atomic_file(part(folder, number)))
        for texts, kept in _rows(documents, name, settings["keep"]):
            try:
                result, found = encode(texts)
            except _Rejected as rejected:
                document = f"{name}, document {rows + rejected.number}"
                raise Failure(f"{document}: {_message(rejected.error)}") from None
            group.append(_with_column(kept, COLUMNS[job.task], result))
            rows, held, tokens = rows + len(texts), held + found, tokens + found
            text_bytes += sum(len(text.encode()) for text in texts)
            if writer is None:
                writer = parquet.ParquetWriter(file, group[0].schema, compression="zstd")
                stack.enter_context(writer)
            if held >= _GROUP_TOKENS:
                writer.write_table(pyarrow.Table.from_batches(group))
                group, held = [], 0
        if group:
            writer.write_table(pyarrow.Table.from_batches(group))
        outcome = Outcome(rows, text_bytes, tokens, documents.replaced, documents.skipped)
        writer.add_key_value_metadata(job.metadata(outcome))
    return outcome


class _Rejected(Exception):
    """A text was rejected.

    Attributes:
        number: Index of the text in its batch, from 1.
        error: The error.
    """

    def __init__(self, number: int, error: BytepairError) -> None:
        super().__init__(str(error))
        self.number = number
        self.error = error


def _message(error: BytepairError) -> str:
    if not isinstance(error, SpecialTokenFound):
        return str(error)
    return (
        f"it contains the special token {error.token!r} at byte {error.byte_offset}; "
        "allow it by --allowed-special, or treat all as ordinary text by --disallowed-special "
        "as-text"
    )


def _encoder(job: Job) -> Callable[[list[str]], tuple[pyarrow.Array, int]]:
    """Return a function that converts texts to a column of results and the number of tokens."""
    import pyarrow

    settings = job.settings
    encoding = _encoding(settings["encoding"], settings["fingerprint"])
    allowed = settings["allowed_special"]
    options: dict[str, Any] = {
        "allowed_special": allowed if allowed == "all" else frozenset(allowed),
        "disallowed_special": () if settings["disallowed_special"] == "as-text" else "all",
        "add_special_tokens": settings["add_special_tokens"],
    }

    def each(texts: list[str], work: Callable[..., Any]) -> Iterator[Any]:
        for number, text in enumerate(texts, 1):
            try:
                yield work(text, **options)
            except BytepairError as error:
                raise _Rejected(number, error) from None

    def ids(texts: list[str]) -> tuple[pyarrow.Array, int]:
        values, ends = array("I"), array("i", [0])
        for found in each(texts, encoding.encode_array):
            values.extend(found)
            ends.append(len(values))
        arrow = pyarrow.Array.from_buffers(
            pyarrow.uint32(), len(values), [None, pyarrow.py_buffer(values)]
        )
        offsets = pyarrow.Array.from_buffers(
            pyarrow.int32(), len(ends), [None, pyarrow.py_buffer(ends)]
        )
        return pyarrow.ListArray.from_arrays(offsets, arrow), len(values)

    def counts(texts: list[str]) -> tuple[pyarrow.Array, int]:
        found = list(each(texts, encoding.count))
        return pyarrow.array(found, pyarrow.int64()), sum(found)

    return ids if job.task == "encode" else counts


@lru_cache(maxsize=1)
def _encoding(name: str, fingerprint: str) -> Encoding:
    """Load the encoding; a worker caches it between partitions."""
    encoding = one_encoding(name)
    if encoding.fingerprint != fingerprint:
        raise Failure(
            f"{name}: has the fingerprint {encoding.fingerprint} on this worker, and the job has "
            f"{fingerprint}: all workers need the same files"
        )
    return encoding


def _rows(
    documents: Documents, name: str, keep: list[str]
) -> Iterator[tuple[list[str], pyarrow.RecordBatch | None]]:
    """Yield batches of texts with the kept columns; at least one, which determines the schema."""
    if documents.format_of(name) == "parquet":
        import pyarrow

        for rows, kept in documents.rows(name, keep):
            texts = [text for text in rows if text is not None]
            if len(texts) < len(rows):
                kept = kept.filter(pyarrow.array([text is not None for text in rows]))
            yield texts, kept
        return
    texts = []
    for document in documents.read(name):
        texts.append("".join(document))
        if len(texts) == ROWS:
            yield texts, None
            texts = []
    yield texts, None


def _with_column(
    kept: pyarrow.RecordBatch | None, name: str, column: pyarrow.Array
) -> pyarrow.RecordBatch:
    import pyarrow

    if kept is None:
        return pyarrow.RecordBatch.from_arrays([column], names=[name])
    return kept.append_column(name, column)
