"""Commands over a small corpus, and their results."""

from __future__ import annotations

from pathlib import Path

GPT2 = ("--pattern", "gpt2")
TRAIN = ("train", *GPT2, "--vocab-size", "600")
WORKERS = ("--workers", "2")
COUNT = ("corpus", "count", "--encoding", "gpt2", "--output", "x")


def part(folder: str, number: int) -> Path:
    return Path(folder, f"part-{number:05}.parquet")


def table(folder: str) -> bytes:
    return Path(folder, f"{folder}.tiktoken").read_bytes()
