"""Counting is exact with any number of threads, any memory limit and any cut of the text."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from bytepair_engine.backends.reference import split
from bytepair_engine.training import counting
from bytepair_engine.training.counting import Counting, parts
from bytepair_engine.vocabulary.patterns import PATTERNS
from support.hard_text import HARD_CHARACTERS, HARD_PIECES

SEED = 20261121


def texts(number: int) -> list[str]:
    rng = random.Random(SEED)
    return ["".join(rng.choices(HARD_PIECES + HARD_CHARACTERS, k=200)) for _ in range(number)]


def expected(all_of_them: list[str], pattern: str) -> list[tuple[bytes, int]]:
    seen: dict[bytes, int] = {}
    for text in all_of_them:
        for piece in split(text, pattern):
            seen[piece.encode()] = seen.get(piece.encode(), 0) + 1
    return list(seen.items())


def counted(all_of_them: list[str], pattern: str, size: int, threads: int = 0) -> Counting:
    result = Counting(pattern, threads=threads)
    for start in range(0, len(all_of_them), size):
        result.add(all_of_them[start : start + size])
    return result


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_counts_are_exact_and_in_the_order_of_first_occurrence(threads: int) -> None:
    pattern = PATTERNS["cl100k_base"]
    with counted(texts(60), pattern, 20, threads=threads) as done:
        counts = done.counts()
        assert counts.items(0, len(counts)) == expected(texts(60), pattern)
        assert done.bytes == counts.total_bytes == sum(len(text.encode()) for text in texts(60))


def test_counts_that_outgrow_memory_are_written_and_merged(tmp_path: Path) -> None:
    pattern = PATTERNS["gpt2"]
    with Counting(pattern, folder=str(tmp_path), threads=2, memory_bytes=100_000) as done:
        for start in range(0, 60, 5):
            done.add(texts(60)[start : start + 5])
        assert done.runs >= 2
        assert list(tmp_path.glob("*/run-*"))
        counts = done.counts()
        assert counts.items(0, len(counts)) == expected(texts(60), pattern)
        assert len(done.counts()) == len(counts)  # counting can continue
    assert list(tmp_path.iterdir()) == []


def test_resumed_counts_keep_their_order() -> None:
    pattern = PATTERNS["gpt2"]
    with counted(texts(60)[:30], pattern, 10) as before, Counting(pattern) as after:
        after.add_counts(before.counts())
        after.add(texts(60)[30:])
        counts = after.counts()
        assert counts.items(0, len(counts)) == expected(texts(60), pattern)


@pytest.mark.parametrize("name", PATTERNS)
def test_a_text_in_pieces_is_counted_as_a_whole(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "PART_CHARACTERS", 50)
    text = "".join(texts(20))
    pieces = [text[start : start + 33] for start in range(0, len(text), 33)]
    cut = list(parts(pieces, PATTERNS[name]))
    assert "".join(cut) == text
    assert len(cut) > 10
    assert [piece for part in cut for piece in split(part, PATTERNS[name])] == split(
        text, PATTERNS[name]
    )


def test_without_known_split_points_a_text_is_not_divided() -> None:
    assert list(parts(["ab ", "cd"], r"\w+|\s")) == ["ab cd"]
    assert list(parts(["ab ", "cd"], None)) == ["ab cd"]
    assert list(parts([""], None)) == []
