"""Counting pre-tokens on Spark: the same splitter in each worker, and Spark's own aggregation.

For a comparison with `bytepair corpus --ray`; docs/performance.md has the result. Needs Java 17 or
newer, and `pip install pyspark pandas`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from bytepair_engine.training.counting import Counting
from bytepair_engine.vocabulary.patterns import PATTERNS


def main(source: str, output: str, workers: str) -> None:
    """Count the column `text` of a folder of Parquet files."""
    import pyarrow

    def count(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        with Counting(PATTERNS["gpt2"], threads=1) as counting:
            for batch in batches:
                counting.add(batch.column(0).to_pylist())
            counts = counting.counts()
        for start in range(0, len(counts), 1 << 16):
            words, numbers = zip(*counts.items(start, start + (1 << 16)), strict=True)
            yield pyarrow.RecordBatch.from_pydict({"pretoken": words, "count": numbers})

    os.environ["PYSPARK_PYTHON"] = sys.executable
    sql: Any = import_module("pyspark.sql")
    spark = (
        sql.SparkSession.builder.master(f"local[{workers}]")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "2g")
        .config("spark.sql.shuffle.partitions", "16")
        .getOrCreate()
    )
    texts = spark.read.parquet(source).select("text")
    counted = texts.mapInArrow(count, "pretoken binary, count long")
    summed = counted.groupBy("pretoken").sum("count")
    summed.write.mode("overwrite").option("compression", "zstd").parquet(output)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
