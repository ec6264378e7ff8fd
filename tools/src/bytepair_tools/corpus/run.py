"""Run a job: compute the missing results, then sum the outcomes."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from bytepair_tools.corpus.counting import add_up, count_partition
from bytepair_tools.corpus.encoding import encode_partition
from bytepair_tools.corpus.job import INTERMEDIATE, SUCCESS_FILE, Job, Outcome, part
from bytepair_tools.corpus.progress import Progress
from bytepair_tools.corpus.runners import Runner, Work
from bytepair_tools.shared.failure import Failure, reason
from bytepair_tools.shared.files import write_atomically


def run_job(job: Job, folder: Path, runner: Callable[[], Runner], progress: Progress) -> Outcome:
    """Compute the missing results of a job.

    Args:
        job: The job.
        folder: The folder of results.
        runner: Creates the runner; not called if nothing is missing.
        progress: Shows the progress.
    Returns:
        The total outcome, including earlier runs.
    Raises:
        Failure: Input was rejected, or a worker died; finished results are kept.
    """
    job.begin(folder)
    partitions = range(len(job.partitions))
    if job.task != "count-pretokens":
        total = _stage(
            "partitions", encode_partition, job, folder, folder, partitions, runner, progress
        )
    else:
        total = _count(job, folder, runner, progress)
    # Only after all sums are complete.
    shutil.rmtree(folder / INTERMEDIATE, ignore_errors=True)
    write_atomically(folder / SUCCESS_FILE, [])
    return total


def _count(job: Job, folder: Path, runner: Callable[[], Runner], progress: Progress) -> Outcome:
    intermediate = folder / INTERMEDIATE
    buckets = range(job.settings["buckets"])
    partitions = range(len(job.partitions))
    if any(job.outcome(part(folder, bucket)) is None for bucket in buckets):
        try:
            intermediate.mkdir(exist_ok=True)
        except OSError as error:
            raise Failure(f"{intermediate}: {reason(error)}") from None
        _stage(
            "partitions", count_partition, job, folder, intermediate, partitions, runner, progress
        )
    return _stage("buckets", add_up, job, folder, folder, buckets, runner, progress)


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
    """Compute the results that are missing, and return the total outcome."""
    outcomes = {number: job.outcome(part(results, number)) for number in numbers}
    missing = [number for number, outcome in outcomes.items() if outcome is None]
    if missing:
        (folder / SUCCESS_FILE).unlink(missing_ok=True)
        progress.begin(phase, len(missing))
        for number, outcome in runner().run(work, folder, missing):
            outcomes[number] = outcome
            progress.done(number, outcome)
    return Outcome.total([outcome for outcome in outcomes.values() if outcome is not None])
