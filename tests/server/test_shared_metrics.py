"""Metrics in shared memory: sums, restarts, and the rendered text."""

from __future__ import annotations

import math
import os
import signal
import warnings

import pytest
from bytepair_server.shared.memory import Block
from bytepair_server.shared.metrics import OTHER, Counter, Gauge, Histogram
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry
from prometheus_client import Histogram as Reference

BOUNDS = (0.5, 1.0, 2.0)
#: A block that holds 900 labels of 200 characters, beside the part that is reserved.
AREA_BYTES = 256 << 10
CALLERS = 1500


def samples(family: Counter | Gauge | Histogram) -> dict[tuple[str, ...], float]:
    return {
        (sample.name, *sample.labels.values()): sample.value
        for metric in family.collect()
        for sample in metric.samples
    }


def test_blocks_are_summed_including_the_first() -> None:
    blocks = (Block(), Block())
    mine, theirs = (Counter(order, "c", "", ("l",)) for order in (blocks, blocks[::-1]))
    mine.labels("a").inc()
    theirs.labels("a").inc(2)
    theirs.labels("b").inc(4)
    assert samples(mine) == samples(theirs) == {("c_total", "a"): 3, ("c_total", "b"): 4}


def test_a_gauge_is_a_sum_or_a_maximum_and_ends_with_its_process() -> None:
    blocks = (Block(), Block())
    for name, merge, both in (("total", sum, 5), ("largest", max, 3)):
        mine, theirs = (Gauge(order, name, "", (), merge) for order in (blocks, blocks[::-1]))
        mine.set_function(lambda: 3)
        theirs.set(2)
        assert samples(mine) == {(name,): both}
        mine.forget(blocks[1])
        assert samples(mine) == {(name,): 3}


def test_the_counts_of_a_killed_process_are_kept_and_continued() -> None:
    block = Block()
    for _ in range(2):
        with warnings.catch_warnings():
            # Python 3.12 warns of the threads of other tests, which the child does not use.
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if not pid:
            counter = Counter((block,), "c", "", ("l",))
            cell = counter.labels("ä\n")
            for _ in range(1000):
                cell.inc()
            os.kill(os.getpid(), signal.SIGKILL)
        os.waitpid(pid, 0)
    # Half a line, as a process leaves it that is killed while it writes.
    end = int(block._cells[0])
    block._lines[end : end + 3] = b'["d'
    other = Counter((Block(), block), "c", "", ("l",))
    assert samples(other) == {("c_total", "ä\n"): 2000}
    mine = Counter((block,), "d", "", ())
    mine.labels().inc()
    assert samples(mine) == {("d_total",): 1}


@given(st.lists(st.sampled_from((*BOUNDS, 0.0, 0.75, 3.0, 1e9)) | st.floats(0, 10)))
def test_a_histogram_is_rendered_as_by_prometheus_client(values: list[float]) -> None:
    blocks = (Block(), Block())
    registry = CollectorRegistry()
    reference = Reference("h", "", ["l"], buckets=BOUNDS, registry=registry).labels("a")
    mine = [Histogram(order, "h", "", ("l",), BOUNDS) for order in (blocks, blocks[::-1])]
    for number, value in enumerate(values):
        reference.observe(value)
        mine[number % 2].labels("a").observe(value)
    expected = {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for metric in registry.collect()
        for sample in metric.samples
        if not sample.name.endswith("_created")
    }
    actual = {(name, *sorted(labels)): value for (name, *labels), value in samples(mine[0]).items()}
    if not values:
        assert actual == {}
        return
    assert actual.keys() == expected.keys()
    for key, value in expected.items():
        assert math.isclose(actual[key], value), key


def test_labels_beyond_the_space_share_one_entry() -> None:
    """No call fails, and the total stays right."""
    block = Block(AREA_BYTES)
    counter = Counter((block,), "c", "", ("caller", "encoding"))
    for number in range(CALLERS):
        counter.labels(f"{number:0200}", "e").inc()
    found = samples(counter)
    others = found.pop(("c_total", OTHER, OTHER))
    assert 0 < others < CALLERS / 2
    assert set(found.values()) == {1.0}
    assert len(found) + others == CALLERS
    for number in range(50):  # every metric keeps room for OTHER
        histogram = Histogram((block,), f"h{number}", "", ("caller",), (0.1, 1.0))
        histogram.labels("x" * 300).observe(0.5)
        assert samples(histogram)[f"h{number}_count", OTHER] == 1


def test_a_full_block_rejects_new_rows_and_keeps_the_others() -> None:
    block = Block(128)
    row = block.reserve("t", ("a",), 14)
    row[13] = 3.0
    with pytest.raises(MemoryError, match="t is full"):
        block.reserve("t", ("b",), 2)
    block.reserve("t", ("c",), 1)
    with pytest.raises(MemoryError, match="t is full"):
        block.reserve("t", ("d",), 0, 1)
    assert block.reserve("t", ("a",), 14)[13] == 3.0
    assert set(block.rows("t")) == {("a",), ("c",)}
