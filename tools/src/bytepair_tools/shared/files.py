"""Write files atomically: a file is never incomplete."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path
from stat import S_IMODE
from typing import BinaryIO

from bytepair_tools.shared.failure import Failure, reason


@contextlib.contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file for writing; it replaces `path` after the block succeeds and the data
    are on the disk. It keeps the permissions of an existing file.

    Raises:
        Failure: The file cannot be written, for example because the disk is full; an existing
            file is unchanged.
    """
    # Not by `tempfile`, whose files have other permissions than those that the umask gives.
    temporary = path.parent / f".{path.name}-{secrets.token_hex(8)}"
    try:
        with temporary.open("xb") as file:
            with contextlib.suppress(FileNotFoundError):
                temporary.chmod(S_IMODE(path.stat().st_mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise Failure(f"{path}: cannot be written: {reason(error)}") from None
    finally:
        with contextlib.suppress(OSError):  # it has replaced `path`, or was not created
            temporary.unlink()


def write_atomically(path: Path, chunks: Iterable[bytes]) -> None:
    """Write chunks to a file; see `atomic_file`.

    Raises:
        Failure: The file cannot be written; an existing file is unchanged.
    """
    with atomic_file(path) as file:
        file.writelines(chunks)
