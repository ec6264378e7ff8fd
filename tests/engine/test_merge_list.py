"""The core parses lists of merges as Python does."""

from __future__ import annotations

import random

from bytepair_engine import _core
from bytepair_engine.formats.merge_list import columns_slowly

SEED = 20261121
PARTS = ["a", "b", "é", "日", "##", "##a", "##é", "ab", "aé", "日b", "\ud800", " ", ""]


def test_random_lists() -> None:
    rng = random.Random(SEED)
    whole = rejected = 0
    for _ in range(3000):
        prefix = rng.choice([0, 0, 1, 2])
        joined = [a + b for a in PARTS[:6] for b in PARTS[:6]]
        known = [*PARTS[:10], *joined, *([""] if rng.random() < 0.5 else [])]
        vocabulary = {token: i for i, token in enumerate(dict.fromkeys(known))}
        pool = PARTS if rng.random() < 0.2 else PARTS[:2] if rng.random() < 0.5 else PARTS[:6]
        halves = rng.choices(pool, k=2 * rng.randrange(7))
        expected = columns_slowly(halves, vocabulary, prefix)
        assert _core.merge_columns(halves, vocabulary, prefix) == expected, (SEED, halves, prefix)
        if isinstance(expected, int):
            rejected += 1
        else:
            whole += 1
            assert len(set(zip(expected[2], expected[3], strict=True))) == len(expected[0])
    assert min(whole, rejected) > 100
