"""A pipeline becomes a rank table only if no id changes: small vocabularies of every shape, with
every short text."""

from __future__ import annotations

import itertools
import json
import random
from base64 import b64encode
from pathlib import Path

import pytest
from bytepair_engine import EncodingSpec, get_encoding, load_encoding
from bytepair_engine.backends.cores import BackendName, resolve
from bytepair_engine.backends.reference import merge, split
from bytepair_engine.formats.as_ranks import rank_parts
from bytepair_engine.pipeline.backend import PipelineBackend
from bytepair_engine.pipeline.byte_alphabet import write_bytes
from bytepair_engine.pipeline.definition import Merges
from support.random_pipelines import random_merge_list
from support.tokenizer_json import made

BACKENDS: tuple[BackendName, ...] = ("native", "reference")
SEED = 20261121
TEXTS = [
    "".join(characters)
    for length in range(1, 8)
    for characters in itertools.product("abc", repeat=length)
]


def by_rank(text: str, ranks: dict[bytes, int], pattern: str) -> list[int]:
    """Step 3 of `reference`, literally."""
    ids = []
    for piece in split(text, pattern):
        data = piece.encode()
        ids += [ranks[t] for t in ([data] if data in ranks else merge(data, ranks))]
    return ids


@pytest.mark.slow
def test_a_rank_table_gives_the_ids_of_the_merges() -> None:
    rng = random.Random(SEED)
    taken = rejected = 0
    for _ in range(150):
        pipeline = random_merge_list(rng, r"[a-z]+")
        backend = PipelineBackend(pipeline)
        none = backend.special_set(frozenset())
        parts = rank_parts(pipeline)
        assert (rank_parts(pipeline, resolve("native").by_rank) is None) == (parts is None)
        if parts is None:
            rejected += 1
            continue
        taken += 1
        ranks = dict(parts.items)
        for text in rng.sample(TEXTS, 250):
            expected = backend.encode(text, none, none)
            assert by_rank(text, ranks, parts.pattern) == expected, (SEED, pipeline.model, text)
    assert taken > 20
    assert rejected > 20


def test_gpt2_s_own_file_equals_the_built_in_encoding(backend: BackendName, tmp_path: Path) -> None:
    """A tokenizer.json with a part of the vocabulary, to keep the test short."""
    builtin = get_encoding("gpt2")
    size = 1500
    tokens = [builtin.decode_single_token_bytes(i) for i in range(size)]
    ranks = {token: i for i, token in enumerate(tokens)}
    pairs = [merge(token, ranks, until=2) for token in tokens if len(token) > 1]
    root = json.loads(made("byte level"))
    root["added_tokens"] = [
        {**root["added_tokens"][0], "id": size, "content": "<|endoftext|>", "special": True}
    ]
    root["model"]["vocab"] = {write_bytes(token): i for token, i in ranks.items()}
    root["model"]["merges"] = [" ".join(map(write_bytes, pair)) for pair in pairs]
    file, rank_file = tmp_path / "tokenizer.json", tmp_path / "gpt2.tiktoken"
    file.write_text(json.dumps(root))
    write_ranks(rank_file, ranks)
    made_of_json = load_encoding(EncodingSpec(name="json", file=file), backend=backend)
    made_of_ranks = load_encoding(
        EncodingSpec(
            name="ranks", file=rank_file, pattern="gpt2", special_tokens={"<|endoftext|>": size}
        ),
        backend=backend,
    )
    assert made_of_json.fingerprint == made_of_ranks.fingerprint
    assert made_of_json.backend == backend
    assert made_of_json.encode("hello world<|endoftext|>", allowed_special="all")[-1] == size


def write_ranks(file: Path, ranks: dict[bytes, int]) -> None:
    file.write_bytes(b"".join(b64encode(t) + f" {i}\n".encode() for t, i in ranks.items()))


@pytest.mark.parametrize(
    "kind", ["byte level, prefix and NFC", "byte level without all bytes", "words, unknown"]
)
def test_a_vocabulary_that_ranks_cannot_express_stays_a_pipeline(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "tokenizer.json"
    file.write_bytes(made(kind))
    assert load_encoding(EncodingSpec(name="made", file=file)).pipeline is not None


@pytest.mark.parametrize(("length", "expected"), [(256, True), (257, False)])
def test_both_backends_convert_tokens_of_the_same_length(length: int, expected: bool) -> None:
    ranks = {bytes([byte]): byte for byte in range(256)}
    ranks |= {b"a" * size: 254 + size for size in range(2, length + 1)}
    pairs = [merge(token, ranks, until=2) for token in ranks if len(token) > 1]
    lefts, rights = zip(*((ranks[left], ranks[right]) for left, right in pairs), strict=True)
    rule = Merges.listed(lefts, rights, range(256, len(ranks)))
    for backend in BACKENDS:
        assert resolve(backend).by_rank(ranks, rule, True) is expected
