"""Text never becomes a special token that the model itself can produce, by merging or as a whole
piece. All other ids are the publisher's."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bytepair_engine import Encoding, EncodingSpec, VocabularyError, load_encoding
from bytepair_engine.backends.cores import BackendName, resolve
from bytepair_engine.backends.reference import ReferenceBackend
from bytepair_engine.formats.as_ranks import rank_parts
from bytepair_engine.pipeline.backend import PipelineBackend
from bytepair_engine.pipeline.byte_alphabet import BYTE_ALPHABET
from bytepair_engine.pipeline.definition import AddedToken, Pipeline
from bytepair_engine.pipeline.native import build
from support.random_pipelines import LETTERS, random_merge_list, random_pipeline
from support.sentencepiece_models import MODELS, edited, oracle, trained
from support.tokenizer_json import oracle_of
from tokenizers import Tokenizer

SEED = 20261122
NOBODY: frozenset[str] = frozenset()


def with_special(rng: random.Random, pipeline: Pipeline, *, most: int = 2) -> Pipeline:
    """Make some of the model's own tokens special, most of them long."""
    tokens = [t for t in pipeline.model.tokens if t.decode(errors="replace").encode() == t]
    tokens = [t for t in tokens if len(t.decode()) > 1 or rng.random() < 0.02]
    chosen = rng.sample(tokens, min(len(tokens), rng.randint(1, most)))
    added = tuple(
        AddedToken(
            content=token.decode(),
            id=pipeline.model.tokens[token],
            special=True,
            name=token.decode(),
            single_word=rng.random() < 0.2,
            normalised=rng.random() < 0.3,
        )
        for token in chosen
    )
    return replace(pipeline, added=added)


def fault(pipeline: Pipeline) -> str | None:
    try:
        PipelineBackend(pipeline)
    except VocabularyError as error:
        return str(error)
    return None


@pytest.mark.slow
def test_random_pipelines_with_special_tokens_among_the_model_s() -> None:
    """Both backends agree. The only special ids are those for unknown text; and the ids equal the
    model's if it gives no special one."""
    rng = random.Random(SEED)
    rejected = changed = 0
    for _ in range(400):
        pipeline = with_special(rng, random_pipeline(rng))
        problem = fault(pipeline)
        if problem is not None:
            with pytest.raises(VocabularyError) as caught:
                build(pipeline, 1 << 20)
            assert str(caught.value) == problem
            rejected += 1
            continue
        reference = PipelineBackend(pipeline)
        core, publisher = build(pipeline, 1 << 20), PipelineBackend(replace(pipeline, added=()))
        special = {token.id for token in pipeline.added}
        special -= {pipeline.model.unknown, *pipeline.model.byte_tokens.values()}
        names = [token.name for token in pipeline.added]
        for _ in range(8):
            pool = rng.choice([LETTERS, [*names, *names, *names, *LETTERS]])
            text = "".join(rng.choices(pool, k=rng.randrange(12)))
            empty, none = reference.special_set(NOBODY), core.special_set(NOBODY)
            ids = reference.encode(text, empty, empty)
            assert core.encode(text, none, none) == ids, (SEED, text, pipeline)
            assert special.isdisjoint(ids), (SEED, text, pipeline)
            theirs = publisher.encode(text, empty, empty)
            assert ids == theirs or not special.isdisjoint(theirs), (SEED, text, pipeline)
            changed += ids != theirs
    assert rejected > 20
    assert changed > 20


@pytest.mark.slow
def test_all_byte_vocabularies_round_trip_as_pipelines_and_as_ranks() -> None:
    """Vocabularies of all bytes are lossless: as a pipeline, and as ranks if they can be
    converted."""
    rng = random.Random(SEED)
    as_ranks = as_pipelines = changed = 0
    for _ in range(400):
        pipeline = with_special(rng, random_merge_list(rng, r"[a-z]+| "), most=3)
        parts = rank_parts(pipeline)
        assert (rank_parts(pipeline, resolve("native").by_rank) is None) == (parts is None)
        if fault(pipeline) is not None:
            assert parts is None
            continue
        backend = PipelineBackend(pipeline)
        special = {token.id for token in pipeline.added}
        ranks = None
        if parts is not None:
            table = resolve("reference").from_items(parts.items)
            ranks = ReferenceBackend(table, parts.pattern, parts.special_tokens)
        as_ranks, as_pipelines = as_ranks + (parts is not None), as_pipelines + (parts is None)
        publisher = PipelineBackend(replace(pipeline, added=()))
        for _ in range(12):
            text = "".join(rng.choices("aabbc ", k=rng.randrange(14)))
            empty = backend.special_set(NOBODY)
            ids = backend.encode(text, empty, empty)
            assert special.isdisjoint(ids), (SEED, text, pipeline)
            assert backend.decode_bytes(ids) == text.encode(), (SEED, text, pipeline)
            if ranks is not None:
                none = ranks.special_set(NOBODY)
                assert ranks.encode(text, none, none) == ids, (SEED, text, pipeline)
            changed += ids != publisher.encode(text, empty, empty)
    assert min(as_ranks, as_pipelines, changed) > 20, (as_ranks, as_pipelines, changed)


