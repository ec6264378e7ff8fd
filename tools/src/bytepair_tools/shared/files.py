"""Write files atomically: a file is never incomplete."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from bytepair_tools.shared.failure import Failure, reason


@contextlib.contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file for writing; it replaces `path` after the block succeeds and the data
    are on the disk.

    Raises:
        Failure: The file cannot be written, for example because the disk is full; an existing
            file is unchanged.
    """
    temporary = None
    try:
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
        temporary = None
    except OSError as error:
        raise Failure(f"{path}: cannot be written: {reason(error)}") from None
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                Path(temporary).unlink()


def write_atomically(path: Path, chunks: Iterable[bytes]) -> None:
    """Write chunks to a file; see `atomic_file`.

    Raises:
        Failure: The file cannot be written; an existing file is unchanged.
    """
    with atomic_file(path) as file:
        file.writelines(chunks)
