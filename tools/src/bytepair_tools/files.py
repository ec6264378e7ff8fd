"""Writing files so that there is never half of one."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from bytepair_tools.failure import Failure


def write_whole(path: Path, chunks: Iterable[bytes]) -> None:
    """Write a file under another name, and give it its own when it is on the disk.

    Raises:
        Failure: It cannot be written, for example because the disk is full; what was there before
            is there still.
    """
    temporary = None
    try:
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
        with os.fdopen(descriptor, "wb") as file:
            file.writelines(chunks)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except OSError as error:
        if temporary is not None:
            with contextlib.suppress(OSError):
                Path(temporary).unlink()
        raise Failure(f"{path}: cannot be written: {error.strerror}") from None
