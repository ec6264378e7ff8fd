"""Standard output, as bytes."""

from __future__ import annotations

import os

_STANDARD_OUTPUT = 1


class Output:
    """Writes all of what it is given, or raises.

    `sys.stdout` does not: under PYTHONUNBUFFERED, as in container images, it drops what a pipe
    does not take at once. It also refuses file names that are not UTF-8.
    """

    def __init__(self) -> None:
        self._file = os.fdopen(_STANDARD_OUTPUT, "wb", closefd=False)

    def text(self, text: str) -> None:
        """Write text as UTF-8, and file names as the bytes that they are."""
        self.data(text.encode(errors="surrogateescape"))

    def data(self, data: bytes) -> None:
        """Write bytes as they are."""
        self._file.write(data)
        self._file.flush()

    def discard(self) -> None:
        """Drop what nobody reads any more; it would be written again at exit."""
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, _STANDARD_OUTPUT)
        os.close(null)
