"""SentencePiece models give the ids and the text of the sentencepiece package."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bytepair_engine import Encoding, EncodingSpec, SpecialTokenFound, load_encoding
from bytepair_engine.formats.sentencepiece_file import PieceType, parse_sentencepiece
from support.hard_text import HARD_CHARACTERS, HARD_PIECES, every_white_space, random_texts
from support.sentencepiece_models import MODELS, edited, oracle, trained

LoadModel = Callable[..., Encoding]

#: Characters that normalisation rules, spaces and the models' symbols depend on.
HARD_HERE = [
    *[" ", "  ", "   ", "▁", "▁▁", "\u3000", "¨", "ｱ", "ﾞ", "e\u0301", "ﷺ", "㌀", "\u00ad"],
    *["<s>", "</s>", "<unk>", "<0x41>", "<pad>", "hello", "llo wor", "AB", "<x>", " y", "  z"],
    *["½", "ﬁ", "ｱ", "\n\n", "<start_of_turn>", "[MASK]", "\x00", "\u200b"],
]


@pytest.fixture
def load_model(tmp_path: Path) -> LoadModel:
    """Load a model file, with additional keys of the declaration."""

    def load(data: bytes, **keys: Any) -> Encoding:
        file = tmp_path / "a.model"
        file.write_bytes(data)
        return load_encoding(EncodingSpec(name="m", file=file, **keys))

    return load


def assert_same_ids(encoding: Encoding, model: Any, text: str) -> None:
    assert encoding.encode_ordinary(text) == model.encode(text), repr(text)


def assert_same_text(encoding: Encoding, model: Any, ids: list[int]) -> None:
    assert encoding.decode(ids) == model.decode(ids), [model.id_to_piece(i) for i in ids]


def texts(model: Any, seed: int) -> list[str]:
    rng = random.Random(seed)
    pieces = [model.id_to_piece(i).encode() for i in range(model.get_piece_size())]
    glued = ["".join(rng.choices(HARD_HERE, k=rng.randint(0, 9))) for _ in range(300)]
    mixed = ["".join(rng.choices(HARD_HERE + HARD_PIECES, k=5)) for _ in range(100)]
    spaced = [text.replace("▁", " ") for text in random_texts(rng, pieces, 100)]
    random_ones = [*glued, *mixed, *random_texts(rng, pieces, 200), *spaced]
    return ["", *HARD_CHARACTERS, *HARD_PIECES, *random_ones]


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_ids_of_hard_texts_and_the_text_of_any_ids(load_model: LoadModel, name: str) -> None:
    model = oracle(trained(name))
    encoding = load_model(trained(name))
    rng = random.Random(name)
    sayable = [i for i in range(model.get_piece_size()) if not model.is_control(i)]
    for text in texts(model, 7):
        assert_same_ids(encoding, model, text)
        ids = model.encode(text)
        assert_same_text(encoding, model, ids)
        assert encoding.count(text, disallowed_special=()) == len(ids)
        # Bytes that are not characters become the number of U+FFFD that docs/formats.md states.
        chosen = [i for i in rng.choices(sayable, k=6) if not model.is_byte(i)]
        assert_same_text(encoding, model, chosen)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_spaces_that_ids_start_with(load_model: LoadModel, name: str) -> None:
    """If spaces are normalised, all are removed; otherwise only the dummy prefix."""
    model = oracle(trained(name))
    encoding = load_model(trained(name))
    space, word, unknown = (model.piece_to_id(piece) for piece in ("▁", "▁t", "<unk>"))
    for ids in ([space], [space, word], [space, space, word, word], [unknown, word], [word, space]):
        assert_same_text(encoding, model, ids)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_code_points_alone_and_between_letters(load_model: LoadModel, name: str) -> None:
    """A different sample for each model; `make exactness-formats` tests all of them."""
    model = oracle(trained(name))
    encoding = load_model(trained(name))
    step = 499 if len(model.encode("\U0010ffff")) > 1 else 251
    for code in range([*MODELS].index(name), 0x110000, step):
        if not 0xD800 <= code < 0xE000:
            assert_same_ids(encoding, model, chr(code))
            assert_same_ids(encoding, model, f"a{chr(code)}b")


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_every_symbol_with_each_white_space_around_it(load_model: LoadModel, name: str) -> None:
    """A control symbol in text is text, and a user-defined symbol is itself."""
    model = oracle(trained(name))
    encoding = load_model(trained(name))
    file = parse_sentencepiece(trained(name), name)
    symbols = [p.text for p in file.pieces if p.type not in (PieceType.NORMAL, PieceType.BYTE)]
    for symbol in [*symbols, "<0x41>"]:
        for space in [*every_white_space(), "", "▁", "  "]:
            for text in (f"{space}{symbol}{space}", f"a{space}{symbol}{space}b{symbol}"):
                assert_same_ids(encoding, model, text)


def test_spaces_need_not_be_escaped(load_model: LoadModel) -> None:
    def keep_spaces(message: Any) -> None:
        message.normalizer_spec.escape_whitespaces = False

    for name in ("llama", "default", "suffix"):
        data = edited(trained(name), keep_spaces)
        encoding, model = load_model(data), oracle(data)
        for text in texts(model, 8)[:300]:
            assert_same_ids(encoding, model, text)


def test_unused_pieces_are_split_again(load_model: LoadModel) -> None:
    """They still take part in merging."""

    def spoil(message: Any) -> None:
        found = 0
        for piece in message.pieces:
            if piece.piece in ("▁hello", "llo", "▁world", "th", "▁t"):
                piece.type = piece.UNUSED
                found += 1
        assert found >= 3

    data = edited(trained("llama"), spoil)
    encoding, model = load_model(data), oracle(data)
    for text in ["hello", "hello world", "llo the world", *texts(model, 9)]:
        assert_same_ids(encoding, model, text)


def test_characters_without_a_piece_can_still_merge(load_model: LoadModel) -> None:
    def spoil(message: Any) -> None:
        kept = [p for p in message.pieces if p.piece not in ("h", "w", "▁")]
        del message.pieces[:]
        message.pieces.extend(kept)

    data = edited(trained("llama"), spoil)
    encoding, model = load_model(data), oracle(data)
    for text in ("hello world", "hhh www", " w h", "whale"):
        assert_same_ids(encoding, model, text)


def test_equal_scores_merge_from_the_left(load_model: LoadModel) -> None:
    def flatten(message: Any) -> None:
        for piece in message.pieces:
            piece.score = -1.0 if piece.type == piece.NORMAL else 0.0

    data = edited(trained("llama"), flatten)
    encoding, model = load_model(data), oracle(data)
    for text in texts(model, 10):
        assert_same_ids(encoding, model, text)


def test_control_symbols_need_permission(load_model: LoadModel) -> None:
    encoding = load_model(trained("case folding"))
    model = oracle(trained("case folding"))
    sep, mask = model.piece_to_id("<sep>"), model.piece_to_id("[MASK]")
    assert encoding.special_tokens == {"<s>": 1, "</s>": 2, "<sep>": sep, "[MASK]": mask}
    with pytest.raises(SpecialTokenFound) as found:
        encoding.encode("é <sep>")
    assert (found.value.token, found.value.byte_offset) == ("<sep>", 3)
    assert encoding.encode("a<sep>b", allowed_special={"<sep>"}) == (
        [*model.encode("a"), sep, *model.encode("b")]
    )
    # Case folding never turns other text into a symbol.
    assert sep not in encoding.encode("<SEP> ＜sep＞", allowed_special="all")
    assert encoding.decode([sep, *model.encode("a")]) == "<sep>a"
    assert encoding.without_special([sep, 5, mask]) == [5]


def test_user_defined_symbols_can_be_declared_to_need_permission(load_model: LoadModel) -> None:
    data = trained("gemma")
    turn = oracle(data).piece_to_id("<start_of_turn>")
    assert load_model(data).encode("<start_of_turn>") == [turn]
    guarded = load_model(data, also_special=("<start_of_turn>",))
    assert guarded.special_tokens["<start_of_turn>"] == turn
    with pytest.raises(SpecialTokenFound):
        guarded.encode("a<start_of_turn>")
    assert turn not in guarded.encode_ordinary("a<start_of_turn>")
    assert guarded.encode("<start_of_turn>", allowed_special="all") == [turn]
    assert guarded.fingerprint != load_model(data).fingerprint


def test_offsets_refer_to_the_original_text(load_model: LoadModel) -> None:
    for name in ("llama", "default", "suffix"):
        model, encoding = oracle(trained(name)), load_model(trained(name))
        for text in ["", "hello  world", " ｱﾞ ½ é", "  a b  ", "\u3000x\u3000", "\x00"]:
            proto = model.encode(text, return_type="proto")
            ids, offsets = encoding.encode_with_offsets(text, unit="byte", disallowed_special=())
            assert ids == [piece.id for piece in proto.pieces]
            if name != "llama":  # the package has no offsets for byte tokens
                assert offsets == [piece.begin for piece in proto.pieces], text


def test_the_fingerprint_covers_everything_that_decides_ids(load_model: LoadModel) -> None:
    def rescore(message: Any) -> None:
        message.pieces[300].score, message.pieces[301].score = -1e6, -1e7

    def untidy(message: Any) -> None:
        message.normalizer_spec.remove_extra_whitespaces = False

    def rename(message: Any) -> None:
        message.trainer_spec.model_prefix = "another"

    data = trained("default")
    same = load_model(edited(data, rename)).fingerprint
    assert same == load_model(data).fingerprint
    others = {load_model(edited(data, edit)).fingerprint for edit in (rescore, untidy)}
    assert len(others | {same}) == 3
