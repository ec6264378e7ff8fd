"""Pipelines of random steps and settings, in combinations that no published file has: the core does
what the reference does."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from bytepair_engine.errors import SpecialTokenFound
from bytepair_engine.pipeline.backend import PipelineBackend
from bytepair_engine.pipeline.definition import AddedToken
from bytepair_engine.pipeline.native import build
from support.hard_text import HARD_CHARACTERS
from support.random_pipelines import LETTERS, NAMES, random_pipeline

SEED = 20261121


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_random_pipelines(part: int) -> None:
    rng = random.Random(f"{SEED} {part}")
    rejected = 0
    for _ in range(150):
        pipeline = random_pipeline(rng)
        reference, core = PipelineBackend(pipeline), build(pipeline, 1 << 20)
        names = frozenset(token.name for token in pipeline.added if token.special)
        for _ in range(8):
            pool = rng.choice([LETTERS, LETTERS, [*LETTERS, *NAMES], HARD_CHARACTERS])
            text = "".join(rng.choices(pool, k=rng.randrange(14)))
            allowed = frozenset(name for name in names if rng.random() < 0.5)
            disallowed = names - allowed if rng.random() < 0.3 else frozenset[str]()
            unit = rng.choice(["byte", "code_point", "utf16"])
            found: list[Any] = []
            for backend in (reference, core):
                sets = backend.special_set(allowed), backend.special_set(disallowed)
                try:
                    ids = backend.encode(text, *sets)  # type: ignore[arg-type]
                    places = backend.encode_with_offsets(text, unit, *sets)  # type: ignore[arg-type]
                    assert places[1] == sorted(places[1]), (SEED, text, unit, pipeline)
                    limited = backend.count(text, *sets, 2)  # type: ignore[arg-type]
                    found.append((ids, places, limited))
                except SpecialTokenFound as error:
                    found.append((error.token, error.byte_offset))
                    rejected += 1
            assert found[0] == found[1], (SEED, text, allowed, disallowed, unit, pipeline)
    assert rejected > 0


@pytest.mark.slow
@pytest.mark.parametrize("strips", ["left_strip", "right_strip"])
def test_white_space_beside_many_added_tokens_is_read_once(strips: str) -> None:
    """Reading it again for each token would take half an hour."""
    flags: dict[str, Any] = {strips: True}
    token = AddedToken(content="\n", id=400, special=False, **flags)
    pipeline = random_pipeline(random.Random(SEED))
    pipeline = replace(pipeline, normalisers=(), pre_tokenizers=(), added=(token,))
    core, reference = build(pipeline, 1 << 20), PipelineBackend(pipeline)
    none = core.special_set(frozenset())
    few, more = (core.count("\n" * size, none, none, None) for size in (3, 4))
    none_there = reference.special_set(frozenset())
    assert [few, more] == [
        reference.count("\n" * size, none_there, none_there, None) for size in (3, 4)
    ]
    size = 3_000_000
    assert core.count("\n" * size, none, none, None) == few + (size - 3) * (more - few)
