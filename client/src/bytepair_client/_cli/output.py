"""Standard output, as bytes and at once.

`sys.stdout` will not do: under PYTHONUNBUFFERED, as in container images, it drops what a pipe
does not take at once, and it refuses file names that are not UTF-8.
"""

from __future__ import annotations

import os

_STANDARD_OUTPUT = 1


def write(data: bytes) -> None:
    """Write all of `data`.

    Raises:
        OSError: It cannot be written; BrokenPipeError if nobody reads any more.
    """
    left = memoryview(data)
    while left:
        left = left[os.write(_STANDARD_OUTPUT, left) :]


def write_text(text: str) -> None:
    """Write text as UTF-8, and file names in it as the bytes that they are."""
    write(text.encode(errors="surrogateescape"))
