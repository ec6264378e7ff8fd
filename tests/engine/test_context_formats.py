"""Truncating and splitting keep their laws for vocabularies of other formats, which may normalise:
texts are cut and counted again, never decoded. The reference backend cuts where the core does."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from bytepair_engine import Encoding, EncodingSpec, get_encoding, load_encoding
from bytepair_engine.backends.cores import BackendName
from bytepair_engine.context.boundaries import LEVELS
from bytepair_engine.context.inspecting import inspect
from bytepair_engine.context.splitting import SplitOptions, split
from bytepair_engine.context.truncating import truncated
from bytepair_engine.errors import BudgetTooSmall
from support.context_laws import PARTS, check_chunks, longest
from support.sentencepiece_models import MODELS, trained
from support.tokenizer_json import KINDS, made

SEED = 20261123


def texts(rng: random.Random, count: int) -> list[str]:
    return ["".join(rng.choices(PARTS, k=rng.randrange(25))) for _ in range(count)]


def check(encoding: Encoding, text: str, rng: random.Random) -> None:
    most, level = rng.choice([0, 1, 2, 3, 8]), rng.choice(LEVELS)

    def count(part: str) -> int:
        return encoding.count(part)

    start = truncated(encoding, text, most, level=level)
    end = truncated(encoding, text, most, level=level, keep="end")
    assert start.count == count(start.text) <= most
    assert end.count == count(end.text) <= most
    if count(text) <= most:
        assert start.text == end.text == text
    else:
        place = longest(text, level, lambda p: count(text[:p]) <= most, set(), last=True)
        assert start.text == text[: place or 0]
        place = longest(text, level, lambda p: count(text[p:]) <= most, set(), last=False)
        assert end.text == ("" if place is None else text[place:])
    found = inspect(encoding, text)
    assert found.count == count(text)
    more = "".join(rng.choices(PARTS, k=3))
    ids = encoding.encode(text + more, disallowed_special=())
    assert ids[: found.stable_tokens] == encoding.encode(
        text[: found.stable_end], disallowed_special=()
    )
    options = SplitOptions(most + 1, (most + 1) // 2 * rng.randrange(2), level)
    try:
        chunks = list(split(encoding, text, options))
    except BudgetTooSmall as error:
        needed = error.needed
    else:
        check_chunks(text, chunks, options, count, [])
        return
    assert needed > options.max_tokens


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_vocabularies_of_tokenizer_json(backend: BackendName, kind: str, tmp_path: Path) -> None:
    file = tmp_path / "tokenizer.json"
    file.write_bytes(made(kind))
    encoding = load_encoding(EncodingSpec(name="made", file=file), backend=backend)
    rng = random.Random(f"{SEED} {kind}")
    for text in texts(rng, 12):
        check(encoding, text, rng)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_models_of_sentencepiece(name: str, tmp_path: Path) -> None:
    file = tmp_path / "model.model"
    file.write_bytes(trained(name))
    encoding = load_encoding(EncodingSpec(name="made", file=file))
    rng = random.Random(f"{SEED} {name}")
    for text in texts(rng, 12):
        check(encoding, text, rng)


@pytest.mark.slow
def test_the_reference_cuts_where_the_core_does() -> None:
    native, reference = (
        get_encoding("cl100k_base", backend=backend) for backend in ("native", "reference")
    )
    rng = random.Random(SEED)
    for text in texts(rng, 20):
        most = rng.choice([1, 2, 5])
        for keep in ("start", "end"):
            assert native.truncate(text, most, keep=keep) == reference.truncate(
                text, most, keep=keep
            )
        assert native.split(text, most + 3) == reference.split(text, most + 3)


PROSE = (
    "It rained. “Why?” she asked, 12.5 km on! Dr. Ąčę said: no…\r\n",
    "日本語の文章です。次の文。カタカナ\n\n",
    "def a(b):\n    return naïve_🧠_value, 👨\u200d👩\u200d👧  # 🇩🇪🇫🇷\n \t\n",
    "One line without an end; and more of it, and more. ",
    "\u2028camelCaseWord\x85functio ",
)


@pytest.mark.slow
def test_the_core_finds_the_chunks_that_the_definition_finds() -> None:
    """On prose, of which the core finds nearly all chunks by itself, with every option."""
    native, reference = (
        get_encoding("o200k_base", backend=backend) for backend in ("native", "reference")
    )
    rng = random.Random(SEED)
    for level in LEVELS:
        for overlap in (0, 25, 50):
            text = "".join(rng.choices(PROSE, k=30))
            most = rng.choice([4, 20, 60])
            fill = rng.choice([0, 50, 100])
            options = SplitOptions(most, most * overlap // 100, level, fill)
            assert list(split(native, text, options)) == list(split(reference, text, options))
