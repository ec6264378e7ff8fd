"""Counts in Parquet: made separately, and trained on to the same table as the texts."""

from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path

import pyarrow
import pytest
from bytepair_engine import TrainingError
from bytepair_engine.training.counting import Counting
from bytepair_engine.vocabulary.patterns import PATTERNS
from pyarrow import parquet
from support.hard_text import HARD_CHARACTERS, HARD_PIECES
from support.in_process import Command
from support.serving import clean_environment
from support.shell import command

SEED = 20261121
SIZE = ("--vocab-size", "700")
USUAL = (*SIZE, "--pattern", "gpt2")


@pytest.fixture
def shell(shell: Command) -> Command:
    """The command, in a folder with two texts of hard pieces."""
    print(f"seed {SEED}")
    rng = random.Random(SEED)
    for name in ("a.txt", "b.txt"):
        text = "".join(rng.choices(HARD_PIECES + HARD_CHARACTERS, k=3000))
        Path(name).write_text(text, encoding="utf-8", newline="")
    return shell


def table(folder: str) -> bytes:
    return Path(folder, f"{Path(folder).name}.tiktoken").read_bytes()


def count(shell: Command, *arguments: str) -> None:
    shell("count-pretokens", *arguments)


@pytest.mark.parametrize("ties", ["lowest", "first-seen"])
@pytest.mark.parametrize("pattern", [("--pattern", "gpt2"), ("--no-pattern",)])
def test_training_on_counts_gives_the_table_of_the_texts(
    shell: Command, ties: str, pattern: tuple[str, ...]
) -> None:
    how = (*SIZE, *pattern, "--ties", ties, "--special", "<s>")
    count(shell, "a.txt", *pattern, "--output", "a.parquet")
    count(shell, "b.txt", *pattern, "--output", "b.parquet", "--memory", "1")
    shell("train", "b.txt", "a.txt", *how, "--output", "texts")
    shell("train", "--counts", "b.parquet", "a.parquet", *how, "--output", "counts")
    assert table("counts") == table("texts")


def test_a_folder_means_all_its_files(shell: Command) -> None:
    Path("folder").mkdir()
    for name in ("a", "b"):
        count(shell, f"{name}.txt", "--pattern", "gpt2", "--output", f"folder/{name}.parquet")
    shell("train", "--counts", "folder", *USUAL, "--output", "counts", "--memory", "1")
    shell("train", "a.txt", "b.txt", *USUAL, "--output", "texts")
    assert table("counts") == table("texts")
    shell(
        *("train", "--counts", "folder", "folder/a.parquet", *USUAL, "--output", "twice"),
        status=1,
        errors="folder/a.parquet: given twice",
    )
    Path("empty").mkdir()
    shell("train", "--counts", "empty", *USUAL, "--output", "x", status=1, errors="no *.parquet")


def test_counts_of_another_pattern_or_run_are_rejected(shell: Command) -> None:
    count(shell, "a.txt", "--pattern", "gpt2", "--output", "a.parquet")
    count(shell, "b.txt", "--pattern", "gpt2", "--output", "b.parquet", "--invalid", "skip")
    train = ("train", *SIZE, "--output", "x", "--counts")
    gpt2, llama = ("--pattern", "gpt2"), ("--pattern", "llama3")
    shell(*train, "a.parquet", *llama, status=1, errors="were split by gpt2, not by llama3: ")
    shell(*train, "a.parquet", "--no-pattern", status=1, errors="not by no pattern")
    mixed = "b.parquet: was counted with '--invalid skip', and a.parquet with"
    shell(*train, "a.parquet", "b.parquet", *gpt2, status=1, errors=mixed)
    shell(*train, "a.parquet", *gpt2, "--resume", status=1, errors="--resume applies to texts")
    shell(
        *train,
        "a.parquet",
        *gpt2,
        "--invalid",
        "skip",
        status=2,
        errors="--invalid applies to text",
    )
    shell("train", "a.txt", *train[1:], "a.parquet", *gpt2, status=2, errors="and not both")
    shell("train", *USUAL, "--output", "x", status=2, errors="either texts or --counts is required")
    shell(*("count-pretokens", "a.txt", *gpt2, "--output", "a.parquet"), status=1, errors="already")
    assert not Path("x", "x.tiktoken").exists()


def changed(name: str, **fields: object) -> None:
    """Write a.parquet again with other metadata, as `name`."""
    rows = parquet.read_table("a.parquet")
    key = b"bytepair.pretoken_counts"
    known = json.loads(rows.schema.metadata[key])
    assert set(fields) <= set(known)
    rows = rows.replace_schema_metadata({key: json.dumps(known | fields)})
    parquet.write_table(rows, name)


