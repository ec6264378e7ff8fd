"""A job from beginning to end: do what is missing, then add up the results."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from bytepair_tools.corpus.counting import add_up, count_partition
from bytepair_tools.corpus.encoding import encode_partition
from bytepair_tools.corpus.job import BETWEEN, SUCCESS_FILE, Job, Outcome, part
from bytepair_tools.corpus.progress import Progress
from bytepair_tools.corpus.runners import Runner, Work
from bytepair_tools.shared.failure import Failure
from bytepair_tools.shared.files import write_whole


def run_job(job: Job, folder: Path, runner: Callable[[], Runner], progress: Progress) -> Outcome:
    """Do what is missing of a job.

    Args:
        folder: Where the results are, or are to be.
        runner: Makes the runner; not called where nothing is missing.
    Returns:
        What was done for all partitions together, now and before.
    Raises:
        Failure: Something was refused, or a worker died; what is finished stays so.
    """
    job.begin(folder)
    partitions = range(len(job.partitions))
    if job.task != "count-pretokens":
        total = _stage(
            "partitions", encode_partition, job, folder, folder, partitions, runner, progress
        )
    else:
        total = _count(job, folder, runner, progress)
    write_whole(folder / SUCCESS_FILE, [])
    return total


def _count(job: Job, folder: Path, runner: Callable[[], Runner], progress: Progress) -> Outcome:
    between = folder / BETWEEN
    buckets = range(job.settings["buckets"])
    partitions = range(len(job.partitions))
    if any(job.outcome(part(folder, bucket)) is None for bucket in buckets):
        try:
            between.mkdir(exist_ok=True)
        except OSError as error:
            raise Failure(f"{between}: {error.strerror}") from None
        _stage("partitions", count_partition, job, folder, between, partitions, runner, progress)
    total = _stage("buckets", add_up, job, folder, folder, buckets, runner, progress)
    # Gone only when every sum is there.
    shutil.rmtree(between, ignore_errors=True)
    return total


def _stage(
    phase: str,
    work: Work,
    job: Job,
    folder: Path,
    results: Path,
    numbers: range,
    runner: Callable[[], Runner],
    progress: Progress,
) -> Outcome:
    """Run the parts that have no result yet."""
    outcomes = {number: job.outcome(part(results, number)) for number in numbers}
    missing = [number for number, outcome in outcomes.items() if outcome is None]
    if missing:
        progress.begin(phase, len(missing))
        for number, outcome in runner().run(work, job, folder, missing):
            outcomes[number] = outcome
            progress.done(number, outcome)
    return Outcome.total([outcome for outcome in outcomes.values() if outcome is not None])
