"""Split patterns of other publishers split as tiktoken does with the published pattern."""

from __future__ import annotations

import base64
import random
from pathlib import Path

import pytest
import regex
import tiktoken
from bytepair_engine import EncodingSpec, can_stream, load_encoding
from bytepair_engine.backends.cores import BackendName, resolve
from bytepair_engine.resources import Resources
from bytepair_engine.vocabulary.builtin import builtin_table
from bytepair_engine.vocabulary.patterns import PATTERNS, resolve_pattern
from support.hard_text import HARD_CHARACTERS, HARD_PIECES, random_texts

#: As in tokenization_kimi.py of Kimi K2.
KIMI = "|".join(
    [
        r"""[\p{Han}]+""",
        r"""[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*"""
        r"""[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?""",
        r"""[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+"""
        r"""[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?""",
        r"""\p{N}{1,3}""",
        r""" ?[^\s\p{L}\p{N}]+[\r\n]*""",
        r"""\s*[\r\n]+""",
        r"""\s+(?!\S)""",
        r"""\s+""",
    ]
)

HAN = [
    "中文English混合",
    "汉字abc",
    "北京市 Pascal",
    "〇々〆",
    "𠀀a𠀀",
    "⺀a",
    "日本語'sABC",
    "の中ア한",
    "中\u0301",
]


@pytest.fixture(scope="module")
def table() -> dict[bytes, int]:
    return dict(builtin_table(resolve("reference"), "o200k_base").items())


@pytest.mark.slow
def test_kimi(backend: BackendName, tmp_path: Path, table: dict[bytes, int]) -> None:
    file = tmp_path / "tiktoken.model"
    file.write_bytes(b"".join(base64.b64encode(t) + b" %d\n" % i for t, i in table.items()))
    spec = EncodingSpec(name="kimi", file=file, pattern="kimi_k2")
    encoding = load_encoding(spec, backend=backend)
    oracle = tiktoken.Encoding("k", pat_str=KIMI, mergeable_ranks=table, special_tokens={})
    rng = random.Random(5)
    texts = [*HAN, *HARD_CHARACTERS, *HARD_PIECES, *random_texts(rng, [*table], 200)]
    mixed = ["".join(rng.choices([*HAN, *HARD_PIECES, *HARD_CHARACTERS], k=6)) for _ in range(200)]
    for text in texts + mixed:
        assert encoding.encode_ordinary(text) == oracle.encode_ordinary(text), repr(text)
    assert not can_stream(encoding)


@pytest.mark.slow
def test_characters_that_kimi_distinguishes(table: dict[bytes, int]) -> None:
    """Characters between letters of other scripts, where the sets of the pattern decide: both sides
    of every boundary of Han, and a sample of all others."""
    is_han = regex.compile(r"\p{Han}").match
    edges = [c for c in range(1, 0x110000) if bool(is_han(chr(c))) != bool(is_han(chr(c - 1)))]
    codes = {*edges, *(code - 1 for code in edges), *range(0, 0x110000, 61)}
    core = resolve("native")
    kimi = resolve_pattern("kimi_k2", "test")
    encoding = core.build(core.from_items(table.items()), kimi, {}, Resources())
    oracle = tiktoken.Encoding("k", pat_str=KIMI, mergeable_ranks=table, special_tokens={})
    none = encoding.special_set(frozenset())
    for code in codes - {*range(0xD800, 0xE000)}:
        text = f"a{chr(code)}Б中{chr(code)}Ab"
        assert encoding.encode(text, none, none) == oracle.encode_ordinary(text), hex(code)


def test_llama4_is_o200k() -> None:
    assert resolve_pattern("llama4", "test") == PATTERNS["o200k_base"]
