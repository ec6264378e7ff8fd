"""Normalisers against those of `tokenizers`: every code point, and combining sequences."""

from __future__ import annotations

import random
import unicodedata

import pytest
from bytepair_engine.pipeline.definition import Lowercase, Normaliser, Strip, UnicodeForm
from bytepair_engine.pipeline.normalising import normalise_text, unicode_form
from support.hard_text import every_character
from tokenizers import normalizers

SEED = 20261121
STEPS: dict[str, tuple[Normaliser, normalizers.Normalizer]] = {
    "NFC": (UnicodeForm("NFC"), normalizers.NFC()),
    "NFD": (UnicodeForm("NFD"), normalizers.NFD()),
    "NFKC": (UnicodeForm("NFKC"), normalizers.NFKC()),
    "NFKD": (UnicodeForm("NFKD"), normalizers.NFKD()),
    "Lowercase": (Lowercase(), normalizers.Lowercase()),
    "Strip": (Strip(left=True, right=True), normalizers.Strip()),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", STEPS)
def test_every_code_point(name: str) -> None:
    ours, theirs = STEPS[name]

    def normal(text: str) -> str:
        if isinstance(ours, UnicodeForm):
            return unicode_form(text, ours.form)  # without the origins, which are slow
        return normalise_text(text, [ours])

    characters = every_character()
    for i in range(0, len(characters), 4096):
        block = characters[i : i + 4096]
        if normal("x".join(block)) != theirs.normalize_str("x".join(block)):
            assert [c for c in block if normal(c) != theirs.normalize_str(c)] == [], name


@pytest.mark.slow
@pytest.mark.parametrize("name", ["NFC", "NFD", "NFKC", "NFKD"])
def test_characters_that_combine(name: str) -> None:
    """In any order: marks, decomposable characters, the parts of Hangul, and half-width marks."""
    ours, theirs = STEPS[name]
    rng = random.Random(SEED)
    combining = [
        c
        for c in every_character()
        if unicodedata.combining(c) or unicodedata.decomposition(c) or "\u1100" <= c < "\u1200"
    ]
    combining += [*"aeiouAEIOUかカ가"] * 200 + ["\uff9e", "\u0345", "\u0307"] * 200
    for _ in range(2500):
        text = "".join(rng.choices(combining, k=rng.randrange(1, 6)))
        assert normalise_text(text, [ours]) == theirs.normalize_str(text), (SEED, text)
