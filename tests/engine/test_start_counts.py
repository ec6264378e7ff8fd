"""The counts of starts and ends of a text are those of texts cut there, and nothing longer fits."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest
from bytepair_engine import Encoding, EncodingSpec, load_encoding
from bytepair_engine.backends.cores import resolve
from bytepair_engine.building import build_pipeline_encoding
from bytepair_engine.context import measure, pipeline_search
from bytepair_engine.context.boundaries import LEVELS
from bytepair_engine.context.truncation_search import Keep
from bytepair_engine.context.valid_cuts import ValidCuts
from bytepair_engine.context.valid_ends import ValidEnds
from bytepair_engine.errors import VocabularyError
from bytepair_engine.pipeline.definition import Pipeline
from bytepair_engine.pipeline.native import build
from bytepair_engine.resources import Resources
from support.context_api import KEEPS, Cut, Library
from support.context_checks import check_truncation
from support.context_formats import OTHERS, counts, other, written
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
#: Kinds that put before a text what an added token starts with.
PUT_BEFORE = {"metaspace first, after a prefix", "spaces normalised"}
Counted = tuple[int | None, list[tuple[int, int]]] | None


def check(
    counts_of: Callable[[str, int], Counted],
    count: Callable[[str], int],
    cuts: ValidCuts,
    few: Sequence[str],
    rng: random.Random,
) -> tuple[bool, int]:
    """Whether a random text has a place beyond which nothing fits, and how many counts it has."""
    of_ends = isinstance(cuts, ValidEnds)
    text = "".join(rng.choices(few, k=rng.randrange(30)))
    budget = rng.choice([0, 1, 2, 3, 6, 12])
    found = counts_of(text, budget)
    assert found is not None
    beyond, counts = found
    if isinstance(cuts, ValidEnds):
        known = cuts.known(text, 0, dict(counts))
    else:
        known = {place: number for place, number in counts if cuts.has(text, place)}
    for place, number in known.items():
        assert number == count(text[place:] if of_ends else text[:place]), (text, place)
    if beyond is None:
        if not of_ends:
            assert [place for place, _ in counts[-1:]] == ([len(text)] if text else [])
        return False, len(known)
    more = "".join(rng.choices(few, k=rng.randrange(9)))
    for whole, is_complete in ((text, True), (more + text if of_ends else text + more, False)):
        if isinstance(cuts, ValidEnds):
            last = cuts.last(
                text, beyond, 0, lambda at: count(text[at:]) < budget, is_complete=is_complete
            )
            places = range(0 if last is None else len(whole) - len(text) + last)
        else:
            first = cuts.first(whole, beyond, is_complete=is_complete)
            assert first is not None or not is_complete
            places = range(len(whole) + 1 if first is None else first, len(whole) + 1)
        for place in places:
            part = whole[place:] if of_ends else whole[:place]
            assert count(part) > budget, (text, whole, budget, beyond, place)
    return True, len(known)


def plain(name: str, folder: Path) -> Encoding:
    """One of `OTHERS`, of which no added token looks at the text around it."""
    file = written(name, folder)
    if file.suffix == ".json":
        content = json.loads(file.read_bytes())
        for token in content["added_tokens"]:
            token |= dict.fromkeys(("lstrip", "rstrip", "single_word"), False)
            token["normalized"] &= not token["special"]
        file.write_text(json.dumps(content), encoding="utf-8")
    return load_encoding(EncodingSpec(name="made", file=file))


@pytest.mark.slow
@pytest.mark.parametrize("of_ends", [False, True])
@pytest.mark.parametrize("name", OTHERS)
def test_other_formats(name: str, of_ends: bool, tmp_path: Path) -> None:
    encoding = plain(name, tmp_path)
    cuts = (ValidEnds if of_ends else ValidCuts).of(encoding, frozenset())
    if cuts is None:
        unknown = UNKNOWN | PUT_BEFORE if of_ends else UNKNOWN
        assert name in unknown or name.startswith("split ")
        return
    front = cuts.front if isinstance(cuts, ValidEnds) else None
    rng, found, known = random.Random(f"{SEED} {name}"), 0, 0
    for _ in range(60):
        few = rng.choices(PARTS + MORE, k=rng.randrange(1, 5))
        is_beyond, number = check(
            lambda text, budget: encoding.cut_counts(text, budget, front=front),
            encoding.count,
            cuts,
            few,
            rng,
        )
        found += is_beyond
        known += number
    assert found
    assert known > 10


def spelled(pipeline: Pipeline) -> list[str]:
    """The tokens that are text, and maybe not merged from their parts."""
    tokens = (token.decode(errors="ignore") for token in pipeline.model.tokens)
    return [token for token in tokens if token]


@pytest.mark.slow
@pytest.mark.parametrize("of_ends", [False, True])
@pytest.mark.parametrize("part", range(4))
def test_random_pipelines(part: int, of_ends: bool) -> None:
    rng, found, known = random.Random(f"{SEED} {part}"), 0, 0
    for _ in range(300):
        pipeline = random_pipeline(rng)
        names = [token.name for token in pipeline.added if token.special]
        allowed = frozenset(name for name in names if rng.random() < 0.3)
        cuts = (ValidEnds if of_ends else ValidCuts).of_pipeline(pipeline, allowed)
        if cuts is None:
            continue
        core = build(pipeline, 1 << 20)
        front = cuts.front if isinstance(cuts, ValidEnds) else None
        taken, none = core.special_set(allowed), core.special_set(frozenset())
        for _ in range(8):
            pool = rng.choice([LETTERS, spelled(pipeline), [*LETTERS, *NAMES], HARD_CHARACTERS])
            is_beyond, number = check(
                lambda text, budget: core.cut_counts(text, taken, budget, front),  # noqa: B023
                lambda text: core.count(text, taken, none, None),  # noqa: B023
                cuts,
                rng.choices(pool, k=rng.randrange(1, 7)),
                rng,
            )
            found += is_beyond
            known += number
    assert found
    assert known > 300


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_texts_of_random_pipelines_are_cut(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Laws T1 to T7, by the counts of starts and ends even in texts short enough to try every
    place, of which the core is given little. The reference counts whole texts: for their parts it
    would take ten times longer than all else."""
    monkeypatch.setattr(measure, "_NEAR", 0)
    monkeypatch.setattr(pipeline_search, "EXTRA_CHARACTERS", 0)
    rng, found = random.Random(f"{SEED} cut {part}"), 0
    for _ in range(100):
        pipeline = random_pipeline(rng)
        model = pipeline.model
        # As in files, these ids are those of tokens.
        of_bytes = {b"<0x%02X>" % byte: i for byte, i in model.byte_tokens.items()}
        unknown = None if model.unknown is None else 300
        model = replace(model, tokens={**model.tokens, **of_bytes}, unknown=unknown)
        pipeline = replace(pipeline, model=model)
        try:
            native, reference = (
                build_pipeline_encoding(
                    resolve(backend), pipeline, name="made", source="made", resources=Resources()
                )
                for backend in ("native", "reference")
            )
        except VocabularyError:  # such as a special token in ordinary text
            continue
        names = frozenset(name for name in native.special_tokens if rng.random() < 0.3)
        for _ in range(8):
            pool = rng.choice([LETTERS, spelled(pipeline), [*LETTERS, *NAMES], HARD_CHARACTERS])
            few = rng.choices(pool, k=rng.randrange(1, 7))
            cut = Cut(
                rng.choice([0, 1, 2, 3, 6]),
                rng.choice(KEEPS),
                rng.choice(LEVELS),
                rng.choice(["", "", "b"]),
                allowed=names,
            )
            text = "".join(rng.choices(few, k=rng.randrange(30)))
            count, expected = (
                partial(each.count, allowed_special=names, disallowed_special=())
                for each in (native, reference)
            )
            assert count(text) == expected(text)
            check_truncation(Library(native), text, cut, count)
            found += 1
    assert found


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize("name", ["llama", "gemma", "default"])
@pytest.mark.parametrize("unit", ["pneumonoultramicroscopic", "日本語の", "e\u0301", "ab ", " "])
def test_the_longest_end_is_kept_and_shared(name: str, unit: str, tmp_path: Path) -> None:
    """By the package's counts."""
    encoding, encode = other(name, tmp_path)
    text = (unit * 3000)[:3000]
    start = len(text) - len(encoding.truncate(text, 40, keep="end", level="code_point"))
    assert len(encode(text[start:])) <= 40
    assert all(len(encode(text[at:])) > 40 for at in range(max(0, start - 40), start))
    chunks = encoding.split(text, 40, overlap_tokens=20, level="code_point")
    for before, chunk in pairwise(chunks[:4]):
        assert len(encode(chunk.text)) == chunk.count <= 40
        assert len(encode(text[chunk.start : before.end])) == chunk.overlap <= 20


@pytest.mark.slow
@pytest.mark.parametrize("name", ["llama", "default", "byte level, NFC", "spaces normalised"])
@pytest.mark.parametrize("unit", ["pneumonoultramicroscopic", "日本語の", "e\u0301"])
def test_a_long_word_beside_short_ones_is_cut(name: str, unit: str, tmp_path: Path) -> None:
    """Laws T1 to T7, where counts go on from a split point."""
    encoding, encode = other(name, tmp_path)
    word, short = (unit * 200)[:200], "One two 3 four.\nFive! "
    texts: dict[Keep, str] = {"start": short + word, "end": f"{word} {short}"}
    for keep, text in texts.items():
        for more in (3, 20, 40):
            cut = Cut(len(encode(short)) + more, keep, "code_point")
            check_truncation(Library(encoding), text, cut, counts(encode, cut))
