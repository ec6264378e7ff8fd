"""The counts of the starts of a text are those of texts cut there, and no longer start fits."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from bytepair_engine import EncodingSpec, load_encoding
from bytepair_engine.context.valid_cuts import ValidCuts, cuts_of_pipeline, valid_cuts
from bytepair_engine.pipeline.native import build
from support.context_formats import OTHERS, other, written
from support.context_laws import PARTS
from support.hard_text import HARD_CHARACTERS
from support.random_pipelines import LETTERS, NAMES, random_pipeline

SEED = 20261125
#: What steps of pipelines drop, compose, map, fuse, find or take white space to.
MORE = [
    *("lft", "Wörd", "<tool>", "<s>", "aa", "ab ab", "tokenizer", " test", "한국어", "ﬁ", "½", "İ"),
    *("\x07", "ǆ", "▁", "▁▁", "</w>", "##", "[U]", "<0x41>", "a\u0323\u0301", "ᄀ", "ᅡ", "\u3000"),
    *(
        "<x>",
        "AB",
        " y",
        "  z",
        "<start_of_turn>",
        "<table>",
        "worldly",
        "hello",
        "日本語の",
    ),
]
#: Kinds with affixes, dropped units, or steps that look further.
UNKNOWN = {
    *("steps after byte level", "byte level with an end of word"),
    *(
        "ranks, a template",
        "words, no unknown",
        "a prefix",
        "an end of word",
        "suffix",
        "suffix, spaces kept",
    ),
}
Counted = tuple[int | None, list[tuple[int, int]]] | None


def check(
    counts_of: Callable[[str, int], Counted],
    count: Callable[[str], int],
    cuts: ValidCuts,
    few: Sequence[str],
    rng: random.Random,
) -> bool:
    """Whether a random text has a start beyond which none fits."""
    text = "".join(rng.choices(few, k=rng.randrange(30)))
    budget = rng.choice([0, 1, 2, 3, 6, 12])
    found = counts_of(text, budget)
    assert found is not None
    beyond, counts = found
    for place, number in counts:
        assert not cuts.has(text, place) or number == count(text[:place]), (text, place)
    if beyond is None:
        assert [place for place, _ in counts[-1:]] == ([len(text)] if text else [])
        return False
    more = text + "".join(rng.choices(few, k=rng.randrange(9)))
    for whole, is_complete in ((text, True), (more, False)):
        first = cuts.first(text, beyond, is_complete=is_complete)
        assert first is not None or not is_complete
        for place in range(len(whole) + 1 if first is None else first, len(whole) + 1):
            assert count(whole[:place]) > budget, (text, whole, budget, beyond, place)
    return True


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_other_formats(name: str, tmp_path: Path) -> None:
    file = written(name, tmp_path)
    if file.suffix == ".json":
        # No added token looks at the text around it.
        content = json.loads(file.read_bytes())
        for token in content["added_tokens"]:
            token |= dict.fromkeys(("lstrip", "rstrip", "single_word"), False)
            token["normalized"] &= not token["special"]
        file.write_text(json.dumps(content), encoding="utf-8")
    encoding = load_encoding(EncodingSpec(name="made", file=file))
    cuts = valid_cuts(encoding, frozenset())
    if cuts is None:
        assert name in UNKNOWN or name.startswith("split ")
        return
    rng, found = random.Random(f"{SEED} {name}"), 0
    for _ in range(60):
        few = rng.choices(PARTS + MORE, k=rng.randrange(1, 5))
        found += check(encoding.start_counts, encoding.count, cuts, few, rng)
    assert found


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_random_pipelines(part: int) -> None:
    rng, found = random.Random(f"{SEED} {part}"), 0
    for _ in range(300):
        pipeline = random_pipeline(rng)
        names = [token.name for token in pipeline.added if token.special]
        allowed = frozenset(name for name in names if rng.random() < 0.3)
        cuts = cuts_of_pipeline(pipeline, allowed)
        if cuts is None:
            continue
        core = build(pipeline, 1 << 20)
        taken, none = core.special_set(allowed), core.special_set(frozenset())
        for _ in range(8):
            pool = rng.choice([LETTERS, LETTERS, [*LETTERS, *NAMES], HARD_CHARACTERS])
            found += check(
                lambda text, budget: core.start_counts(text, taken, budget),  # noqa: B023
                lambda text: core.count(text, taken, none, None),  # noqa: B023
                cuts,
                rng.choices(pool, k=rng.randrange(1, 7)),
                rng,
            )
    assert found


@pytest.mark.parametrize("name", ["llama", "gemma", "default"])
@pytest.mark.parametrize("unit", ["pneumonoultramicroscopic", "日本語の", "e\u0301", "ab ", " "])
def test_text_without_split_points_is_split(name: str, unit: str, tmp_path: Path) -> None:
    """Each chunk is the longest that fits, by the package's counts."""
    encoding, encode = other(name, tmp_path)
    text = (unit * 3000)[:3000]
    chunks = encoding.split(text, 40, level="code_point")
    assert "".join(chunk.text for chunk in chunks) == text
    for chunk in chunks[:3]:
        assert len(encode(chunk.text)) == chunk.count <= 40
        longer = (text[chunk.start : end] for end in range(chunk.end + 1, chunk.end + 30))
        assert all(len(encode(part)) > 40 for part in longer if chunk.end < len(text))
