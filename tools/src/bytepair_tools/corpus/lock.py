"""A lock of an output folder: only one run may write to it at a time."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from bytepair_tools.shared.failure import Failure, reason

LOCK_FILE: Final = "_lock"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Create a folder, and lock it for the duration of the block.

    The system releases the lock of a process that was killed. Its file is then left behind.

    Raises:
        Failure: Another run has locked the folder, or it cannot be written.
    """
    path = folder / LOCK_FILE
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = path.open("wb")
    except OSError as error:
        raise Failure(f"{error.filename}: {reason(error)}") from None
    with file:
        if not _lock(file.fileno(), path):
            raise Failure(f"{folder}: another run is writing to it; wait, or use another --output")
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def _lock(descriptor: int, path: Path) -> bool:
    """Lock an open file; False if another run has locked it, or has just removed it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # the file system has no locks
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
