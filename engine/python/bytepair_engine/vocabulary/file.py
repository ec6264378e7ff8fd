"""Read vocabulary files, which are untrusted, and report their errors."""

from __future__ import annotations

import hashlib
import stat
import zlib
from pathlib import Path
from typing import Final

from bytepair_engine.errors import VocabularyError
from bytepair_engine.vocabulary.rank_table import MAX_TOKEN_ID, TableFault

#: Larger files, compressed or not, are rejected. The largest published one has less than a fifth.
MAX_FILE_BYTES: Final = 256 * 2**20

_GZIP: Final = b"\x1f\x8b"

_FAULTS: Final[dict[str, tuple[str, str]]] = {
    "empty_file": (
        "the file is empty",
        "fetch it again: it was probably cut off",
    ),
    "crlf": (
        "the line ends in CR LF",
        "fetch the original file, or convert its line ends with dos2unix",
    ),
    "malformed_line": (
        "the line is not a token in base64, one space and a rank",
        "check that this is a rank file in tiktoken's format, and that it is complete",
    ),
    "not_base64": (
        "the token is not canonical base64",
        "fetch the original file: this one was damaged or edited",
    ),
    "empty_token": (
        "the token has no bytes",
        "remove the line, or fetch the original file",
    ),
    "rank_not_a_number": (
        "the rank is not a decimal number",
        "check that this is a rank file in tiktoken's format",
    ),
    "rank_too_large": (
        f"the rank is not within 0 and {MAX_TOKEN_ID}",
        "check that this is a rank file in tiktoken's format",
    ),
    "duplicate_token": (
        "the token is in an earlier line too",
        "keep one of the two: fetch the original file to see which",
    ),
    "duplicate_rank": (
        "the rank is in an earlier line too",
        "keep one of the two: fetch the original file to see which",
    ),
}


def read_vocabulary_file(path: Path) -> bytes:
    """Read a file, and decompress it if it is gzip, whatever its name.

    Raises:
        VocabularyError: The file cannot be read, is too large, or is truncated or damaged gzip, or
            gzip of several parts.
    """
    if "\0" in str(path):
        raise VocabularyError(repr(str(path)), "a file name holds no NUL character", "correct it")
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # opening a FIFO may block for ever
            raise VocabularyError(str(path), "it is not a regular file", "give the file's path")
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
        if data.startswith(_GZIP):
            inflate = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
            data = inflate.decompress(data, MAX_FILE_BYTES + 1)
            if not inflate.eof and len(data) <= MAX_FILE_BYTES:
                raise VocabularyError(str(path), "it is cut off", "fetch it again")
            if inflate.unused_data:
                # Further parts of the file, or damage: without them the vocabulary is another.
                raise VocabularyError(
                    str(path), "it goes on after its gzip data ends", "compress it as one file"
                )
    except UnicodeEncodeError:
        raise VocabularyError(repr(str(path)), "its name is not Unicode", "correct it") from None
    except OSError as error:
        raise VocabularyError(
            str(path), f"it cannot be read: {error.strerror}", "check its name and permissions"
        ) from None
    except zlib.error as error:
        raise VocabularyError(str(path), f"it is damaged gzip: {error}", "fetch it again") from None
    if len(data) > MAX_FILE_BYTES:
        raise VocabularyError(
            str(path),
            f"it holds more than {MAX_FILE_BYTES} bytes",
            "check that this is a vocabulary file",
        )
    return data


def rejection(fault: TableFault, source: str) -> VocabularyError:
    """Return the error for an invalid table, with its file and how to fix it."""
    problem, remedy = _FAULTS[fault.kind]
    return VocabularyError(source, problem, remedy, line=fault.line)


_RESTORE: Final = (
    "restore the original file, or update sha256 in the declaration if the change is intended"
)


def check_sha256(data: bytes, expected: str | None, source: str, remedy: str = _RESTORE) -> None:
    """Raise VocabularyError if a file does not have the expected hash.

    Args:
        data: The content of the file, uncompressed.
        expected: 64 hexadecimal digits, optionally after "sha256:"; None for no check.
        source: The source that the error names.
        remedy: What the error says to do.
    """
    if expected is None:
        return
    actual = hashlib.sha256(data).hexdigest()
    if actual != expected.removeprefix("sha256:").lower():
        raise VocabularyError(
            source, f"its sha256 is {actual}, and {expected} was expected", remedy
        )
