"""Trainings that are interrupted, or find a full disk, a missing file or a closed pipe."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import threading
from pathlib import Path

import pytest
from support.in_process import Command
from support.serving import clean_environment
from support.shell import command
from support.training import TEXTS, USUAL, table

pytestmark = pytest.mark.slow  # the tests start processes, and count megabytes of text

ROWS = b"".join(json.dumps({"text": text}).encode() + b"\n" for text in TEXTS)
#: More text than is counted at once, and part of the next batch.
MANY = ROWS * (12_000_000 // len(ROWS))
#: More text than is counted at once.
ENOUGH = ROWS * (9_000_000 // len(ROWS))
PACKED = gzip.compress(MANY, 1)


def stdin_run(
    folder: Path, *arguments: str, limit: int | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run the command on MANY. No file may grow beyond `limit` bytes."""
    return subprocess.run(
        command(*arguments, largest_file=limit),
        cwd=folder,
        input=PACKED,
        capture_output=True,
        env=clean_environment(),
        check=False,
    )


def test_a_full_disk_leaves_no_files_that_the_next_run_rejects(
    shell: Command, tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text("some text")
    # Without a tokenizer.json, the small configuration is followed by the large rank file.
    train = ("train", "a.txt", "--vocab-size", "258", "--pattern", r"\w+|\W+", "--output", "out")
    extend = ("extend", "gpt2", "--special", "x", "--output", "chat")
    for arguments in (train, extend):
        full = stdin_run(tmp_path, *arguments, limit=2000)
        assert b"cannot be written: File too large" in full.stderr
        assert list((tmp_path / arguments[-1]).iterdir()) == []


def test_a_full_disk_of_temporary_files(shell: Command, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(" ".join(map(str, range(400_000))))
    arguments = ("train", "a.txt", *USUAL, "--memory", "1", "--output", "out")
    full = stdin_run(tmp_path, *arguments, limit=2000)
    assert b"temporary files of --memory cannot be written: File too large" in full.stderr


def interrupted(folder: Path) -> None:
    """Train on standard input, and press Ctrl-C while it waits for more."""
    arguments = ("train", "-", *USUAL, "--format", "jsonl", "--json", "--output", "out")
    with subprocess.Popen(
        command(*arguments),
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=clean_environment(),
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(MANY[: len(MANY) * 3 // 4 // len(ROWS) * len(ROWS)])
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["phase"] == "count"
        process.send_signal(signal.SIGINT)
        assert "interrupted; what was counted is in" in process.stderr.read().decode()
    assert process.returncode == 130


def test_an_interrupted_training_can_be_resumed(shell: Command, tmp_path: Path) -> None:
    interrupted(tmp_path)
    kept = (tmp_path / "out" / "checkpoint").read_bytes()
    again = ("train", "-", *USUAL, "--format", "jsonl", "--output", "out", "--resume")

    # A full disk leaves the checkpoint unchanged.
    full = stdin_run(tmp_path, *again, limit=2000)
    assert full.returncode == 1
    assert b"cannot be written: File too large" in full.stderr
    assert (tmp_path / "out" / "checkpoint").read_bytes() == kept
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["checkpoint"]

    other = stdin_run(tmp_path, *again, "--pattern", "llama3")
    assert b"belongs to a training with other pattern" in other.stderr
    assert stdin_run(tmp_path, *again).returncode == 0
    assert not (tmp_path / "out" / "checkpoint").exists()
    (tmp_path / "all.jsonl").write_bytes(MANY)
    shell("train", "all.jsonl", *USUAL, "--output", "new/out")
    assert table(tmp_path / "out") == table(tmp_path / "new" / "out")


def test_counts_survive_a_file_that_vanishes(shell: Command, tmp_path: Path) -> None:
    """The file exists when the command starts, is gone when its turn comes, and exists again
    later."""
    first, second, elsewhere = (tmp_path / name for name in ("1.jsonl", "2.jsonl", "gone"))
    os.mkfifo(first)
    second.write_bytes(ROWS)

    def train(*, vanishes: bool) -> None:
        def feed() -> None:
            with first.open("wb") as pipe:
                pipe.write(ENOUGH)
                if vanishes:
                    second.rename(elsewhere)

        feeder = threading.Thread(target=feed)
        feeder.start()
        files = ("train", "1.jsonl", "2.jsonl", *USUAL, "--output", "out")
        if vanishes:
            shell(*files, status=1, errors="2.jsonl: No such file or directory")
        else:
            shell(*files, "--resume")
        feeder.join()

    train(vanishes=True)
    elsewhere.rename(second)
    train(vanishes=False)
    (tmp_path / "all.jsonl").write_bytes(ENOUGH + ROWS)
    shell("train", "all.jsonl", *USUAL, "--output", "new/out")
    assert table(tmp_path / "out") == table(tmp_path / "new" / "out")


def test_a_reader_that_goes_away_is_not_a_full_disk(shell: Command, tmp_path: Path) -> None:
    """Also without --memory, and where the counts come from files."""
    (tmp_path / "a.txt").write_text(TEXTS[0])
    shell("count-pretokens", "a.txt", "--pattern", "gpt2", "--output", "counts.parquet")
    for source in (("a.txt",), ("--counts", "counts.parquet")):
        training = command("train", *source, *USUAL, "--json", "--output", "out")
        read, write = os.pipe()
        os.close(read)
        with os.fdopen(write, "wb") as closed:
            ended = subprocess.run(
                training,
                cwd=tmp_path,
                stdout=closed,
                stderr=subprocess.PIPE,
                env=clean_environment(),
                check=False,
            )
        assert (ended.returncode, ended.stderr) == (141, b"")
