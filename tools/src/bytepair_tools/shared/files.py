"""Write files so that there is never half of one."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from bytepair_tools.shared.failure import Failure


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write to, which has its name once the block has ended well and it is on the disk.

    Raises:
        Failure: It cannot be written, for example because the disk is full; what was there before
            is there still, and no part of a new one.
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
        raise Failure(f"{path}: cannot be written: {error.strerror or error}") from None
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                Path(temporary).unlink()


def write_whole(path: Path, chunks: Iterable[bytes]) -> None:
    """Write a file at once, as `whole_file` does.

    Raises:
        Failure: It cannot be written; what was there before is there still.
    """
    with whole_file(path) as file:
        file.writelines(chunks)
