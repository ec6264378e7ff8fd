"""Streamed encoding holds little text: a setting bounds it, and few texts reach the bound."""

from __future__ import annotations

import tracemalloc
from itertools import repeat
from typing import Any

import pytest
from bytepair_engine import (
    PieceTooLong,
    SpecialTokenFound,
    StreamCounter,
    StreamEncoder,
    get_encoding,
    list_encodings,
)
from support.pieces import cut, stream
from support.splitting import counted_splitter


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["a", " ", "日", "\n", "'", "-", "\u0301"])
def test_an_endless_pre_token_is_an_error_and_uses_bounded_memory(load: Any, unit: str) -> None:
    """Endless `"a"` (tiktoken #195), white space (#258), `"_"*50_000` (ai-tokenizer #6)."""
    encoding = load("o200k_base")
    piece = unit * 4096
    tracemalloc.start()
    try:
        encoder = StreamEncoder(encoding, max_pending_bytes=200_000)
        with pytest.raises(PieceTooLong) as caught:
            stream(encoder, repeat(piece))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (caught.value.limit, caught.value.byte_offset) == (200_000, 0)
    assert peak < 4_000_000


def test_a_stream_does_not_keep_the_text_that_it_has_counted(load: Any) -> None:
    counter = StreamCounter(load("cl100k_base"))
    counter.feed("a word and ")
    tracemalloc.start()
    try:
        counter.feed("日本 and a word " * 20_000)
        assert tracemalloc.get_traced_memory()[0] < 10_000
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "unit"),
    [
        *((name, unit) for name in ("cl100k_base", "o200k_base") for unit in ("1", ".\n", "\n.")),
        *((name, "x's") for name in ("r50k_base", "cl100k_base", "o200k_base")),
        *((name, "<|endoftext|>") for name in list_encodings()),
        *(("o200k_base", unit) for unit in ("aB", "aあA", "-\u0301", "a'reB", "あ's", "/\n-")),
    ],
)
def test_many_pre_tokens_without_a_space_do_not_reach_the_bound(
    load: Any, name: str, unit: str
) -> None:
    """1 MiB without spaces (tiktoken #15), digits, lines without letters (llama.cpp #26965)."""
    encoding = load(name)
    text = unit * (20_000 // len(unit))
    encoder = StreamEncoder(encoding, allowed_special="all", max_pending_bytes=2000)
    ids = stream(encoder, cut(text, *range(100, len(text), 100)))
    assert ids == encoding.encode(text, allowed_special="all")


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 10, 5000])
@pytest.mark.parametrize("unit", ["a", "日", "aあA", " "])
def test_small_pieces_do_not_rescan_the_held_text(size: int, unit: str) -> None:
    """The cost is measured in characters that are read or copied, not in seconds."""
    splitter, searched = counted_splitter(10**6)
    text = unit * (60_000 // len(unit))
    given = [splitter.feed(piece) for piece in cut(text, *range(size, len(text), size))]
    assert "".join(given) + splitter.finish() == text
    assert sum(searched) <= 4 * len(text)
    assert len(splitter._parts) <= 20  # each is longer than the next: logarithmic


def test_a_special_token_before_the_bound_is_reported(load: Any) -> None:
    encoder = StreamEncoder(load("cl100k_base"), max_pending_bytes=50)
    with pytest.raises(SpecialTokenFound) as caught:
        encoder.feed("\n\n<|endoftext|>" + "<" * 100)
    assert caught.value.byte_offset == 2


@pytest.mark.slow
def test_a_special_token_at_the_end_of_long_text_is_not_cut(load: Any) -> None:
    encoder = StreamEncoder(load("r50k_base"), allowed_special="all")
    text = "<" * 4200  # without a split point, and searched as a whole
    assert encoder.feed(text + "<|endof") == []
    ids = get_encoding("r50k_base").encode_ordinary(text)
    assert encoder.feed("text|>") + encoder.finish() == [*ids, 50256]
