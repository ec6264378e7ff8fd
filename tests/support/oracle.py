"""tiktoken as the outside oracle, fed with the tables that the engine ships."""

from __future__ import annotations

import hashlib
import os
from functools import cache
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

import tiktoken

_TABLES = "https://openaipublic.blob.core.windows.net/encodings/"


@cache
def oracle(name: str) -> tiktoken.Encoding:
    """tiktoken's encoding of that name, loaded without a download.

    tiktoken looks for a table in TIKTOKEN_CACHE_DIR under the SHA-1 of its address, and
    checks its SHA-256 against its own pin: a wrong table cannot pass.
    """
    set_cache_dir()
    return tiktoken.get_encoding(name)


def set_cache_dir() -> None:
    """Let tiktoken, and libraries that use it, find the engine's tables until this process ends."""
    os.environ["TIKTOKEN_CACHE_DIR"] = _cache_dir().name


@cache
def _cache_dir() -> TemporaryDirectory[str]:
    folder = TemporaryDirectory(prefix="bytepair-oracle-")
    for table in (files("bytepair_engine") / "data").iterdir():
        if table.name.endswith(".tiktoken"):
            address = _TABLES + table.name
            key = hashlib.sha1(address.encode(), usedforsecurity=False).hexdigest()
            (Path(folder.name) / key).write_bytes(table.read_bytes())
    return folder
