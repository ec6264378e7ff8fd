"""Workers of bytepair corpus that die, and runs into the same folder."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic, sleep

import pytest
from bytepair_tools.corpus.job import Job, Outcome
from bytepair_tools.corpus.runners import LocalProcesses
from bytepair_tools.shared.failure import Failure
from support.corpus import COUNT, GPT2, TRAIN, WORKERS, table
from support.dying import feeding, killing_its_reader, readers
from support.in_process import Command
from support.serving import START_SECONDS, clean_environment
from support.shell import command


@pytest.mark.slow
def test_a_worker_that_dies_loses_only_its_partition(
    shell: Command, texts: list[list[str]]
) -> None:
    fifo = Path("e.jsonl")
    counting = ("corpus", "count-pretokens", "corpus", "e.jsonl", *GPT2)
    whole = (*counting, "--output", "counts", "--workers", "1")
    with killing_its_reader(fifo):
        shell(*whole, status=1, errors="a worker died")
    finished = sorted(path.name for path in Path("counts/_partitions").glob("part-*"))
    assert finished == [f"part-0000{n}.parquet" for n in range(4)]
    assert not Path("counts/_SUCCESS").exists()
    line = json.dumps({"text": texts[0][0]}) + "\n"
    with feeding(fifo, line.encode()):
        printed = shell(*whole, "--json").splitlines()
    done = [json.loads(text) for text in printed]
    assert [line["number"] for line in done if line["phase"] == "partitions"] == [4]
    assert list(Path("counts").rglob(".*")) == []
    shell(*TRAIN, "--counts", "counts", "--output", "apart")
    fifo.unlink()
    fifo.write_text(line)
    shell(*counting, "--output", "again", *WORKERS)
    shell(*TRAIN, "--counts", "again", "--output", "at-once")
    assert table("apart") == table("at-once")


class Dying:
    """Work that ends its process when a worker unpickles it, before it reads anything."""

    def __reduce__(self) -> tuple[Callable[[int], object], tuple[int]]:
        return os._exit, (1,)

    def __call__(self, job: Job, folder: Path, number: int) -> Outcome:
        raise NotImplementedError


class Interrupted(Dying):
    """Work whose worker gets Ctrl-C when it unpickles it."""

    def __reduce__(self) -> tuple[Callable[[int], object], tuple[int]]:
        return signal.raise_signal, (signal.SIGINT,)


class Submitted(list[int]):
    """Numbers that are submitted slowly, so that the first worker dies in between."""

    def __iter__(self) -> Iterator[int]:
        for number in super().__iter__():
            sleep(0.05)
            yield number


@pytest.mark.slow
def test_a_worker_that_dies_at_its_start(shell: Command) -> None:
    numbers = (1,) * 50_000  # more than a pipe holds
    job = Job("count", {}, ("a.txt",) * 50_000, numbers, numbers)
    Path("out").mkdir()
    job.begin(Path("out"))
    outcomes = LocalProcesses(1).run(Dying(), Path("out"), Submitted(range(400)))
    with pytest.raises(Failure, match="a worker died"):
        next(outcomes)
    assert Job.of_folder(Path("out")) == job
    assert Job.of_folder(Path("out")).fingerprint == job.fingerprint


@pytest.mark.slow
def test_workers_that_are_interrupted_at_their_start_print_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    Job("count", {}, ("a.txt",), (1,), (1,)).begin(tmp_path)
    with pytest.raises(Failure, match="a worker died"):
        next(LocalProcesses(1).run(Interrupted(), tmp_path, [0]))
    assert capfd.readouterr().err == ""
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == set()


@pytest.mark.slow
def test_workers_end_with_a_killed_run(shell: Command, tmp_path: Path) -> None:
    fifo = tmp_path / "pipe.txt"
    os.mkfifo(fifo)
    # Opened for both, the pipe lets its reader wait for content.
    with (
        fifo.open("r+b", buffering=0),
        subprocess.Popen(command(*COUNT, "pipe.txt"), env=clean_environment()) as run,
    ):
        while not (found := readers(fifo)):
            sleep(0.05)
        run.kill()
        give_up = monotonic() + START_SECONDS
        while (found := readers(fifo)) and monotonic() < give_up:
            sleep(0.05)
    for worker in found:
        os.kill(worker, signal.SIGKILL)
    assert found == []


@pytest.mark.slow
def test_a_second_run_into_the_same_folder_is_rejected(shell: Command, tmp_path: Path) -> None:
    Path("a.txt").write_text("a word")
    fifo = tmp_path / "pipe.txt"
    os.mkfifo(fifo)
    with (
        fifo.open("r+b", buffering=0),
        subprocess.Popen(command(*COUNT, "pipe.txt"), env=clean_environment()) as run,
    ):
        try:
            while not readers(fifo):
                sleep(0.05)
            shell(*COUNT, "a.txt", status=1, errors="x: another run is writing to it")
        finally:
            run.kill()
        while readers(fifo):  # would write a result if the pipe ended
            sleep(0.05)
    shell(*COUNT, "a.txt")
    assert not Path("x/_lock").exists()
