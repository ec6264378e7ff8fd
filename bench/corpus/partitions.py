"""A corpus of Parquet files to measure with: the documents of bench/train/corpus.py."""

from __future__ import annotations

from pathlib import Path

import pyarrow
from pyarrow import parquet

from bench.texts import REPOSITORY
from bench.train.corpus import documents


def partitions(megabytes: int, number: int) -> Path:
    """A folder of `number` files with `megabytes` of UTF-8 in all; written at the first call."""
    folder = REPOSITORY / "build" / "bench-corpus" / f"{megabytes}-{number}"
    if not (folder / "_SUCCESS").exists():
        folder.mkdir(parents=True, exist_ok=True)
        texts = documents(megabytes)
        for part in range(number):
            table = pyarrow.table({"text": texts[part::number]})
            parquet.write_table(table, folder / f"{part:03}.parquet", compression="zstd")
        (folder / "_SUCCESS").touch()
    return folder