def test_every_part_of_a_run_is_needed_exactly_once(shell: Command) -> None:
    count(shell, "a.txt", "--pattern", "gpt2", "--output", "a.parquet")
    for part in range(3):
        changed(f"{part}.parquet", run="r", part=part, parts=3)
    changed("1-again.parquet", run="r", part=1, parts=3)
    train = ("train", *USUAL, "--output", "x", "--counts")
    missing = "belongs to a run of 3 parts; missing: 1"
    shell(*train, "0.parquet", "2.parquet", status=1, errors=missing)
    parts = ("0.parquet", "1.parquet", "2.parquet")
    twice = "1-again.parquet: is the same part of the same counts as 1.parquet"
    shell(*train, *parts, "1-again.parquet", status=1, errors=twice)
    unordered = "order of first occurrence is not known across the 3 parts"
    shell(*train, *parts, "--ties", "first-seen", status=1, errors=unordered)
    shell(*train, *parts, "a.parquet")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"version": 2}, "has version 2; this program supports 1"),
        ({"special_tokens": ["<s>"]}, "special tokens were removed from its texts"),
        ({"special_tokens": None}, "is damaged"),
    ],
)
def test_metadata_is_checked(shell: Command, fields: dict[str, object], message: str) -> None:
    count(shell, "a.txt", "--pattern", "gpt2", "--output", "a.parquet")
    changed("c.parquet", **fields)
    shell("train", "--counts", "c.parquet", *USUAL, "--output", "x", status=1, errors=message)


def test_damaged_files_of_counts_are_rejected(shell: Command) -> None:
    count(shell, "a.txt", "--pattern", "gpt2", "--output", "a.parquet")
    whole = Path("a.parquet").read_bytes()
    metadata = parquet.read_schema("a.parquet").metadata
    train = ("train", *USUAL, "--output", "x", "--counts")

    def rejected(message: str) -> None:
        shell(*train, "c.parquet", status=1, errors=f"c.parquet: {message}")

    rejected("No such file")
    Path("c.parquet").write_bytes(whole[:-100])
    rejected("not a Parquet file, or damaged")
    # A byte of the data, after the magic number and the header of the first page.
    Path("c.parquet").write_bytes(whole[:2000] + bytes([whole[2000] ^ 1]) + whole[2001:])
    rejected("not a Parquet file, or damaged")
    columns = {"pretoken": [b"a"], "count": [1]}
    parquet.write_table(pyarrow.table(columns), "c.parquet")
    rejected("its metadata do not contain the split pattern")
    for name, values, message in (
        ("count", ["1"], "not a table of pre-token counts"),
        ("count", [None], "not a table of pre-token counts"),
        ("count", pyarrow.array([None], pyarrow.int64()), "a pre-token or a count is missing"),
        ("count", [0], "counts with an empty pre-token, or a count"),
        ("count", [-1], "counts with an empty pre-token, or a count"),
        ("pretoken", [b""], "counts with an empty pre-token, or a count"),
        ("pretoken", pyarrow.array([None], pyarrow.binary()), "a pre-token or a count is missing"),
    ):
        rows = pyarrow.table(columns | {name: values}).replace_schema_metadata(metadata)
        parquet.write_table(rows, "c.parquet")
        rejected(message)
    most = pyarrow.table(columns | {"count": [2**63 - 1]}).replace_schema_metadata(metadata)
    for name in ("c.parquet", "d.parquet", "e.parquet"):
        parquet.write_table(most, name)
    many = "than can be counted"
    shell(*train, "c.parquet", "d.parquet", "e.parquet", status=1, errors=many)


@pytest.mark.slow
def test_a_full_disk_and_an_empty_text_leave_no_file(shell: Command, tmp_path: Path) -> None:
    Path("empty.txt").touch()
    empty = ("count-pretokens", "empty.txt", "--pattern", "gpt2", "--output", "x.parquet")
    shell(*empty, status=1, errors="there is no text to count")
    full = subprocess.run(
        command(
            *("count-pretokens", "a.txt", "--pattern", "gpt2", "--output", "x.parquet"),
            largest_file=2000,
        ),
        cwd=tmp_path,
        capture_output=True,
        env=clean_environment(),
        check=False,
    )
    assert full.returncode == 1
    assert b"x.parquet: cannot be written: " in full.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt", "b.txt", "empty.txt"]


def test_inconsistent_columns_add_nothing() -> None:
    def numbers(*values: int) -> bytes:
        return b"".join(value.to_bytes(8, "little", signed=True) for value in values)

    with Counting(None) as counting:
        counting.add_columns(b"xaby", numbers(1, 2, 3), numbers(5, 7))
        for words, offsets, counts in (
            (b"ab", numbers(0, 3), numbers(1)),
            (b"ab", numbers(0, 2, 1), numbers(1, 1)),
            (b"ab", numbers(-1, 1), numbers(1)),
            (b"ab", numbers(0), numbers(1)),
            (b"ab", numbers(0, 1)[:-1], numbers(1)),
            (b"ab", b"", b""),
        ):
            with pytest.raises(TrainingError):
                counting.add_columns(words, offsets, counts)
        counts_so_far = counting.counts()
        assert counts_so_far.items(0, 9) == [(b"a", 5), (b"b", 7)]
        assert counting.bytes == 12


def test_buckets_partition_the_counts_in_order() -> None:
    with Counting(PATTERNS["gpt2"]) as counting:
        counting.add([f"{number} " * (number % 3 + 1) for number in range(2000)])
        counts = counting.counts()
    items = counts.items(0, len(counts))
    places = {word: place for place, (word, _) in enumerate(items)}
    buckets = counts.buckets(7)
    held = [bucket.items(0, len(bucket)) for bucket in buckets]
    assert all(len(bucket) > len(items) / 14 for bucket in held)
    for bucket in held:
        assert sorted(bucket, key=lambda item: places[item[0]]) == bucket
    assert sorted(item for bucket in held for item in bucket) == sorted(items)
