"""Documents from files: plain text, lines, JSON Lines or Parquet, compressed or not."""

from __future__ import annotations

import codecs
import json
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal

from bytepair_tools.shared.failure import Failure
from bytepair_tools.texts.opening import CHUNK_BYTES, STANDARD_INPUT, opened, shown
from bytepair_tools.texts.parquet_rows import parquet_rows

Format = Literal["text", "lines", "jsonl", "parquet"]
Invalid = Literal["refuse", "replace", "skip"]


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
        format: None to go by the file's name.
        column: The key or column of JSON Lines and Parquet.
        invalid: What becomes of a document that is not UTF-8.
        by: The key or column of theirs that says what kind of text a document is.
        label: What it says of the document that was read last; "" where none was requested.
        replaced: How many documents had something replaced.
        skipped: How many were left out.
    """

    format: Format | None = None
    column: str = "text"
    invalid: Invalid = "refuse"
    by: str | None = None
    label: str = field(default="", init=False)
    replaced: int = field(default=0, init=False)
    skipped: int = field(default=0, init=False)

    def read(self, name: str) -> Iterator[Iterable[str]]:
        """The documents of a file.

        Args:
            name: The file's; STANDARD_INPUT for standard input.
        Raises:
            Failure: It cannot be read, is not what it must be, or is not UTF-8 where that is
                refused.
        """
        if self.by is not None and self.format_of(name) in ("text", "lines"):
            raise Failure(f"{shown(name)}: plain text has no {self.by!r} by which to group")
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

    def size(self, names: Iterable[str]) -> int | None:
        """How many bytes of text there are to read.

        Returns:
            Their number, or None if only reading tells it.
        Raises:
            Failure: A file is not there.
        """
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
        """How a file is read: as it was said, or by its name."""
        if self.format is not None:
            return self.format
        path = Path(name)
        ending = Path(path.stem).suffix if path.suffix in _COMPRESSED else path.suffix
        return _FORMATS.get(ending, "text")

    def _whole(self, file: BinaryIO, name: str) -> Iterator[Iterable[str]]:
        """The file as one document; held as a whole only if it may have to be skipped."""
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
            # Otherwise the pieces would raise errors that `read` does not.
            with _named(name):
                chunk = file.read(CHUNK_BYTES)
            state = decoder.getstate()
            try:
                text = decoder.decode(chunk, final=not chunk)
            except UnicodeDecodeError as error:
                if self.invalid == "refuse":
                    raise _not_utf8(name, read - len(state[0]) + error.start) from None
                self.replaced += 1
                decoder = _UTF8("replace")
                decoder.setstate(state)
                text = decoder.decode(chunk, final=not chunk)
            yield text
            read += len(chunk)

    def _lines(self, file: BinaryIO, name: str) -> Iterator[Iterable[str]]:
        """Each line as a document, with its line end."""
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
            if text is None or not text.strip():
                continue
            place = f"{shown(name)}, line {number}"
            try:
                row = json.loads(text)
            except (ValueError, RecursionError):
                raise Failure(f"{place}: not JSON") from None
            value = row.get(self.column) if isinstance(row, dict) else None
            if not isinstance(value, str):
                raise Failure(f"{place}: no text under {self.column!r}; --column names another key")
            value = self._without_surrogates(value, place)
            if value is not None:
                self._labelled(row, place)
                yield (value,)

    def _labelled(self, row: dict[str, Any], place: str) -> None:
        """Take the label out of a row."""
        if self.by is not None:
            label = row.get(self.by)
            if not isinstance(label, str):
                raise Failure(f"{place}: no text under {self.by!r}, by which to group")
            self.label = label

    def _rows(self, name: str) -> Iterator[Iterable[str]]:
        number = 0
        others = () if self.by is None else (self.by,)
        for texts, labels in parquet_rows(name, self.column, others):
            rows = labels.to_pylist() if others else [{}] * len(texts)
            for text, row in zip(texts, rows, strict=True):
                number += 1
                self._labelled(row, f"{shown(name)}, row {number}")
                yield (text,)

    def _decoded(self, data: bytes, name: str, offset: int) -> str | None:
        """The text; None if it is to be skipped."""
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            if self.invalid == "refuse":
                raise _not_utf8(name, offset + error.start) from None
            return self._repaired(lambda: data.decode(errors="replace"))

    def _without_surrogates(self, text: str, place: str) -> str | None:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            if self.invalid == "refuse":
                raise Failure(
                    f"{place}: a lone surrogate at character {error.start} of its text; "
                    "--invalid replace or skip continues"
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


def what_was_not_utf8(replaced: int, skipped: int) -> str:
    """A sentence on the documents that were not UTF-8; "" if all were."""
    if not replaced and not skipped:
        return ""
    return f"not UTF-8: {replaced} documents with replacements, {skipped} left out"


def _not_utf8(name: str, offset: int) -> Failure:
    return Failure(
        f"{shown(name)}: not UTF-8: byte {offset} starts no character; convert it first, or let "
        "--invalid replace or skip go on"
    )


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Failures of reading, as the command tells them."""
    try:
        yield
    except OSError as error:
        raise Failure(f"{shown(name)}: {error.strerror or error}") from None
    except (EOFError, zlib.error) as error:
        raise Failure(f"{shown(name)}: incomplete: {error}") from None
