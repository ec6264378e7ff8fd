"""Count the pre-tokens of a corpus in two stages: count each partition, then sum each bucket.

The counts of a partition are divided into buckets by the pre-tokens' bytes, each with its own row
groups. A worker then sums one bucket over all partitions, which contains all counts of its
pre-tokens. Workers communicate only by files, so finished work is never lost.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from bytepair_engine.training.counting import Counting, batches, parts

from bytepair_tools.corpus.job import INTERMEDIATE, Job, Outcome, part
from bytepair_tools.counts.file import Counted, opened_counts, write_groups
from bytepair_tools.counts.table import GROUP_ROWS, add_table, tables
from bytepair_tools.texts.documents import Documents

#: The metadata key of the number of row groups of each bucket.
_GROUPS: Final = b"bytepair.bucket_row_groups"


def count_partition(job: Job, folder: Path, number: int) -> Outcome:
    """Count one partition.

    Raises:
        Failure: The partition cannot be read, or the counts cannot be written.
    """
    settings = job.settings
    documents = Documents(settings["format"], settings["column"], settings["invalid"])
    pattern = settings["pattern"]
    seen = 0

    def texts() -> Iterator[str]:
        nonlocal seen
        for document in documents.read(job.partitions[number]):
            seen += 1
            yield from parts(document, pattern)

    with Counting(pattern, threads=1) as counting:
        for batch in batches(texts()):
            counting.add(batch)
        counts = counting.counts()
    outcome = Outcome(
        seen, counts.total_bytes, replaced=documents.replaced, skipped=documents.skipped
    )
    buckets = counts.buckets(settings["buckets"])
    metadata = job.metadata(outcome) | {
        _GROUPS: json.dumps([-(-len(bucket) // GROUP_ROWS) for bucket in buckets]).encode()
    }
    groups = (group for bucket in buckets for group in tables(bucket))
    write_groups(part(folder / INTERMEDIATE, number), metadata, groups)
    return outcome


def add_up(job: Job, folder: Path, bucket: int) -> Outcome:
    """Sum one bucket over all partitions.

    Raises:
        Failure: A partition's counts cannot be read, or the sums cannot be written.
    """
    outcomes: list[Outcome] = []
    with Counting(None, threads=1) as counting:
        for number in range(len(job.partitions)):
            path = part(folder / INTERMEDIATE, number)
            outcomes.append(_add(counting, job, path, bucket))
        counts = counting.counts()
    settings, total = job.settings, Outcome.total(outcomes)
    # Only bucket 0 reports documents, because a training sums the reports of all parts.
    outcome = Outcome() if bucket else total
    outcome = replace(outcome, text_bytes=counts.total_bytes)
    counted = Counted(
        settings["pattern"],
        settings["invalid"],
        run=job.fingerprint,
        part=bucket,
        parts=settings["buckets"],
        replaced=outcome.replaced,
        skipped=outcome.skipped,
        text_bytes=outcome.text_bytes,
    )
    metadata = counted.metadata() | job.metadata(outcome)
    write_groups(part(folder, bucket), metadata, tables(counts))
    return outcome


def _add(counting: Counting, job: Job, path: Path, bucket: int) -> Outcome:
    with opened_counts(path) as file:
        metadata = file.metadata.metadata or {}
        outcome = job.owned(path, metadata)
        groups = json.loads(metadata[_GROUPS])
        first = sum(groups[:bucket])
        for group in range(first, first + groups[bucket]):
            # Threads would take longer than reading a small group.
            add_table(counting, file.read_row_group(group, use_threads=False), str(path))
    return outcome
