"""Untrusted SentencePiece models: each fault is a rejection that names the field."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from bytepair_engine import EncodingSpec, VocabularyError, load_encoding
from bytepair_engine.formats import sentencepiece_file
from bytepair_engine.formats.protobuf_wire import fields
from bytepair_engine.formats.sentencepiece import sentencepiece_pipeline
from bytepair_engine.pipeline.charsmap import CharsMapFault, CharsMapTable
from bytepair_engine.pipeline.definition import Scores, Spacing
from support.sentencepiece_models import edited, oracle, trained

SEED = 20261121
SMALL = trained("case folding")


def rejected(data: bytes) -> VocabularyError:
    with pytest.raises(VocabularyError) as caught:
        sentencepiece_pipeline(data, "a.model")
    assert str(caught.value).startswith("a.model: ")
    assert caught.value.remedy
    return caught.value


def model_type(number: int) -> Callable[[Any], None]:
    def edit(message: Any) -> None:
        message.trainer_spec.model_type = number

    return edit


def piece(number: int, **fields: Any) -> Callable[[Any], None]:
    def edit(message: Any) -> None:
        for name, value in fields.items():
            setattr(message.pieces[number], name, value)

    return edit


def bytes_and_no_fallback(message: Any) -> None:
    message.trainer_spec.byte_fallback = True


def no_pieces(message: Any) -> None:
    del message.pieces[:]


def charsmap(data: bytes) -> Callable[[Any], None]:
    def edit(message: Any) -> None:
        message.normalizer_spec.precompiled_charsmap = data

    return edit


def denormaliser(message: Any) -> None:
    message.denormalizer_spec.precompiled_charsmap = b"\0" * 20


def silent_unknown(message: Any) -> None:
    message.trainer_spec.unk_surface = ""
    message.normalizer_spec.add_dummy_prefix = True


def many_symbols(message: Any) -> None:
    for i in range(70):
        message.pieces.add(piece="~" * (i + 1), type=4)


def two_ways(message: Any) -> None:
    for text, kind in (("12", 1), ("23", 1), ("1", 1), ("2", 1), ("3", 1), ("123", 5)):
        found = [p for p in message.pieces if p.piece == text]
        (found[0] if found else message.pieces.add(piece=text)).type = kind


def long_unused(message: Any) -> None:
    for i in range(8):
        message.pieces.add(piece=f"{i}" * 7_000, type=5)


@pytest.mark.parametrize(
    ("edit", "problem"),
    [
        (model_type(1), "trainer_spec.model_type is UNIGRAM: only BPE"),
        (model_type(3), "trainer_spec.model_type is WORD: only BPE"),
        (model_type(4), "trainer_spec.model_type is CHAR: only BPE"),
        (no_pieces, "it has no pieces"),
        (piece(9, piece=""), r"pieces\[9\].piece is empty"),
        (piece(9, piece="x" * 9000), r"pieces\[9\].piece has 9000 bytes"),
        (piece(9, piece="a\0b"), r"pieces\[9\].piece holds a zero character"),
        (piece(9, piece="<s>"), "is '<s>', like pieces"),
        (piece(9, score=float("nan")), r"pieces\[9\].score is not a number"),
        (piece(9, type=2), "hold 2 unknown pieces"),
        (piece(0, type=1), "hold 0 unknown pieces"),
        (piece(9, piece="~", type=3), "control symbol '~', a single character"),
        (piece(9, piece="~", type=5), "unused piece '~', a single character"),
        (piece(9, piece="<0x4G>", type=6), r"pieces\[9\].piece is '<0x4G>', which names no byte"),
        (piece(9, piece="<0x41>", type=6), "byte_fallback is false, and 1 bytes have a piece"),
        (bytes_and_no_fallback, "byte_fallback is true, and 0 bytes have a piece"),
        (charsmap(b"abc"), "precompiled_charsmap is not a valid map: its trie has the size"),
        (charsmap(b"\x08\0\0\0" + bytes(8)), "precompiled_charsmap is not a valid map"),
        (denormaliser, "denormalizer_spec has rules"),
        (silent_unknown, "unk_surface is empty"),
        (many_symbols, "user-defined symbol with 64 others as prefixes"),
        (two_ways, "unused piece '123', the result of 2 pairs"),
        (long_unused, "pieces hold unused pieces that are too long"),
    ],
)
def test_models_that_cannot_be_served_exactly_are_rejected(
    edit: Callable[[Any], None], problem: str
) -> None:
    with pytest.raises(VocabularyError, match=problem):
        sentencepiece_pipeline(edited(SMALL, edit), "a.model")


def test_the_longest_piece_is_that_of_the_package() -> None:
    longest, longer = (edited(SMALL, piece(9, piece="x" * n)) for n in (7_999, 8_000))
    assert oracle(longest).id_to_piece(9) == "x" * 7_999
    assert b"x" * 7_999 in sentencepiece_pipeline(longest, "a.model").model.tokens
    with pytest.raises(RuntimeError, match="too long"):
        oracle(longer)
    assert "pieces[9].piece has 8000 bytes" in rejected(longer).problem


def test_a_missing_score_is_zero() -> None:
    data = edited(SMALL, lambda message: message.pieces[50].ClearField("score"))
    rule = sentencepiece_pipeline(data, "a.model").model.rule
    assert isinstance(rule, Scores)
    assert rule.scores[50] == oracle(data).get_score(50) == 0


@pytest.mark.parametrize(
    "field",
    [b"\x18\x01", b"\x18\x02", b"\x18\x80\x02", b"\x18\x00", b"\x18\x80\x00", b"\x18\x01\x18\x00"],
    ids=["1", "2", "256", "0", "0 in two bytes", "1, then 0"],
)
def test_every_number_but_zero_is_true(field: bytes) -> None:
    data = SMALL + b"\x1a" + bytes([len(field)]) + field  # add_dummy_prefix once more
    (spacing,) = sentencepiece_pipeline(data, "a.model").normalisers
    assert isinstance(spacing, Spacing)
    assert (spacing.pad == "before") == oracle(data).encode("a", out_type=str)[0].startswith("▁")


def test_a_length_may_have_more_bytes_than_it_needs() -> None:
    """The length of the text, 5 in two bytes, looks like that of all before the score."""
    unknown_field = b"\x22\x7d" + b"x" * 125
    last = b"\x0a\x85\x00hallo" + unknown_field + b"\x15\0\0\0\0"
    data = SMALL + b"\x0a" + bytes([len(last) & 0x7F | 0x80, len(last) >> 7]) + last
    model = oracle(data)
    token_id = model.get_piece_size() - 1
    assert model.id_to_piece(token_id) == "hallo"
    assert sentencepiece_pipeline(data, "a.model").model.tokens[b"hallo"] == token_id


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "the file is empty"),
        (b"\x0a", "byte 1: a number does not end"),
        (b"\x0a\x05ab", "byte 0: field 1 ends 3 bytes after its message"),
        (b"\x0a" + b"\xff" * 9 + b"\x01", "byte 0: field 1 ends"),
        (b"\x0a" + b"\xff" * 11, "byte 1: a number has more than ten bytes"),
        (b"\x08\x01", "byte 1: pieces holds a varint value"),
        (b"\x10\x00", "byte 1: trainer_spec holds a varint value"),
        (b"\x18\x00", "byte 1: normalizer_spec holds a varint value"),
        (b"\x28\x00", "byte 1: denormalizer_spec holds a varint value"),
        (b"\x0b\x00\x0c", "byte 0: no field starts with the tag 11"),
        (b"\x00\x00", "byte 0: no field starts with the tag 0"),
        (b"\x0a\x04\x0a\x02\xff\xfe", r"pieces\[0\].piece is not UTF-8"),
        (b"\x0a\x05\x0a\x01a\x18\x63", r"pieces\[0\].type is 99"),
        (b"\x0a\x02\x08\x01", r"pieces\[0\] holds a varint value"),
        (b"\x0a\x08\x22\x01a\x15\0\0\0\0", r"pieces\[0\].piece is empty"),
        (b"\x0a\x08\x0a\x01a\x1d\0\0\0\0", r"pieces\[0\] holds a 32-bit value"),
        (edited(SMALL, denormaliser) + b"\x2a\0", "denormalizer_spec has rules"),  # merged
        (b"\x0a\x05\x0a\x01a\x10\x01", r"pieces\[0\] holds a varint value"),
        (b"\x0a\x03\x0a\x01a\x12\x02\x18\x07", "trainer_spec.model_type is 7"),
        (b"\x0a\x03\x0a\x01a\x1a\x03\x1a\x01x", "normalizer_spec.add_dummy_prefix holds a bytes"),
    ],
)
def test_bytes_that_are_not_a_model(data: bytes, problem: str) -> None:
    with pytest.raises(VocabularyError, match=problem):
        sentencepiece_pipeline(data, "a.model")


@pytest.mark.slow
def test_a_truncated_model_is_rejected_or_complete() -> None:
    """A file cut between two fields is a valid message, but must not be another encoding."""
    whole = sentencepiece_pipeline(SMALL, "a.model")
    rng = random.Random(3)
    ends = {*range(300), *rng.sample(range(len(SMALL)), 300)}
    ends |= {start for number, _, start, _ in fields(SMALL, 0, len(SMALL)) if number > 1}
    ends |= {end for number, _, _, end in fields(SMALL, 0, len(SMALL)) if number > 1}
    for end in ends:
        with suppress(VocabularyError):
            assert sentencepiece_pipeline(SMALL[:end], "a.model") == whole


@pytest.mark.slow
def test_a_damaged_model_is_rejected_or_decodes() -> None:
    """Whatever byte is changed, only typed errors are raised."""
    rng = random.Random(4)
    for whole, number in ((trained("llama"), 150), (SMALL, 20)):
        for _ in range(number):
            data = bytearray(whole)
            for _ in range(rng.randint(1, 4)):
                data[rng.randrange(len(data))] = rng.randrange(256)
            with suppress(VocabularyError):
                assert sentencepiece_pipeline(bytes(data), "a.model").decoder.middle


def test_too_many_pieces_are_rejected_before_they_use_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pieces = oracle(SMALL).get_piece_size()
    monkeypatch.setattr(sentencepiece_file, "MAX_PIECES", pieces)
    assert len(sentencepiece_pipeline(SMALL, "a.model").decoder.middle) == pieces
    monkeypatch.setattr(sentencepiece_file, "MAX_PIECES", pieces - 1)
    assert f"more than {pieces - 1} pieces" in str(rejected(SMALL))


def trie(units: dict[int, int], strings: bytes = b"x\0") -> bytes:
    """A map of 512 units. Units that are not given are values that no byte leads to."""
    packed = b"".join(units.get(i, 0x80000000).to_bytes(4, "little") for i in range(512))
    return len(packed).to_bytes(4, "little") + packed + strings


def unit(label: int, offset: int, *, ends_key: bool = False) -> int:
    return label | ends_key << 8 | offset << 10


#: "a" leads from the root, whose offset is 0x100, to 0x161.
ROOT = {0: unit(0, 0x100)}
A = 0x161


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        (trie(ROOT, bytes(9 * 2**20)), "more than"),
        (trie(ROOT)[:2052], "its trie has the size 2048,"),
        (trie({**ROOT, A: unit(0x61, A ^ 0x100)}), "unit 353 of its trie leads back to itself"),
        (trie({**ROOT, A: unit(0x61, A, ends_key=True)}), "unit 353 of its trie has no value"),
        (trie({**ROOT, A: unit(0x61, 0x800, ends_key=True)}), "unit 353 of its trie has no value"),
        (
            trie({**ROOT, A: unit(0x61, A ^ 1, ends_key=True), 1: 0x80000007}),
            "a value is at 7, outside its strings",
        ),
        (
            trie({**ROOT, A: unit(0x61, A ^ 1, ends_key=True)}, b"\xff\0"),
            "the value at 0 is not UTF-8",
        ),
        (trie({**ROOT, A: unit(0x61, A ^ 1, ends_key=True)}, b"xyz"), "a value is at 0, outside"),
    ],
)
def test_a_map_with_invalid_offsets_is_rejected(table: bytes, problem: str) -> None:
    with pytest.raises(CharsMapFault, match=problem):
        CharsMapTable(table)


def test_a_small_map_with_too_many_keys_is_rejected() -> None:
    """Two bytes lead from each unit to the next, so the last one has 2^40 keys."""
    units = {0: unit(0, 0x100)}
    for level in range(1, 40):
        base, following = level << 8, (level + 1) << 8
        for byte in (0x61, 0x62):
            units[base ^ byte] = unit(byte, base ^ byte ^ following)
    packed = b"".join(units.get(i, 0x80000000).to_bytes(4, "little") for i in range(42 << 8))
    with pytest.raises(CharsMapFault, match="nodes"):
        CharsMapTable(len(packed).to_bytes(4, "little") + packed + b"x\0")


def test_a_map_to_a_long_text_is_rejected() -> None:
    strings = b"x" * 1000 + b"\0"
    table = trie({**ROOT, A: unit(0x61, A ^ 1, ends_key=True)}, strings)
    assert "more than 1000 times longer" in rejected(edited(SMALL, charsmap(table))).problem


def test_the_smallest_map() -> None:
    """Hand-written: "a" becomes "x"."""
    table = CharsMapTable(trie({**ROOT, A: unit(0x61, A ^ 1, ends_key=True)}))
    assert table.longest(b"ab", 0) == (1, "x")
    assert table.longest(b"ba", 0) is None
    assert table.longest(b"ba", 1) == (1, "x")
    assert (table.longest_key, table.values) == (1, frozenset("x"))
    assert list(table.items()) == [(b"a", "x")]


def test_also_special_must_name_a_symbol(tmp_path: Path) -> None:
    file = tmp_path / "a.model"
    file.write_bytes(SMALL)
    spec = EncodingSpec(name="m", file=file, also_special=("<sep>",))
    with pytest.raises(VocabularyError, match="no user-defined symbol '<sep>'"):
        load_encoding(spec)


@pytest.mark.slow
def test_long_pieces_cost_time_by_their_length(tmp_path: Path) -> None:
    """Looking at each cut of each of them would take many minutes."""
    rng = random.Random(SEED)
    print(f"seed {SEED}")

    def long_pieces(message: Any) -> None:
        for i in range(1500):
            message.pieces.add(piece="".join(rng.choices("ab", k=7_990)), score=-i)

    file = tmp_path / "long.model"
    file.write_bytes(edited(SMALL, long_pieces))
    encoding = load_encoding(EncodingSpec(name="long", file=file))
    assert encoding.backend == "native"
    assert encoding.encode("ab") == oracle(SMALL).encode("ab")


@pytest.mark.slow
def test_a_model_with_too_many_pairs_is_rejected(tmp_path: Path) -> None:
    """Each piece can be merged from two others at each of its cuts."""

    def nested(message: Any) -> None:
        for i in range(2, 4_200):
            message.pieces.add(piece="~" * i, score=-i)

    file = tmp_path / "nested.model"
    file.write_bytes(edited(SMALL, nested))
    with pytest.raises(VocabularyError, match="more than 8388608 pairs") as caught:
        load_encoding(EncodingSpec(name="nested", file=file))
    assert caught.value.source == str(file)


def test_files_that_we_reject_as_no_model_are_rejected_by_the_package() -> None:
    for edit in (no_pieces, piece(9, piece=""), piece(9, piece="<s>"), bytes_and_no_fallback):
        with pytest.raises(Exception, match=r".+"):
            oracle(edited(SMALL, edit)).encode("a")
