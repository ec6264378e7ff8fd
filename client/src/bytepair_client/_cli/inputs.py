"""Files and standard input, as text, token ids or a chat."""

from __future__ import annotations

import codecs
import io
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from time import monotonic
from typing import Any

from bytepair_client._cli.output import STANDARD_INPUT, CommandError, shown
from bytepair_client._operations.chats import problem_of
from bytepair_client._options import DEFAULT_MAX_UNARY_BYTES

#: The size of one read.
CHUNK_BYTES = 256 * 1024

#: What to do with files that are no text, by their start.
_BINARY = {
    b"\x1f\x8b": "decompress it first, by gzip -dc",
    b"\x28\xb5\x2f\xfd": "decompress it first, by zstd -dc",
    b"PAR1": "it is a Parquet file, which bytepair corpus reads",
}

_STANDARD_INPUT = 0
# Longer numbers cannot be ids, and Python rejects numbers of more than 4,300 digits.
_NUMBER = re.compile(r"[0-9]{1,20}")
_JSON_NUMBER = re.compile(r"-?[0-9]{1,20}")
_MAX_DIGITS = 5000
_NO_LIST = "not a JSON list of token ids"
PROGRESS_INTERVAL_S = 0.5


class Input:
    """One input, open."""

    def __init__(self, name: str, file: io.FileIO, progress: Progress) -> None:
        """Read the first DEFAULT_MAX_UNARY_BYTES. If there is more, it `is_large`: too large for
        one request, so that a stream is used."""
        self.name = name
        self.suffix = "" if name == STANDARD_INPUT else f" {name}"  # after a result
        self._file = file
        self._progress = progress
        self._start = b""
        while len(self._start) <= DEFAULT_MAX_UNARY_BYTES and (chunk := self._read()):
            self._start += chunk
        self.is_large = len(self._start) > DEFAULT_MAX_UNARY_BYTES

    def text(self) -> Iterator[str]:
        """The text, byte for byte: line ends and a byte order mark are kept. Raises CommandError if
        it cannot be read, or is not UTF-8."""
        decoder = codecs.getincrementaldecoder("utf-8")()
        decoded = 0
        for chunk in chain(self._chunks(), (b"",)):
            pending = decoder.getstate()[0]
            try:
                yield decoder.decode(chunk, final=not chunk)
            except UnicodeDecodeError as error:
                start = b"" if decoded else error.object[:4]
                binary = (advice for magic, advice in _BINARY.items() if start.startswith(magic))
                raise CommandError(
                    f"not UTF-8: byte {decoded - len(pending) + error.start} "
                    f"(0x{error.object[error.start]:02x}) starts no character; "
                    + next(binary, "convert it first, for example by iconv")
                ) from None
            decoded += len(chunk)

    def whole_text(self) -> str:
        """The text as one string."""
        return "".join(self.text())

    def ids(self) -> Iterator[list[int]]:
        """The token ids: a JSON list, or numbers separated by white space or commas. Raises
        CommandError if it cannot be read, or an entry is not a token id."""
        texts = (chunk.decode("ascii", errors="replace") for chunk in self._chunks())
        start = next((stripped for text in texts if (stripped := text.lstrip())), "")
        is_json = start.startswith("[")
        form = _JSON_NUMBER if is_json else _NUMBER
        count = 0
        for words in _words(chain((start.removeprefix("["),), texts), is_json=is_json):
            for index, word in enumerate(words, count):
                if not form.fullmatch(word):
                    problem = f"index {index} of the list holds no token id" if word else _NO_LIST
                    raise CommandError(problem)
            yield list(map(int, words))
            count += len(words)

    def chat(self) -> tuple[list[Any], list[Any]]:
        """The messages and tools of a chat: a list of messages, or an object with both. Raises
        CommandError if it cannot be read, or is not such JSON."""
        try:
            value = json.loads(self.whole_text())
        except (ValueError, RecursionError) as error:
            where = ""
            if isinstance(error, json.JSONDecodeError):
                where = f" at line {error.lineno} column {error.colno}"
            raise CommandError(f"not JSON{where}") from None
        chat = value if isinstance(value, dict) else {"messages": value}
        messages, tools = chat.get("messages"), chat.get("tools") or []
        if not isinstance(messages, list) or not isinstance(tools, list):
            raise CommandError('expected a list of messages, or an object with "messages"')
        if problem := problem_of(chat):
            raise CommandError(problem)
        return messages, tools

    def _chunks(self) -> Iterator[bytes]:
        start, self._start = self._start, b""
        while start:
            yield start
            self._progress.add(len(start))
            start = self._read()

    def _read(self) -> bytes:
        try:
            return self._file.read(CHUNK_BYTES)
        except OSError as error:
            raise CommandError(str(error.strerror)) from None


@contextmanager
def opened(name: str, *, writes: bool = False) -> Iterator[Input]:
    """Open a file, or standard input, for the duration of the block, which `writes` to standard
    output or not. Raises CommandError if it cannot be read."""
    is_file = name != STANDARD_INPUT
    try:
        # Unbuffered: a thread that waits for input would hold the buffer's lock at exit.
        file = io.FileIO(name if is_file else _STANDARD_INPUT, closefd=is_file)
    except OSError as error:
        raise CommandError(str(error.strerror)) from None
    with file:
        progress = Progress(shown(name), os.fstat(file.fileno()).st_size, writes=writes)
        try:
            yield Input(name, file, progress)
        finally:
            progress.end()


def _words(texts: Iterable[str], *, is_json: bool) -> Iterator[list[str]]:
    """The words between white space and commas, or the elements of a JSON list, after its opening
    bracket. Only an element may be empty."""
    separator = re.compile("," if is_json else r"[\s,]+")
    rest, is_first = "", True
    for text in texts:
        *words, rest = separator.split(rest + text)
        yield [word.strip() for word in words if word or is_json]
        is_first = is_first and not words
        if len(rest) > _MAX_DIGITS and not is_json:
            break
    if is_json:
        if not rest.rstrip().endswith("]"):
            raise CommandError(_NO_LIST)
        rest = rest.rstrip()[:-1].strip()
    if rest or (is_json and not is_first):
        yield [rest]


class Progress:
    """A line on standard error that shows how much of a large input has been read. It is updated
    every PROGRESS_INTERVAL_S and erased at the end."""

    def __init__(self, name: str, size: int, *, writes: bool) -> None:
        """Show nothing yet. `size` is in bytes, 0 if unknown. If the command writes results to a
        terminal while it reads, both would mix, and there is no line."""
        self._name = name
        self._of = f" of {size / 1e6:,.0f}" if size else ""
        self._read = 0
        self._shown_at = monotonic()
        self._is_shown = False
        self._is_on = sys.stderr.isatty() and not (writes and sys.stdout.isatty())

    def add(self, count: int) -> None:
        """Count bytes that were read."""
        self._read += count
        if self._is_on and monotonic() - self._shown_at >= PROGRESS_INTERVAL_S:
            self._shown_at = monotonic()
            self._is_shown = True
            self._show(f"{self._name}: {self._read / 1e6:,.0f}{self._of} MB")

    def end(self) -> None:
        """Erase the line and show no more."""
        self._is_on = False
        if self._is_shown:
            self._show("")

    def _show(self, line: str) -> None:
        sys.stderr.write(f"\r\x1b[K{line}")
        sys.stderr.flush()
