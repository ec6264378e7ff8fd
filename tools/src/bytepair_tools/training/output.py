"""The output folder of the commands that write a vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bytepair_tools.shared.failure import Failure

CONFIGURATION: Final = "bytepair.toml"
TOKENIZER_JSON: Final = "tokenizer.json"


def create_folder(folder: Path, files: Sequence[str]) -> None:
    """Create a folder for files.

    Raises:
        Failure: It cannot be created, or has one of the files in it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        existing = [file for file in files if (folder / file).exists()]
    except OSError as error:
        raise Failure(f"{folder}: {error.strerror}") from None
    if existing:
        raise Failure(f"{folder}: {existing[0]} already exists; use another --output")