# Files.

BYTES = {character: i for i, character in enumerate(sorted(BYTE_ALPHABET))}


def file_of(
    special: str, merges: list[str], *, more: tuple[str, ...] = (), **members: Any
) -> dict[str, Any]:
    """Write a byte-level tokenizer.json with these merges and a special token that they may
    produce."""
    vocabulary = dict(BYTES)
    for token in (*(merge.replace(" ", "") for merge in merges), *more, special):
        vocabulary.setdefault(token, len(vocabulary))
    model = {"ignore_merges": False, **members.pop("model", {})}
    return {
        "version": "1.0",
        "added_tokens": [
            {
                "id": vocabulary[special],
                "content": special,
                "special": True,
                **dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False),
            }
        ],
        "pre_tokenizer": {
            "type": "ByteLevel",
            "add_prefix_space": False,
            "trim_offsets": True,
            "use_regex": True,
        },
        "decoder": {
            "type": "ByteLevel",
            "add_prefix_space": True,
            "trim_offsets": True,
            "use_regex": True,
        },
        "model": {"type": "BPE", "vocab": vocabulary, "merges": merges, **model},
        **members,
    }


@pytest.fixture
def load_json(backend: BackendName, tmp_path: Path) -> Callable[[dict[str, Any]], Encoding]:
    """Load a tokenizer.json."""

    def load(root: dict[str, Any]) -> Encoding:
        file = tmp_path / "tokenizer.json"
        file.write_text(json.dumps(root))
        return load_encoding(EncodingSpec(name="made", file=file), backend=backend)

    return load


MERGES = ["E O", "EO S", "S Y", "Ġ EO"]
NFKC: dict[str, Any] = {"normalizer": {"type": "NFKC"}}


@pytest.mark.parametrize(
    "root",
    [
        file_of("EOS", MERGES),
        file_of("EOS", ["E O", "S Y"], model={"ignore_merges": True}),
        file_of("EOS", MERGES, model={"ignore_merges": True}, **NFKC),
        file_of("EOS", MERGES, **NFKC),
    ],
    ids=["merged", "taken whole", "both, normalised", "merged, normalised"],
)
def test_a_file_whose_model_produces_a_special_token(
    load_json: Callable[[dict[str, Any]], Encoding], root: dict[str, Any]
) -> None:
    """`tokenizers` gives the special id for such text even if it is set to treat special tokens as
    text, and for look-alikes that a normaliser maps to it."""
    encoding, tokenizer = load_json(root), oracle_of(json.dumps(root).encode())
    tokenizer.encode_special_tokens = True
    special = encoding.special_tokens["EOS"]
    assert special in tokenizer.encode("EOS").ids
    for text in ("EOS", " EOS", "EOSY", "xEOS.EOS", "EO S", "E\uff2fS", "SYEO", "EOEOSS", "eos"):
        ids = encoding.encode(text, disallowed_special=())
        assert special not in ids
        assert ids == encoding.encode_ordinary(text)
        assert encoding.count(text, disallowed_special=()) == len(ids)
        theirs = tokenizer.encode(text).ids
        assert ids == theirs or special in theirs
        if "normalizer" not in root:
            assert encoding.decode(ids) == text
    assert encoding.encode("xEOS", allowed_special="all") == [BYTES["x"], special]


