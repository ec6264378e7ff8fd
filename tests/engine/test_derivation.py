"""Merge trees: they spell their token, by the merges of the vocabulary."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from bytepair_engine import EncodingSpec, get_encoding, load_encoding
from bytepair_engine.backends.reference import merge
from bytepair_engine.pipeline.definition import Merges, Model, Ranks
from bytepair_engine.pipeline.derivation import Derivations, Part, model_of
from bytepair_engine.toy import toy
from support.sentencepiece_models import trained
from support.tokenizer_json import KINDS, made


def leaves(part: Part) -> list[bytes]:
    if part.left is None or part.right is None:
        return [part.spelling]
    return leaves(part.left) + leaves(part.right)


def test_the_tree_of_the_toy_encoding() -> None:
    derivations = Derivations(model_of(toy()))
    [tree] = derivations.of(b"aab")
    assert (tree.spelling, tree.id, tree.order) == (b"aab", 258, 258)
    assert tree.left is not None
    assert tree.right is not None
    assert (tree.left.id, tree.left.order, tree.right) == (256, 256, Part(b"b", 98))
    assert derivations.of(b"") == []


def test_a_token_that_merging_does_not_produce() -> None:
    """The example of `reference`: a b c d becomes a bc d, and stops."""
    tokens = {bytes([byte]): byte for byte in range(256)} | {b"bc": 256, b"abcd": 257}
    derivations = Derivations(Model(tokens=tokens, rule=Ranks(), units="bytes"))
    assert [part.spelling for part in derivations.of(b"abcd")] == [b"a", b"bc", b"d"]
    assert derivations.makes(b"bc")
    assert not derivations.makes(b"abcd")
    long = b"abcd" * 10
    tokens[long] = 258
    assert not Derivations(Model(tokens=tokens, rule=Ranks(), units="bytes")).makes(long)


def test_trees_follow_the_definition() -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    encoding = get_encoding("cl100k_base")
    model = model_of(encoding)
    derivations = Derivations(model)
    for token in random.Random(seed).sample(encoding.token_byte_values(), 1500):
        assert derivations.makes(token)
        [tree] = derivations.of(token)
        assert tree.id == model.tokens[token]
        assert b"".join(leaves(tree)) == token
        if tree.left is not None and tree.right is not None:
            assert [tree.left.spelling, tree.right.spelling] == merge(token, model.tokens, until=2)
            assert (tree.left.order or -1) < token_order(tree) > (tree.right.order or -1)


def token_order(part: Part) -> float:
    assert part.order is not None
    return part.order


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_trained_token_is_reachable(kind: str, tmp_path: Path) -> None:
    """Also if units have a prefix or a suffix: no two pairs of a training give the same token."""
    file = tmp_path / "made.json"
    file.write_bytes(made(kind))
    model = model_of(load_encoding(EncodingSpec(name="made", file=file)))
    derivations = Derivations(model)
    results = {token_id: token for token, token_id in model.tokens.items()}
    if isinstance(model.rule, Merges):
        results = {i: results[i] for i in model.rule.results}
    assert len(results) > 4
    unmade = [token for token in results.values() if not derivations.makes(token)]
    assert unmade == []


def test_pieces_of_sentencepiece_are_merged_by_score(tmp_path: Path) -> None:
    file = tmp_path / "a.model"
    file.write_bytes(trained("llama"))
    model = model_of(load_encoding(EncodingSpec(name="a", file=file)))
    derivations = Derivations(model)
    hello = next(token for token in model.tokens if token == "▁hello".encode())
    [tree] = derivations.of(hello)
    assert "".join(leaf.decode() for leaf in leaves(tree)) == "▁hello"
    assert tree.left is not None
    assert tree.order is not None
    assert all(map(derivations.makes, model.tokens))
