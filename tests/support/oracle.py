"""tiktoken as the outside oracle, fed with the tables that the engine ships."""

from __future__ import annotations

import gzip
import hashlib
import os
from functools import cache
from importlib.resources import files
from pathlib import Path
from tempfile import mkdtemp

import tiktoken

_TABLES = "https://openaipublic.blob.core.windows.net/encodings/"


@cache
def oracle(name: str) -> tiktoken.Encoding:
    """tiktoken's encoding of that name, loaded without a download.

    tiktoken looks for a table in TIKTOKEN_CACHE_DIR under the SHA-1 of its address, and
    checks its SHA-256 against its own pin: a wrong table cannot pass.
    """
    os.environ["TIKTOKEN_CACHE_DIR"] = str(_cache_dir())
    return tiktoken.get_encoding(name)


@cache
def _cache_dir() -> Path:
    folder = Path(mkdtemp(prefix="bytepair-oracle-"))
    for table in (files("bytepair_engine") / "data").iterdir():
        if table.name.endswith(".tiktoken.gz"):
            address = _TABLES + table.name.removesuffix(".gz")
            key = hashlib.sha1(address.encode(), usedforsecurity=False).hexdigest()
            (folder / key).write_bytes(gzip.decompress(table.read_bytes()))
    return folder
