"""Read texts and other columns from Parquet files."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from bytepair_tools.shared.failure import Failure, reason
from bytepair_tools.texts.opening import STANDARD_INPUT, shown

if TYPE_CHECKING:
    import pyarrow

#: Number of rows of a batch.
ROWS: Final = 1024

#: Decodes the bytes of a row, which it names in messages; None if the row is skipped.
Decode = Callable[[bytes, str], str | None]


def parquet_rows(
    name: str, column: str, others: Sequence[str], decode: Decode
) -> Iterator[tuple[list[str | None], pyarrow.RecordBatch]]:
    """Yield the rows of a file, ROWS at a time.

    Args:
        name: The file name; STANDARD_INPUT for standard input.
        column: The column of texts.
        others: Further columns.
        decode: Decodes texts of which some are not UTF-8.
    Yields:
        The texts, None for skipped rows, and the other columns of all these rows in the requested
        order; at least once, so that the types of these columns are known.
    Raises:
        Failure: The file cannot be read, lacks a column, or has a row without a text; or `decode`
            raised it.
    """
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise Failure(
            f"{shown(name)}: reading Parquet needs pyarrow: pip install bytepair-tools[parquet]"
        ) from None
    source = io.BytesIO(sys.stdin.buffer.read()) if name == STANDARD_INPUT else name
    row = 0
    try:
        with parquet.ParquetFile(source) as file:
            known = file.schema_arrow.names
            if column not in known:
                raise Failure(
                    f"{shown(name)}: no column {column!r}; set --column to one of "
                    f"{', '.join(known)}"
                )
            if missing := [other for other in others if other not in known]:
                raise Failure(f"{shown(name)}: no column {missing[0]!r}; it has {', '.join(known)}")
            columns = list(dict.fromkeys((column, *others)))
            if twice := [each for each in columns if known.count(each) > 1]:
                raise Failure(f"{shown(name)}: several columns {twice[0]!r}; rename them")
            for batch in file.iter_batches(batch_size=ROWS, columns=columns):
                values, kept = batch.column(column), batch.select(list(others))
                kind: type = str
                try:
                    texts = values.to_pylist()
                except UnicodeDecodeError:
                    kind = bytes
                    try:
                        texts = values.cast(pyarrow.large_binary()).to_pylist()
                    except pyarrow.ArrowNotImplementedError:  # lists or structs
                        texts = [None] * len(values)
                for number, text in enumerate(texts, row + 1):
                    if not isinstance(text, kind):
                        value = values[number - row - 1]
                        found = value.type if value.is_valid else "null"
                        raise Failure(
                            f"{shown(name)}, row {number}: no text in column {column!r}, but "
                            f"{found}; set --column to a column of text, or remove such rows"
                        )
                if kind is bytes:
                    rows = enumerate(texts, row + 1)
                    texts = [decode(data, f"{shown(name)}, row {number}") for number, data in rows]
                    for place, field in enumerate(kept.schema):
                        if field.name == column:
                            kept = kept.set_column(place, field, pyarrow.array(texts, field.type))
                row += len(values)
                yield texts, kept
            if not row:
                empty = file.schema_arrow.empty_table().select(list(others))
                yield (
                    [],
                    pyarrow.RecordBatch.from_arrays(
                        [column.combine_chunks() for column in empty.columns], schema=empty.schema
                    ),
                )
    except pyarrow.ArrowException as error:
        raise Failure(f"{shown(name)}: not a Parquet file: {error}") from None
    except OSError as error:
        raise Failure(f"{shown(name)}: {reason(error)}") from None
