"""Read documents from files: plain text, lines, JSON Lines or Parquet, also compressed."""

from __future__ import annotations

import codecs
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Literal

from bytepair_tools.shared.failure import USAGE, Failure, reason
from bytepair_tools.texts.opening import CHUNK_BYTES, STANDARD_INPUT, opened, shown
from bytepair_tools.texts.parquet_rows import parquet_rows

if TYPE_CHECKING:
    import pyarrow

Format = Literal["text", "lines", "jsonl", "parquet"]
Invalid = Literal["reject", "replace", "skip"]


_UTF8: Final = codecs.getincrementaldecoder("utf-8")
_COMPRESSED: Final = (".gz", ".zst", ".zstd")
_FORMATS: Final[dict[str, Format]] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
}


@dataclass
class Documents:
    """Reads documents, each as the pieces of its text.

    Attributes:
        format: The format of files; None to detect it from the file name.
        column: The key (JSON Lines) or column (Parquet) of the text.
        invalid: The handling of documents that are not UTF-8.
        by: The key or column of labels, by which documents are grouped; None for none.
        label: The label of the last document read; "" without `by`.
        replaced: Number of documents with replaced bytes that were not UTF-8.
        skipped: Number of skipped documents.
    """

    format: Format | None = None
    column: str = "text"
    invalid: Invalid = "reject"
    by: str | None = None
    label: str = field(default="", init=False)
    replaced: int = field(default=0, init=False)
    skipped: int = field(default=0, init=False)

    def read(self, name: str) -> Iterator[Iterable[str]]:
        """Yield the documents of a file.

        Args:
            name: The file name; STANDARD_INPUT for standard input.
        Raises:
            Failure: The file cannot be read or is invalid, or is not UTF-8 and `invalid` is
                "reject".
        """
        if self.by is not None and self.format_of(name) in ("text", "lines"):
            raise Failure(f"{shown(name)}: plain text has no {self.by!r} to group by")
        with _named(name):
            if self.format_of(name) == "parquet":
                yield from self._rows(name)
                return
            with opened(name) as file:
                match self.format_of(name):
                    case "text":
                        yield from self._whole(file, name)
                    case "lines":
                        yield from self._lines(file, name)
                    case _:
                        yield from self._json_lines(file, name)

    def rows(
        self, name: str, others: Sequence[str]
    ) -> Iterator[tuple[list[str | None], pyarrow.RecordBatch]]:
        """Yield the rows of a Parquet file; see `parquet_rows`."""

        def decode(data: bytes, row: str) -> str | None:
            return self._decoded(data, row, 0)

        return parquet_rows(name, self.column, others, decode)

    def size(self, names: Sequence[str]) -> int | None:
        """Return the number of bytes of text in files; None if it is not known before reading.

        Raises:
            Failure: A file does not exist, or standard input is given twice.
        """
        if names.count(STANDARD_INPUT) > 1:
            raise Failure(f"{shown(STANDARD_INPUT)}: given twice", USAGE)
        size, is_known = 0, True
        for name in names:
            if name == STANDARD_INPUT:
                is_known = False
                continue
            with _named(name):
                size += Path(name).stat().st_size
            is_text = self.format_of(name) in ("text", "lines")
            is_known &= is_text and Path(name).suffix not in _COMPRESSED
        return size if is_known else None

    def format_of(self, name: str) -> Format:
        """Return the format of a file: the given one, or by its name."""
        if self.format is not None:
            return self.format
        path = Path(name)
        ending = Path(path.stem).suffix if path.suffix in _COMPRESSED else path.suffix
        return _FORMATS.get(ending, "text")

    def _whole(self, file: BinaryIO, name: str) -> Iterator[Iterable[str]]:
        """Yield the file as one document; read at once only if it may have to be skipped."""
        if self.invalid == "skip":
            text = self._decoded(file.read(), name, 0)
            if text is not None:
                yield (text,)
        else:
            yield self._pieces(file, name)

    def _pieces(self, file: BinaryIO, name: str) -> Iterator[str]:
        decoder = _UTF8("strict")
        read = 0
        chunk = b"a first one"
        while chunk:
            # `read` cannot convert errors here: pieces are read after it has yielded them.
            with _named(name):
                chunk = file.read(CHUNK_BYTES)
            state = decoder.getstate()
            try:
                text = decoder.decode(chunk, final=not chunk)
            except UnicodeDecodeError as error:
                if self.invalid == "reject":
                    raise _not_utf8(name, read - len(state[0]) + error.start) from None
                self.replaced += 1
                decoder = _UTF8("replace")
                decoder.setstate(state)
                text = decoder.decode(chunk, final=not chunk)
            yield text
            read += len(chunk)

    def _lines(self, file: BinaryIO, name: str) -> Iterator[Iterable[str]]:
        """Yield each line, with its line end, as a document."""
        offset = 0
        for line in file:
            text = self._decoded(line, name, offset)
            if text is not None:
                yield (text,)
            offset += len(line)

    def _json_lines(self, file: BinaryIO, name: str) -> Iterator[Iterable[str]]:
        offset = 0
        for number, line in enumerate(file, 1):
            text = self._decoded(line, name, offset)
            offset += len(line)
            if text is not None and number == 1:
                text = text.removeprefix("\ufeff")  # a byte order mark
            if text is None or not text.strip():
                continue
            source = f"{shown(name)}, line {number}"
            try:
                row = json.loads(text)
            except (ValueError, RecursionError):
                raise Failure(f"{source}: not JSON") from None
            value = row.get(self.column) if isinstance(row, dict) else None
            if not isinstance(value, str):
                raise Failure(
                    f"{source}: no text under {self.column!r}; set --column to the key, or remove "
                    "such rows"
                )
            value = self._without_surrogates(value, source)
            if value is not None:
                self._set_label(row, source)
                yield (value,)

    def _set_label(self, row: dict[str, Any], source: str) -> None:
        """Set `label` to that of a row."""
        if self.by is not None:
            label = row.get(self.by)
            if not isinstance(label, str):
                raise Failure(f"{source}: no text under {self.by!r} to group by")
            self.label = label

    def _rows(self, name: str) -> Iterator[Iterable[str]]:
        number = 0
        others = () if self.by is None else (self.by,)
        for texts, labels in self.rows(name, others):
            try:
                rows = labels.to_pylist() if others else [{}] * len(texts)
            except UnicodeDecodeError:
                raise Failure(f"{shown(name)}: not UTF-8: column {self.by!r}") from None
            for text, row in zip(texts, rows, strict=True):
                number += 1
                if text is None:
                    continue
                self._set_label(row, f"{shown(name)}, row {number}")
                yield (text,)

    def _decoded(self, data: bytes, name: str, offset: int) -> str | None:
        """Decode a document; None if it is skipped."""
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            if self.invalid == "reject":
                raise _not_utf8(name, offset + error.start) from None
            return self._repaired(lambda: data.decode(errors="replace"))

    def _without_surrogates(self, text: str, source: str) -> str | None:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            if self.invalid == "reject":
                raise Failure(
                    f"{source}: a lone surrogate at character {error.start} of its text; use "
                    "--invalid replace or skip"
                ) from None
            return self._repaired(
                lambda: text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            )
        return text

    def _repaired(self, repair: Callable[[], str]) -> str | None:
        if self.invalid == "skip":
            self.skipped += 1
            return None
        self.replaced += 1
        return repair()


def invalid_utf8_note(replaced: int, skipped: int) -> str:
    """Return a note about documents that were not UTF-8; "" if there were none."""
    if not replaced and not skipped:
        return ""
    return f"not UTF-8: {replaced} documents with replacements, {skipped} skipped"


def _not_utf8(name: str, offset: int) -> Failure:
    return Failure(
        f"{shown(name)}: not UTF-8: byte {offset} starts no character; convert it first, or use "
        "--invalid replace or skip"
    )


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Convert errors of reading to Failure with the name of the file."""
    try:
        yield
    except OSError as error:
        raise Failure(f"{shown(name)}: {reason(error)}") from None
    except (EOFError, zlib.error) as error:
        raise Failure(f"{shown(name)}: incomplete: {error}") from None
