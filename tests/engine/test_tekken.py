"""Mistral's Tekken files: the ids are tiktoken's for the same table, shifted."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tiktoken
from bytepair_engine import Encoding, EncodingSpec, VocabularyError, load_encoding
from bytepair_engine.backends.cores import BackendName, resolve
from bytepair_engine.formats.tekken import UNNAMED
from bytepair_engine.vocabulary.builtin import builtin_table
from bytepair_engine.vocabulary.patterns import PATTERNS
from support.hard_text import HARD_CHARACTERS, HARD_PIECES, random_texts

SPECIAL = 100
ORDINARY = 3000

#: A table of the right shape: a byte for each of the first 256 ranks, followed by merges of them.
TOKENS = [bytes([byte]) for byte in range(256)] + [
    token
    for token, _ in builtin_table(resolve("reference"), "r50k_base").items()[256 : ORDINARY + 44]
]


NAMES = [{"rank": rank, "token_str": f"[{rank}]"} for rank in range(SPECIAL + 1)]


def document() -> dict[str, Any]:
    return {
        "config": {
            "pattern": PATTERNS["tekken"],
            "num_vocab_tokens": len(TOKENS),
            "default_vocab_size": ORDINARY + SPECIAL,
            "default_num_special_tokens": SPECIAL,
            "version": "v3",
        },
        "vocab": [
            {"rank": rank, "token_bytes": base64.b64encode(token).decode(), "token_str": None}
            for rank, token in enumerate(TOKENS)
        ],
    }


def load(path: Path, content: dict[str, Any] | bytes, backend: BackendName = "native") -> Encoding:
    file = path / "tekken.txt"  # the name does not decide the format
    file.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return load_encoding(EncodingSpec(name="t", file=file), backend=backend)


def test_ids_are_tiktoken_s_plus_the_shift(backend: BackendName, tmp_path: Path) -> None:
    encoding = load(tmp_path, document(), backend)
    ranks = {token: rank for rank, token in enumerate(TOKENS[:ORDINARY])}
    oracle = tiktoken.Encoding(
        "t", pat_str=PATTERNS["tekken"], mergeable_ranks=ranks, special_tokens={}
    )
    texts = [*HARD_CHARACTERS, *HARD_PIECES, *random_texts(random.Random(1), TOKENS, 200)]
    for text in texts:
        expected = [rank + SPECIAL for rank in oracle.encode(text)]
        assert encoding.encode_ordinary(text) == expected
        assert encoding.decode(expected) == text
    assert encoding.splitter == ("tekken" if backend == "native" else "regex")
    assert (encoding.n_vocab, encoding.max_token_id) == (ORDINARY + SPECIAL, ORDINARY + SPECIAL - 1)


def test_special_tokens_without_names(tmp_path: Path) -> None:
    special = load(tmp_path, document()).special_tokens
    assert list(special)[:20] == list(UNNAMED)
    assert list(special.values()) == list(range(SPECIAL))
    assert special["<SPECIAL_20>"] == 20


def test_special_tokens_of_the_file(tmp_path: Path) -> None:
    content = document()
    content["config"]["version"] = "v13"
    content["special_tokens"] = [
        {"rank": rank, "token_str": name, "is_control": True}
        for rank, name in enumerate(["<unk>", "<s>", "</s>", "[THINK]"])
    ]
    encoding = load(tmp_path, content)
    assert encoding.special_tokens["[THINK]"] == 3
    assert encoding.special_tokens["<SPECIAL_4>"] == 4
    assert encoding.encode("[THINK]a", allowed_special="all")[0] == 3
    assert encoding.fingerprint != load(tmp_path, document()).fingerprint


def edit(*path: Any, value: Any = None) -> Callable[[dict[str, Any]], None]:
    """Set the value at the path, or remove it."""

    def change(content: dict[str, Any]) -> None:
        at: Any = content
        for key in path[:-1]:
            at = at[key]
        if value is None:
            del at[path[-1]]
        else:
            at[path[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (edit("config", "version"), "config: it has no 'version'"),
        (edit("config", "pattern"), "config: it has no 'pattern'"),
        (edit("config", "pattern", value=5), "config.pattern: it must be a string"),
        (edit("config", "pattern", value="("), "does not compile"),
        (edit("config", "default_vocab_size", value=True), "it must be an integer"),
        (edit("config", "default_vocab_size", value=-1), "must be from 0"),
        (edit("config", "default_vocab_size", value=300), "leave 200 ordinary tokens"),
        (edit("config", "default_vocab_size", value=9999), "at most the"),
        (edit("config", "default_num_special_tokens", value=2**24), "must be from 0 to 65536"),
        (edit("special_tokens", value=NAMES), "it is 100, and 101 special tokens have a name"),
        (edit("config", "version", value="v11"), "it has no 'special_tokens', which files of"),
        (edit("vocab", 7, "rank", value=8), r"vocab\[7\].rank: it must be 7"),
        (edit("vocab", 1, "rank", value=True), r"vocab\[1\].rank: it must be an integer"),
        (edit("vocab", 7, "token_bytes", value=5), r"\[7\].token_bytes: it must be a string"),
        (edit("vocab", 7, "rank"), r"vocab\[7\]: it has no 'rank'"),
        (edit("vocab", 7, "token_bytes", value="eA=="), r"vocab\[7\]: the token of rank 7 must be"),
        (edit("vocab", 700, "token_bytes", value="e*=="), r"vocab\[700\].token_bytes: it is not"),
        (edit("vocab", 700, "token_bytes", value=""), r"vocab\[700\].token_bytes: it is empty"),
        (edit("vocab", 700, "token_bytes", value="AA=="), r"\[700\].token_bytes: .* earlier token"),
        (edit("vocab", 700, value=[]), r"vocab\[700\]: it must be an object"),
        (
            edit("special_tokens", value=[{"rank": 1, "token_str": "a"}]),
            r"\[0\].rank: it must be 0",
        ),
        (edit("special_tokens", value=[{"rank": 0, "token_str": ""}]), "is empty, or two have"),
        (
            edit("special_tokens", value=[{"rank": 0, "token_str": "\ud800"}]),
            r"special_tokens\[0\].token_str: it holds a lone surrogate",
        ),
        (edit("special_tokens", value={}), "special_tokens: it must be a list"),
    ],
)
def test_each_fault_is_reported_with_its_path(
    tmp_path: Path, change: Callable[[dict[str, Any]], None], problem: str
) -> None:
    content = document()
    change(content)
    with pytest.raises(VocabularyError, match=problem) as caught:
        load(tmp_path, content)
    assert caught.value.remedy


@pytest.mark.parametrize("keys", [{"pattern": "tekken"}, {"special_tokens": {"<a>": 1}}])
def test_keys_that_a_tekken_file_carries_cannot_be_declared(
    tmp_path: Path, keys: dict[str, Any]
) -> None:
    (tmp_path / "t").write_text(json.dumps(document()))
    spec = EncodingSpec(name="t", file=tmp_path / "t", **keys)
    with pytest.raises(VocabularyError, match=f"{next(iter(keys))} is given, and a Tekken file"):
        load_encoding(spec)


def test_also_special_names_special_tokens_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "t").write_text(json.dumps(document()))
    spec = EncodingSpec(name="t", file=tmp_path / "t", also_special=("[INST]",))
    assert load_encoding(spec).special_tokens["[INST]"] == 3
    with pytest.raises(VocabularyError, match=r"t: it has no special token '<a>'"):
        load_encoding(replace(spec, also_special=("[INST]", "<a>")))
