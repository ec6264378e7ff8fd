"""A small corpus of files of every format."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

import pyarrow
import pytest
import zstandard
from pyarrow import parquet
from support.hard_text import HARD_CHARACTERS, HARD_PIECES
from support.in_process import Command

SEED = 20261121


@pytest.fixture
def texts(shell: Command) -> list[list[str]]:
    """Return the documents of each file of a corpus of every format, in the order of the files."""
    print(f"seed {SEED}")
    rng = random.Random(SEED)
    documents = ["".join(rng.choices(HARD_PIECES + HARD_CHARACTERS, k=60)) for _ in range(41)]
    parts = [documents[:15], documents[15:30], documents[30:40], documents[40:]]
    Path("corpus/deeper").mkdir(parents=True)
    rows = [b"".join(json.dumps({"text": t}).encode() + b"\n" for t in part) for part in parts]
    ids = [f"id-{number}" for number in range(15)]
    parquet.write_table(pyarrow.table({"text": parts[0], "id": ids}), "corpus/a.parquet")
    Path("corpus/b.jsonl.gz").write_bytes(gzip.compress(rows[1]))
    Path("corpus/c.jsonl.zst").write_bytes(zstandard.ZstdCompressor().compress(rows[2]))
    Path("corpus/deeper/d.txt").write_text(parts[3][0], encoding="utf-8", newline="")
    Path("corpus/_SUCCESS").touch()
    return parts
