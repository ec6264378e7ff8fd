"""GPT-2's own pair of files: `vocab.bpe` and `encoder.json`."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from bytepair_engine import EncodingSpec, VocabularyError, load_encoding
from bytepair_engine.backends.cores import BackendName, resolve
from bytepair_engine.backends.reference import merge
from bytepair_engine.pipeline.byte_alphabet import BYTE_ALPHABET
from bytepair_engine.vocabulary.builtin import builtin_table
from support.engines import Load
from support.hard_text import HARD_CHARACTERS, HARD_PIECES


@pytest.fixture(scope="module")
def gpt2_pair() -> tuple[bytes, bytes]:
    """Return vocab.bpe and encoder.json as published, made from r50k_base's table: the two halves
    of a token are its parts when only lower ranks are merged."""
    table = builtin_table(resolve("reference"), "r50k_base")
    character = {byte: c for c, byte in BYTE_ALPHABET.items()}

    def spell(token: bytes) -> str:
        return "".join(character[b] for b in token)

    pairs = (merge(token, table.ranks, until=2) for token in table.ranks if len(token) > 1)
    merges = ["#version: 0.2", *(" ".join(map(spell, pair)) for pair in pairs)]
    ids = {spell(token): rank for token, rank in table.items()} | {"<|endoftext|>": 50256}
    pair = ("\n".join(merges) + "\n").encode(), json.dumps(ids).encode()
    assert [hashlib.sha256(file).hexdigest() for file in pair] == [
        "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5",
        "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783",
    ]
    return pair


def gpt2_spec(folder: Path, merges: bytes, encoder: bytes) -> EncodingSpec:
    (folder / "vocab.bpe").write_bytes(merges)
    (folder / "encoder.json").write_bytes(encoder)
    return EncodingSpec(
        name="gpt2",
        format="gpt2",
        file=folder / "vocab.bpe",
        encoder_file=folder / "encoder.json",
        pattern="gpt2",
        special_tokens={"<|endoftext|>": 50256},
    )


@pytest.mark.slow
def test_the_gpt2_pair_is_r50k_base(
    backend: BackendName, load: Load, gpt2_pair: tuple[bytes, bytes], tmp_path: Path
) -> None:
    """Two files with the same content have one fingerprint."""
    encoding = load_encoding(gpt2_spec(tmp_path, *gpt2_pair), backend=backend)
    assert encoding.fingerprint == load("r50k_base").fingerprint


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "old", "new", "where"),
    [
        ("vocab.bpe", b"\n", b"\r\n", "vocab.bpe, line 1:"),
        ("vocab.bpe", b"#version: 0.2\n", b"", "vocab.bpe, line 1:"),
        ("vocab.bpe", b"\nh e\n", b"\nhe\n", "vocab.bpe, line 4:"),
        ("vocab.bpe", b"\nh e\n", b"\nh e x\n", "vocab.bpe, line 4:"),
        ("vocab.bpe", b"\nh e\n", "\nh \u4e2d\n".encode(), "vocab.bpe, line 4:"),
        ("vocab.bpe", b"\nh e\n", b"\nh \xff\n", "vocab.bpe, line 4:"),
        ("vocab.bpe", b"\nh e\n", b"\nhello e\n", "vocab.bpe, line 4:"),
        ("vocab.bpe", b"\nh e\n", b"\nh e\nh e\n", "vocab.bpe, line 5:"),
        ("vocab.bpe", b"\nh e\n", b"\ne h\n", "vocab.bpe, line 8:"),
        ("vocab.bpe", b"\nh e\n", b"\nh e\nx ~\n", "line 5: the merge gives 'x~', which has no id"),
        ("encoder.json", b'"he": 258', b'"he": 259', "encoder.json: 'he' and 'in' have one id"),
        (
            "encoder.json",
            b'"he": 258',
            b'"he": "x"',
            "encoder.json: the id of 'he' is not an integer",
        ),
        (
            "encoder.json",
            b'"he": 258',
            b'"he": -1',
            "encoder.json: the id of 'he' is not an integer",
        ),
        ("encoder.json", b'"he": 258', b'"he": 258, "he": 258', "has the key 'he' twice"),
        ("encoder.json", b'{"!": 0, ', b"{", "encoder.json: the byte '!' has no id"),
        ("encoder.json", b'"he": 258', b'"he": 258, "<|new|>": 60000', "token '<|new|>'"),
        ("encoder.json", b'"<|endoftext|>": 50256', b'"": 50256', "token ''"),
        ("encoder.json", b"50256}", b"50256", "encoder.json, line 1:"),
        ("encoder.json", b"50256", b"50257", "token '<|endoftext|>'"),
    ],
)
def test_a_gpt2_pair_with_a_fault(
    gpt2_pair: tuple[bytes, bytes], tmp_path: Path, file: str, old: bytes, new: bytes, where: str
) -> None:
    merges, encoder = gpt2_pair
    assert old in (merges if file == "vocab.bpe" else encoder)
    if file == "vocab.bpe":
        merges = merges.replace(old, new, -1 if new == b"\r\n" else 1)
    else:
        encoder = encoder.replace(old, new)
    with pytest.raises(VocabularyError) as caught:
        load_encoding(gpt2_spec(tmp_path, merges, encoder))
    assert where in str(caught.value)
    assert str(tmp_path) in caught.value.source


@pytest.mark.slow
def test_merges_that_are_not_in_rank_order_are_served_as_listed(
    gpt2_pair: tuple[bytes, bytes], tmp_path: Path
) -> None:
    """By rank "ing" is merged from "in g"; the list has "n g" first, and then "i ng"."""
    merges, encoder = gpt2_pair
    merges = merges.replace(b"\nn g\n", b"\n").replace(b"\nin g\n", b"\nn g\ni ng\nin g\n")
    encoding = load_encoding(gpt2_spec(tmp_path, merges, encoder))
    lines: list[Any] = [tuple(line.split(" ")) for line in merges.decode().splitlines()[1:]]
    oracle = tokenizers.Tokenizer(tokenizers.models.BPE(json.loads(encoder), lines))
    oracle.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    texts = [*HARD_CHARACTERS, *HARD_PIECES, "king singing wings", "a ninging ngng ing"]
    for text in texts:
        expected = oracle.encode(text).ids
        assert encoding.encode_ordinary(text) == expected
        assert encoding.decode(expected) == text
    assert encoding.encode("<|endoftext|>a", allowed_special="all")[0] == 50256


@pytest.mark.parametrize("name", ["", "\ud800"])
def test_a_special_token_that_no_text_spells(tmp_path: Path, name: str) -> None:
    ids = {character: byte for byte, character in enumerate(BYTE_ALPHABET)}
    spec = gpt2_spec(tmp_path, b"#version: 0.2\n", json.dumps({**ids, name: 256}).encode())
    with pytest.raises(VocabularyError, match=r"encoder\.json: special token .* is empty or holds"):
        load_encoding(replace(spec, special_tokens={name: 256}))
