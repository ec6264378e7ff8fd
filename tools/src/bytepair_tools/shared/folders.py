"""Find the files in folders. What cannot be read is an error, and is never left out."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

from bytepair_tools.shared.failure import Failure, reason


def entries(folder: Path) -> list[Path]:
    """Return the paths in a folder, in order.

    Raises:
        Failure: The folder cannot be read.
    """
    try:
        return sorted(folder.iterdir())
    except OSError as error:
        raise Failure(f"{folder}: {reason(error)}") from None


def is_folder(path: Path) -> bool:
    """Return whether a path is a folder; if not, it is a regular file.

    Raises:
        Failure: It is neither, such as a named pipe, or cannot be examined.
    """
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise Failure(f"{path}: {reason(error)}") from None
    if not stat.S_ISDIR(mode) and not stat.S_ISREG(mode):
        raise Failure(f"{path}: neither a regular file nor a folder")
    return stat.S_ISDIR(mode)


def files_below(folder: Path, known: dict[Path, Path] | None = None) -> Iterator[Path]:
    """Yield the files in a folder and in all folders below it, in order. Symbolic links are
    followed; names that start with "." or "_" are left out.

    Args:
        folder: The folder.
        known: Folders found before, by their real paths.
    Raises:
        Failure: A folder cannot be read or is found twice, or a path is neither a folder nor a
            regular file.
    """
    known = {} if known is None else known
    first = known.setdefault(folder.resolve(), folder)
    if first is not folder:
        raise Failure(f"{folder}: the same folder as {first}; its files would be read twice")
    for path in entries(folder):
        if path.name.startswith((".", "_")):
            continue
        if is_folder(path):
            yield from files_below(path, known)
        else:
            yield path
