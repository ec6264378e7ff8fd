"""Convert counts to and from Arrow tables, for Parquet files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from bytepair_engine import TrainingError
from bytepair_engine._core import PretokenCounts
from bytepair_engine.training.counting import Counting

from bytepair_tools.shared.failure import Failure

if TYPE_CHECKING:
    import pyarrow

PRETOKEN: Final = "pretoken"
COUNT: Final = "count"

#: Number of rows of a row group, and of a batch while reading.
GROUP_ROWS: Final = 1 << 18


def schema() -> pyarrow.Schema:
    """Return the schema of the columns, without metadata."""
    import pyarrow

    return pyarrow.schema(
        [
            pyarrow.field(PRETOKEN, pyarrow.large_binary(), nullable=False),
            pyarrow.field(COUNT, pyarrow.int64(), nullable=False),
        ]
    )


def tables(counts: PretokenCounts) -> Iterator[pyarrow.Table]:
    """Yield counts as Arrow tables of at most GROUP_ROWS rows."""
    for start in range(0, len(counts), GROUP_ROWS):
        yield table(counts, start, start + GROUP_ROWS)


def table(counts: PretokenCounts, start: int, stop: int) -> pyarrow.Table:
    """Return the counts from `start` to `stop` as an Arrow table.

    Raises:
        Failure: A count exceeds 2⁶³ - 1.
    """
    import pyarrow

    columns = counts.columns(start, stop)
    if columns is None:
        raise Failure("a pre-token occurs more than 2^63 - 1 times; count fewer texts at once")
    words, offsets, numbers = map(pyarrow.py_buffer, columns)
    rows = len(numbers) // 8
    arrays = [
        pyarrow.Array.from_buffers(pyarrow.large_binary(), rows, [None, offsets, words]),
        pyarrow.Array.from_buffers(pyarrow.int64(), rows, [None, numbers]),
    ]
    return pyarrow.Table.from_arrays(arrays, schema=schema())


def add_table(counting: Counting, rows: pyarrow.RecordBatch | pyarrow.Table, source: str) -> None:
    """Add a table of counts to a counting.

    Args:
        counting: The counting.
        rows: The table.
        source: The name of the table in errors.
    Raises:
        Failure: The table does not have these columns, or contains invalid counts.
    """
    import pyarrow

    if not rows.schema.equals(schema()):
        rows = _cast(rows, source)
    for batch in rows.to_batches() if isinstance(rows, pyarrow.Table) else [rows]:
        words, counts = batch.column(0), batch.column(1)
        if not len(words):
            continue
        _, offsets, data = words.buffers()
        _, numbers = counts.buffers()
        span = slice(8 * words.offset, 8 * (words.offset + len(words) + 1))
        try:
            counting.add_columns(
                b"" if data is None else data.to_pybytes(),
                offsets.to_pybytes()[span],
                numbers.to_pybytes()[8 * counts.offset : 8 * (counts.offset + len(counts))],
            )
        except TrainingError as error:
            raise Failure(f"{source}: {error}") from None


def _cast(rows: Any, source: str) -> Any:
    from pyarrow import types

    kinds = {field.name: field.type for field in rows.schema}
    pretoken, count = kinds.get(PRETOKEN), kinds.get(COUNT)
    is_bytes = pretoken is not None and (
        types.is_binary(pretoken) or types.is_large_binary(pretoken)
    )
    if not is_bytes or count is None or not types.is_int64(count):
        raise Failure(
            f"{source}: not a table of pre-token counts: it must have the columns {PRETOKEN!r} "
            f"(bytes) and {COUNT!r} (64-bit integers)"
        )
    columns = [rows.column(PRETOKEN), rows.column(COUNT)]
    if any(column.null_count for column in columns):
        raise Failure(f"{source}: a pre-token or a count is missing")
    return rows.select([PRETOKEN, COUNT]).cast(schema())
