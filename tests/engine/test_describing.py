"""Descriptions of a token are the same for a vocabulary and for a copy of it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from bytepair_engine import EncodingSpec, UnknownTokenId, get_encoding, load_encoding
from bytepair_engine.pipeline.derivation import Derivations, Part, flat, model_of
from bytepair_engine.pipeline.describing import Describer
from support.sentencepiece_models import trained
from support.tokenizer_json import made


@pytest.mark.slow
@pytest.mark.parametrize("name", ["r50k_base", "o200k_base"])
def test_a_rank_table_is_not_copied(name: str) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    encoding = get_encoding(name)
    describer, derivations = Describer(encoding), Derivations(model_of(encoding))
    assert describer.order_name == "rank"
    for token_id in random.Random(seed).sample(range(256, encoding.n_vocab - 30), 500):
        described = describer.describe(token_id)
        assert described.kind == "token"
        assert described.data == encoding.decode_single_token_bytes(token_id)
        assert described.parts == derivations.of(described.data)
    special = encoding.special_tokens["<|endoftext|>"]
    assert (describer.kind(special), describer.describe(special).parts) == ("special", [])
    assert describer.kind(encoding.encode_single_token(b"\xff")) == "byte"
    with pytest.raises(UnknownTokenId):
        describer.describe(encoding.n_vocab + 1)


def test_a_long_token_is_described_without_its_merges() -> None:
    encoding = get_encoding("r50k_base")
    describer, token_id = Describer(encoding), encoding.encode_single_token(" understanding")
    assert describer.describe(token_id, max_bytes=13).parts == []
    assert len(describer.describe(token_id, max_bytes=14).parts) == 1


@pytest.mark.parametrize(("file", "order"), [("a.json", "priority"), ("a.model", "score")])
def test_other_formats_have_kinds_and_orders(tmp_path: Path, file: str, order: str) -> None:
    is_json = file == "a.json"
    (tmp_path / file).write_bytes(made("an end of word") if is_json else trained("llama"))
    encoding = load_encoding(EncodingSpec(name="a", file=tmp_path / file))
    describer = Describer(encoding)
    assert describer.order_name == order
    derivations = Derivations(model_of(encoding))
    spelled = {token_id: token for token, token_id in describer.model.tokens.items()}
    kinds = set()
    for token_id in range(encoding.n_vocab):
        described = describer.describe(token_id)
        kinds.add(described.kind)
        if described.kind == "token":
            assert described.parts == (
                derivations.of(spelled[token_id]) if token_id in spelled else []
            )
    assert kinds >= {"token"} | (set() if is_json else {"byte"})


def test_parts_are_listed_in_the_order_of_merging() -> None:
    encoding = get_encoding("r50k_base")
    parts = Describer(encoding).describe(encoding.encode_single_token(" hello")).parts
    states = [part.spelling for part, left, _ in flat(parts) if left is None]
    assert b"".join(states) == b" hello"
    merged: list[tuple[Part, int, int]] = [
        (part, left, right)
        for part, left, right in flat(parts)
        if left is not None and right is not None
    ]
    every = [part for part, _, _ in flat(parts)]
    assert [part.step for part, _, _ in merged] == [*range(len(merged))]
    for part, left, right in merged:
        assert part.spelling == every[left].spelling + every[right].spelling
    assert merged[-1][0].spelling == b" hello"
    assert flat([]) == []
