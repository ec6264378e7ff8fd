"""The name and the output folder of the commands that write a vocabulary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from bytepair_engine import EncodingSpec, VocabularyError

from bytepair_tools.shared.failure import USAGE, Failure, reason
from bytepair_tools.shared.files import write_atomically

CONFIGURATION: Final = "bytepair.toml"
TOKENIZER_JSON: Final = "tokenizer.json"


def check_name(name: str, proposed: str) -> None:
    """Check the name of an encoding, which is also the name of its rank file.

    Raises:
        Failure: It is not valid; the message contains the proposed name.
    """
    try:
        EncodingSpec(name=name, file=Path(name)).check()
        is_valid = "/" not in name
    except VocabularyError:
        is_valid = False
    if not is_valid:
        raise Failure(
            f"{name!r} is not a valid name for an encoding; use another, such as --name {proposed}",
            USAGE,
        )


def create_folder(folder: Path, files: Sequence[str]) -> None:
    """Create a folder for files.

    Raises:
        Failure: It cannot be created, or has one of the files in it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        existing = [file for file in files if (folder / file).exists()]
    except OSError as error:
        raise Failure(f"{folder}: {reason(error)}") from None
    if existing:
        raise Failure(f"{folder}: {existing[0]} already exists; use another --output")


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files to a folder, in order: all or none.

    Raises:
        Failure: One cannot be written; the others are removed, or the next run would reject them.
    """
    try:
        for name, data in files.items():
            write_atomically(folder / name, [data])
    except Failure:
        for name in files:
            with suppress(OSError):
                (folder / name).unlink()
        raise
