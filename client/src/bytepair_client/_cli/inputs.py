"""Files and standard input, as text or as token ids, and on a terminal how far they have come."""

from __future__ import annotations

import codecs
import io
import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import FileIO
from itertools import chain
from threading import Lock
from time import monotonic
from typing import Self

from bytepair_client._cli.output import STANDARD_INPUT, CommandError, shown
from bytepair_client._options import DEFAULT_MAX_UNARY_BYTES

#: What is read at once of an input that is not held as a whole.
CHUNK_BYTES = 256 * 1024

_STANDARD_INPUT = 0
# Longer ones are no ids of any encoding, and Python refuses to read them from 4,300 digits on.
_NUMBER = re.compile(r"[0-9]{1,20}")
_JSON_NUMBER = re.compile(r"-?[0-9]{1,20}")
_MAX_DIGITS = 5000
_SEPARATORS = re.compile(r"[\s,]+")

#: What takes less is not worth a line.
FIRST_AFTER_S = 0.5
EVERY_S = 0.1

_MAX_NAME = 40
_ERASE = "\r\x1b[K"
_MB = 1_000_000


class Input:
    """One input, open.

    Attributes:
        name: As it was given.
        is_large: Whether it is more than one request should hold.
    """

    def __init__(self, name: str, file: io.FileIO, progress: Progress) -> None:
        """Read the first DEFAULT_MAX_UNARY_BYTES, and see whether that is all."""
        self.name = name
        self.suffix = "" if name == STANDARD_INPUT else f" {name}"  # after a result
        self._file = file
        self._progress = progress
        self._start = b""
        while len(self._start) <= DEFAULT_MAX_UNARY_BYTES:
            chunk = self._read()
            if not chunk:
                break
            self._start += chunk
        self.is_large = len(self._start) > DEFAULT_MAX_UNARY_BYTES

    def text(self) -> Iterator[str]:
        """The text, byte for byte: line ends and a byte order mark stay.

        Raises:
            CommandError: It cannot be read, or is not UTF-8.
        """
        decoder = codecs.getincrementaldecoder("utf-8")()
        decoded = 0
        for chunk in chain(self._chunks(), (b"",)):
            pending = decoder.getstate()[0]
            try:
                yield decoder.decode(chunk, final=not chunk)
            except UnicodeDecodeError as error:
                raise CommandError(
                    f"{shown(self.name)}: not UTF-8: byte "
                    f"{decoded - len(pending) + error.start} "
                    f"(0x{error.object[error.start]:02x}) starts no character; convert it first, "
                    "for example by iconv"
                ) from None
            decoded += len(chunk)

    def whole_text(self) -> str:
        """The text, at once."""
        return "".join(self.text())

    def ids(self) -> Iterator[list[int]]:
        """The token ids: of a JSON list, or numbers between white space and commas.

        Raises:
            CommandError: It cannot be read, or holds something that is not a token id.
        """
        texts = (chunk.decode("ascii", errors="replace") for chunk in self._chunks())
        start = next((stripped for text in texts if (stripped := text.lstrip())), "")
        is_json = start.startswith("[")
        if is_json:
            lists, form = self._elements(chain((start[1:],), texts)), _JSON_NUMBER
        else:
            lists, form = _words(chain((start,), texts)), _NUMBER
        count = 0
        for words in lists:
            for number, word in enumerate(words, count + 1):
                if not form.fullmatch(word):
                    raise CommandError(
                        f"{shown(self.name)}: entry {number} of the list is not a token id"
                    )
            yield list(map(int, words))
            count += len(words)

    def _elements(self, texts: Iterable[str]) -> Iterator[list[str]]:
        """What stands between the commas of a JSON list, after its bracket."""
        rest, is_first = "", True
        for text in texts:
            *words, rest = (rest + text).split(",")
            yield self._stripped(words)
            is_first = is_first and not words
        rest = rest.rstrip()
        if not rest.endswith("]"):
            raise self._not_json()
        if not is_first or rest[:-1].strip():
            yield self._stripped([rest[:-1]])

    def _stripped(self, words: list[str]) -> list[str]:
        words = [word.strip() for word in words]
        if not all(words):
            raise self._not_json()
        return words

    def _not_json(self) -> CommandError:
        return CommandError(f"{shown(self.name)}: not a JSON list of token ids")

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
            raise CommandError(f"{shown(self.name)}: {error.strerror}") from None


@contextmanager
def opened(name: str, *, writes: bool = False) -> Iterator[Input]:
    """Open a file, or standard input, for as long as the block runs.

    Args:
        name: The file's; STANDARD_INPUT for standard input.
        writes: Whether the block writes to standard output meanwhile.
    Raises:
        CommandError: It cannot be read.
    """
    is_file = name != STANDARD_INPUT
    try:
        # Without a buffer, whose lock a thread that waits for input would hold at exit.
        file = io.FileIO(name if is_file else _STANDARD_INPUT, closefd=is_file)
    except OSError as error:
        raise CommandError(f"{shown(name)}: {error.strerror}") from None
    with file, Progress(shown(name), file, writes=writes) as progress:
        yield Input(name, file, progress)


def _words(texts: Iterable[str]) -> Iterator[list[str]]:
    """What stands between white space and commas."""
    rest = ""
    for text in texts:
        words = _SEPARATORS.split(rest + text)
        rest = words.pop()
        yield [word for word in words if word]
        if len(rest) > _MAX_DIGITS:
            break
    if rest:
        yield [rest]


class Progress:
    """A line on standard error that tells how many bytes are done, and how fast.

    It is shown on a terminal only, once the input has taken longer than a moment, and erased
    at the end. There is none where results go to a terminal as they come.
    """

    def __init__(self, name: str, file: FileIO, *, writes: bool) -> None:
        """Show nothing yet.

        Args:
            name: What is read.
            file: Where it is read from; its size is the goal if it has one.
            writes: Whether results are written meanwhile.
        """
        self._name = name if len(name) <= _MAX_NAME else f"…{name[1 - _MAX_NAME :]}"
        self._size = _size(file)
        self._done = 0
        self._started = self._shown = monotonic()
        self._lock = Lock()  # against the thread that reads the input
        self._is_wanted = sys.stderr.isatty() and not (writes and sys.stdout.isatty())
        self._is_shown = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.end()

    def add(self, count: int) -> None:
        """Note that this many more bytes are done."""
        if not self._is_wanted:
            return
        now = monotonic()
        with self._lock:
            self._done += count
            wait = EVERY_S if self._is_shown else FIRST_AFTER_S
            if self._is_wanted and now - self._shown >= wait:
                self._shown = now
                self._is_shown = True
                self._show(now - self._started)

    def end(self) -> None:
        """Erase the line; there is no other one."""
        with self._lock:
            self._is_wanted = False
            if self._is_shown:
                self._is_shown = False
                sys.stderr.write(_ERASE)
                sys.stderr.flush()

    def _show(self, seconds: float) -> None:
        goal = f" of {self._size / _MB:.1f}" if self._size else ""
        rate = self._done / _MB / seconds
        sys.stderr.write(f"{_ERASE}{self._name}: {self._done / _MB:.1f}{goal} MB, {rate:.1f} MB/s")
        sys.stderr.flush()


def _size(file: FileIO) -> int:
    """The bytes of a regular file; 0 for what has no size, such as a pipe."""
    status = os.fstat(file.fileno())
    return status.st_size if stat.S_ISREG(status.st_mode) else 0