@pytest.mark.parametrize(
    ("root", "problem"),
    [
        (file_of("!", []), "'!': it is a single byte or character"),
        (file_of("EO", ["E O", "EO S"]), "'EO': an ordinary token is merged from it"),
        (file_of("Ġa", ["Ġ a"]), "'Ġa': the model may produce it from text that does not spell it"),
        (file_of("Ġa", [], model={"ignore_merges": True}), "does not spell it"),
    ],
    ids=["a byte", "a part", "other text", "other text, whole"],
)
def test_a_special_token_that_is_part_of_other_tokens_is_rejected(
    load_json: Callable[[dict[str, Any]], Encoding], root: dict[str, Any], problem: str
) -> None:
    with pytest.raises(VocabularyError, match=problem) as caught:
        load_json(root)
    assert caught.value.source.endswith("tokenizer.json")
    assert "also_special" in caught.value.remedy


def test_unknown_and_byte_tokens_may_be_special(
    load_json: Callable[[dict[str, Any]], Encoding],
) -> None:
    """`tokenizers` trains byte tokens as special ones only, and most files make the unknown token
    special. They stand for text without a token; text that spells them is text."""
    root = file_of("<unk>", [], model={"unk_token": "<unk>", "byte_fallback": True})
    vocabulary = {c: i for i, c in enumerate("<unk>0x41 ")}
    for token in ("<unk>", "<0x41>", "<u", "nk>", "<0x", "41>", "<0", "1>"):
        vocabulary[token] = len(vocabulary)
    root["model"]["vocab"] = vocabulary
    root["model"]["merges"] = [
        *("< u", "k >", "n k>", "<u nk>", "< 0", "<0 x", "1 >", "4 1>", "<0x 41>")
    ]
    vocabulary["k>"] = len(vocabulary)
    root["added_tokens"] = [
        {**root["added_tokens"][0], "id": vocabulary[token], "content": token}
        for token in ("<unk>", "<0x41>")
    ]
    del root["pre_tokenizer"], root["decoder"]
    encoding = load_json(root)
    tokenizer = Tokenizer.from_str(json.dumps(root))
    tokenizer.encode_special_tokens = True
    unknown, byte = vocabulary["<unk>"], vocabulary["<0x41>"]
    assert tokenizer.encode("A?<unk><0x41>").ids == [byte, unknown, unknown, byte]
    assert encoding.encode_ordinary("A?<unk><0x41>") == [
        *(byte, unknown, vocabulary["<u"], vocabulary["nk>"], vocabulary["<0x"], vocabulary["41>"])
    ]


def test_a_symbol_of_sentencepiece_that_pieces_merge_to(
    backend: BackendName, tmp_path: Path
) -> None:
    """It is special only by `also_special`: the package always finds it."""
    assert "AB" in MODELS["default with symbols"]["user_defined_symbols"]
    data, file = trained("default with symbols"), tmp_path / "a.model"
    file.write_bytes(data)
    plain = load_encoding(EncodingSpec(name="m", file=file), backend=backend)
    guarded = load_encoding(
        EncodingSpec(name="m", file=file, also_special=("AB",)), backend=backend
    )
    symbol = oracle(data).piece_to_id("AB")
    assert symbol in plain.encode_ordinary("xABy")
    ids = guarded.encode_ordinary("xABy")
    assert symbol not in ids
    assert guarded.decode(ids) == "xABy"
    assert guarded.encode("xABy", allowed_special="all") == plain.encode_ordinary("xABy")
    assert guarded.encode_ordinary("hello world") == plain.encode_ordinary("hello world")


def test_a_symbol_of_sentencepiece_that_is_part_of_other_pieces_is_rejected(
    backend: BackendName, tmp_path: Path
) -> None:
    file = tmp_path / "a.model"

    def load(*symbols: str) -> Encoding:
        spec = EncodingSpec(name="m", file=file, also_special=symbols)
        return load_encoding(spec, backend=backend)

    def longer(message: Any) -> None:
        message.pieces.add(piece="ABx", score=-1.0)

    file.write_bytes(trained("default with symbols"))
    with pytest.raises(VocabularyError, match="'½': it is a single byte or character"):
        load("½")
    file.write_bytes(edited(trained("default with symbols"), longer))
    with pytest.raises(VocabularyError, match="'AB': an ordinary token is merged from it"):
        load("AB")


def test_a_special_token_with_the_spelling_of_an_ordinary_one_is_ordinary_in_text(
    backend: BackendName,
) -> None:
    """In rank files the two have different ids, or the file is rejected."""
    spec = EncodingSpec(name="e", extends="r50k_base", special_tokens={"hello": 60000})
    encoding = load_encoding(spec, backend=backend)
    assert encoding.encode("hello", disallowed_special=()) == [31373]
    assert encoding.encode("hello", allowed_special="all") == [60000]
