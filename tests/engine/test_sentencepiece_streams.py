"""Streamed text and streamed ids of a SentencePiece model give the same as one call, including the
spaces at the start."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from bytepair_engine import (
    Encoding,
    EncodingSpec,
    InvalidOption,
    StreamDecoder,
    StreamEncoder,
    can_stream,
    load_encoding,
)
from support.hard_text import HARD_PIECES
from support.scalar import Scalar
from support.sentencepiece_models import MODELS, trained

#: Models with known split points; the others reject streams of text.
STREAMED = [
    "llama",
    "gemma",
    "default",
    "default with bytes",
    "NFKC, spaces kept",
    "case folding",
    "words that hold spaces",
]
PIECES = [
    *[" ", "  ", "   ", "▁", "▁▁", "\u3000", "¨", "ｱ", "ﾞ", "e\u0301", "ﷺ", "½", "ﬁ", "\u200b"],
    *["e", "\u0301", "ｶ", "A", "\u030a"],
    *["hello", "llo wor", "AB", "<x>", " y", "  z", "\n\n", "<start_of_turn>", "日本語", "the "],
    *["<s>", "</s>", "<sep>", "[MASK]", "<SEP>", "world"],
    *["hello world "] * 10,
    *HARD_PIECES,
]


def load(name: str, folder: Path) -> Encoding:
    file = folder / "a.model"
    file.write_bytes(trained(name))
    return load_encoding(EncodingSpec(name="m", file=file))


@pytest.mark.slow
def test_models_that_can_be_streamed_into(tmp_path: Path) -> None:
    assert [name for name in MODELS if can_stream(load(name, tmp_path))] == STREAMED
    with pytest.raises(InvalidOption, match="cannot be streamed into"):
        StreamEncoder(load("suffix", tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("name", STREAMED)
def test_ids_do_not_depend_on_the_cut(name: str, tmp_path: Path) -> None:
    encoding, rng = load(name, tmp_path), random.Random(name)
    held = 0
    for number in range(250):
        text = "".join(rng.choices(PIECES, k=rng.randint(0, 30)))
        allowed = "all" if number % 2 else frozenset[str]()
        stream = StreamEncoder(encoding, allowed_special=allowed, disallowed_special=())
        ids, start = [], 0
        while start < len(text):
            end = start + rng.choice([1, 2, 7, 40])
            ids += stream.feed(text[start:end])
            held, start = max(held, stream.pending_bytes), end
        ids += stream.finish()
        whole = encoding.encode(text, allowed_special=allowed, disallowed_special=())
        assert ids == whole, repr(text)
    assert held < 200


@pytest.mark.parametrize("name", MODELS)
def test_streamed_text_equals_that_of_one_call(name: str, tmp_path: Path) -> None:
    encoding, rng = load(name, tmp_path), random.Random(name)
    for _ in range(200):
        ids = encoding.encode_ordinary("".join(rng.choices(PIECES, k=rng.randint(0, 9))))
        ids += rng.choices(range(encoding.n_vocab), k=rng.randint(0, 5))
        rng.shuffle(ids)
        decoder = StreamDecoder(encoding, skip_special_tokens=True)
        deltas = [decoder.feed([token_id]) for token_id in ids]
        assert "".join(deltas) + decoder.finish() == encoding.decode(encoding.without_special(ids))


def test_spaces_at_the_start(tmp_path: Path) -> None:
    """tokenizers #2212, mlx-lm #1754: the second word's space was lost as well."""
    encoding = load("llama", tmp_path)
    decoder = StreamDecoder(encoding)
    ids = encoding.encode("hello world")
    assert "".join(decoder.feed([i]) for i in ids) + decoder.finish() == "hello world"
    stream = StreamEncoder(encoding)
    assert stream.feed("hello") + stream.feed(" wor") + stream.feed("ld") + stream.finish() == ids


def test_ids_that_only_convert_to_integers(tmp_path: Path) -> None:
    encoding = load("llama", tmp_path)
    ids: list[Any] = [Scalar(token_id) for token_id in encoding.encode("hello world")]
    decoder = StreamDecoder(encoding, stop=["wor"])
    assert decoder.feed(ids) == "hello "
    assert decoder.stop_matched == "wor"
    continued = StreamDecoder(encoding, prefill_ids=ids)
    assert continued.feed(ids) == " hello world"
