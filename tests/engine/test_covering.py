"""The fewest tokens that a part of a text can have: no part that is said to have more has fewer."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from bytepair_engine import Encoding, EncodingSpec, load_encoding
from bytepair_engine.context.covering import cover
from bytepair_engine.toy import toy
from support.context_laws import PARTS
from support.sentencepiece_models import MODELS
from support.sentencepiece_models import trained as model
from support.tokenizer_json import KINDS, made

SEED = 20261124
#: What steps of pipelines drop, compose, order, map, fuse or take white space to.
MORE = ["lft", "rgt", "Wörd", "<tool>", "<s>", "aa", "ab ab", "tokenizer", " test", "한국어", "ﬁ"]
MORE += [
    "½",
    "\x07",
    "İ",
    "ǆ",
    "▁",
    "</w>",
    "##",
    "[U]",
    "<0x41>",
    "a\u0323\u0301",
    "ᄀ",
    "ᅡ",
    "\u3000",
]


def check(encoding: Encoding, seed: str, examples: int) -> None:
    known = cover(encoding)
    assert known is not None
    rng = random.Random(f"{SEED} {seed}")
    found = 0
    for _ in range(examples):
        few = rng.choices(PARTS + MORE, k=rng.randrange(1, 5))
        text = "".join(rng.choices(few, k=rng.randrange(1, 25)))
        most = rng.choice([0, 1, 2, 3, 6, 12])
        allowed = rng.choice([frozenset(), frozenset(encoding.special_tokens)])

        def count(part: str, allowed: frozenset[str] = allowed) -> int:
            return encoding.count(part, allowed_special=allowed, disallowed_special=())

        end = known.end(text, 0, most)
        start = known.start(text, 0, len(text), most)
        if end is not None:
            places = range(end, len(text) + 1)
            assert all(count(text[:place]) > most for place in places), (text, most)
        if start is not None:
            assert all(count(text[place:]) > most for place in range(start + 1)), (text, most)
        found += end is not None
    assert found


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "split removed"])
def test_vocabularies_of_tokenizer_json(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "tokenizer.json"
    file.write_bytes(made(kind))
    check(load_encoding(EncodingSpec(name="made", file=file)), kind, 12)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_models_of_sentencepiece(name: str, tmp_path: Path) -> None:
    file = tmp_path / "model.model"
    file.write_bytes(model(name))
    check(load_encoding(EncodingSpec(name="made", file=file)), name, 12)


@pytest.mark.slow
def test_a_rank_table_with_another_pattern() -> None:
    check(toy(), "toy", 50)


def test_where_anything_may_be_removed_nothing_is_known(tmp_path: Path) -> None:
    file = tmp_path / "tokenizer.json"
    file.write_bytes(made("split removed"))
    assert cover(load_encoding(EncodingSpec(name="made", file=file))) is None


@pytest.mark.parametrize("pattern", ["[ab]", r"\s+", "ab"])
def test_what_replaces_single_characters_and_others(pattern: str, tmp_path: Path) -> None:
    content = json.loads(made("words, unknown"))
    content["normalizer"] = {"type": "Replace", "pattern": {"Regex": pattern}, "content": "aa"}
    file = tmp_path / "tokenizer.json"
    file.write_text(json.dumps(content), encoding="utf-8")
    encoding = load_encoding(EncodingSpec(name="made", file=file))
    known = cover(encoding)
    for text in ("aaaa", "a b a", "ab ab\n", "hello   world"):
        for most in range(4):
            end = None if known is None else known.end(text, 0, most)
            for place in range(end if end is not None else len(text) + 1, len(text) + 1):
                assert encoding.count(text[:place], disallowed_special=()) > most


@pytest.mark.parametrize("kind", ["byte level", "normalised, NFC", "a prefix", "split isolated"])
def test_a_word_without_end_is_split_where_few_tokens_may_be(kind: str, tmp_path: Path) -> None:
    """Of 3,000 characters no two are a split point; so far no chunk can reach."""
    file = tmp_path / "tokenizer.json"
    file.write_bytes(made(kind))
    encoding = load_encoding(EncodingSpec(name="made", file=file))
    text = "abab" * 750
    chunks = encoding.split(text, 50)
    assert "".join(chunk.text for chunk in chunks) == text
    assert all(encoding.count(chunk.text) == chunk.count <= 50 for chunk in chunks)
