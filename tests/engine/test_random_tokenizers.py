"""The laws of streams and cuts, for files of steps in combinations that no published file has;
`tokenizers` is the oracle."""

from __future__ import annotations

import random
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import regex
from bytepair_engine import (
    Encoding,
    EncodingSpec,
    PieceTooLong,
    StreamCounter,
    StreamEncoder,
    VocabularyError,
    can_stream,
    load_encoding,
)
from bytepair_engine.context import measure, pipeline_search
from bytepair_engine.context.boundaries import LEVELS
from bytepair_engine.context.splitting import SplitOptions
from bytepair_engine.pipeline.normalising import unicode_form
from support.context_api import KEEPS, Cut, Library
from support.context_checks import check_inspection, check_split, check_truncation
from support.random_tokenizers import random_text, random_tokenizer, vocabulary
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from tokenizers import normalizers as norm

SEED = 20261129


def loaded(tokenizer: Tokenizer, folder: Path) -> Encoding:
    file = folder / "tokenizer.json"
    file.write_text(tokenizer.to_str(), encoding="utf-8")
    return load_encoding(EncodingSpec(name="made", file=file))


def streamed(encoding: Encoding, text: str, size: int) -> tuple[list[int], int, bool]:
    """The ids and the count of a text that arrives in pieces, and whether some came before its
    end."""
    encoder, counter = StreamEncoder(encoding), StreamCounter(encoding)
    ids: list[int] = []
    for start in range(0, len(text), size):
        ids += encoder.feed(text[start : start + size])
        counter.feed(text[start : start + size])
    early = bool(ids)
    return ids + encoder.finish(), counter.finish(), early


@pytest.mark.slow
@pytest.mark.parametrize("part", range(6))
def test_laws_of_random_files(part: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the counts of starts and ends are used, as for longer texts."""
    if part % 2:
        monkeypatch.setattr(measure, "_NEAR", 0)
        monkeypatch.setattr(pipeline_search, "EXTRA_CHARACTERS", 0)
    rng, known, streams = random.Random(f"{SEED} {part}"), 0, 0
    while known < 25:
        tokenizer = random_tokenizer(rng)
        try:
            encoding = loaded(tokenizer, tmp_path)
        except VocabularyError:
            continue
        known += 1
        steps = tokenizer.normalizer, tokenizer.pre_tokenizer

        def encode(text: str, /, **_options: Any) -> list[int]:
            return list(tokenizer.encode(text, add_special_tokens=False).ids)  # noqa: B023

        def count(text: str) -> int:
            return len(encode(text))

        for parts in (8,) * 30 + (40,) * 10:
            text = random_text(rng, parts)
            ids = encode(text)
            assert encoding.encode(text) == ids, (SEED, part, text, steps)
            if can_stream(encoding):
                found = streamed(encoding, text, rng.choice([1, 1, 2, 3]))
                assert found[:2] == (ids, len(ids)), (SEED, part, text, steps)
                streams += found[2]
        for _ in range(3):
            text, most = random_text(rng, 14), rng.choice([1, 2, 3, 5, 9])
            options = SplitOptions(
                most, rng.choice([0, most // 2]), rng.choice(LEVELS), rng.choice([0, 50, 100])
            )
            marker = rng.choice(["", "", "…", "\u0301", " "])
            cut = Cut(most, rng.choice(KEEPS), rng.choice(LEVELS), marker)
            check_truncation(Library(encoding), text, cut, count)
            check_split(Library(encoding), text, options, count)
            check_inspection(Library(encoding), text, random_text(rng, 3), encode)
    assert streams > 100


#: Kind to normaliser, pre-tokenizers, whether merging starts from bytes, and the letters.
STEPS: dict[str, tuple[Any, list[Any], bool, list[str]]] = {
    "marks compose": (
        norm.NFC(),
        [pre_tokenizers.ByteLevel(False)],
        True,
        ["e", "é", "\u0301", " ", ".", "\u0958", "\u093c"],
    ),
    "white space before a mark": (
        norm.NFC(),
        [pre_tokenizers.Split(" ", "merged_with_next"), pre_tokenizers.ByteLevel(True)],
        True,
        ["e", "é", "\u0301", " ", "\n", "1", "'"],
    ),
    "spaces become marks": (
        None,
        [pre_tokenizers.Metaspace("▁", "always", False), pre_tokenizers.ByteLevel(False)],
        True,
        ["a", ",", " ", "▁", "\n", "1"],
    ),
    "spaces become letters": (
        None,
        [pre_tokenizers.Metaspace("s", "first", False), pre_tokenizers.ByteLevel(True)],
        True,
        ["a", "'", "s", " ", "\xa0", "."],
    ),
    "spaces become marks, then digits": (
        None,
        [
            pre_tokenizers.Metaspace("▁", "never", False),
            pre_tokenizers.Digits(False),
            pre_tokenizers.ByteLevel(True),
        ],
        True,
        ["a", ",", " ", "▁", "1", "."],
    ),
    "a comma becomes a space that is stripped": (
        norm.Sequence([norm.Replace(",", " "), norm.Strip(), norm.Replace(" ", "▁")]),
        [pre_tokenizers.Whitespace()],
        False,
        ["a", "b", ",", " ", "▁"],
    ),
    "a low line becomes a mark that composes": (
        norm.Sequence([norm.Replace("_", "\u0301"), norm.NFC()]),
        [pre_tokenizers.Whitespace()],
        False,
        ["a", "_", "e", "é", "\u0301", " "],
    ),
}


@pytest.mark.parametrize("kind", STEPS)
def test_every_short_text_is_streamed_exactly(kind: str, tmp_path: Path) -> None:
    """Or text cannot be streamed."""
    normaliser, splits, in_bytes, letters = STEPS[kind]
    for number in range(3):
        rng = random.Random(f"{SEED} {kind} {number}")
        size = 300 if in_bytes else len(letters) + 1 + rng.randrange(5)
        tokenizer = vocabulary(rng, letters, size, in_bytes=in_bytes)
        if normaliser is not None:
            tokenizer.normalizer = normaliser
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(splits)
        encoding = loaded(tokenizer, tmp_path)
        if not can_stream(encoding):
            continue
        for text in map("".join, product(letters, repeat=3)):
            ids = tokenizer.encode(text, add_special_tokens=False).ids
            found = streamed(encoding, text, 1)
            assert found[:2] == (ids, len(ids)), (SEED, number, text)
            inspected = encoding.inspect(text[:2])
            assert (
                ids[: inspected.stable_tokens]
                == (encoding.encode(text[:2])[: inspected.stable_tokens])
            ), (SEED, number, text)


def test_composition_keeps_the_classes_of_patterns() -> None:
    """So a character has the same split points before text as in it. Patterns treat Lu and Lt
    alike, and Han and kana by their blocks."""
    classes = [r"[\p{Lu}\p{Lt}]", r"\p{Ll}", r"\p{Lm}", r"\p{Lo}", r"\p{M}", r"\p{N}", r"\p{P}"]
    classes += [r"\p{S}", r"\s", "['/\r\n]", "[一-龥぀-ゟ゠-ヿ]"]
    patterns = [regex.compile(each) for each in classes]
    composed = 0
    for character in map(chr, range(0x300, 0x20000)):
        first = unicode_form(character, "NFD")[0]
        if first != character == unicode_form(character, "NFC"):
            composed += 1
            for each in patterns:
                assert bool(each.match(first)) == bool(each.match(character)), character
    assert composed > 800


def test_letters_after_an_apostrophe_that_a_step_puts_there_are_not_cut(tmp_path: Path) -> None:
    """`'r` is one token of a start `'r`, as two pieces; in `'re` it would be part of one."""
    vocab = {c: i for i, c in enumerate([*pre_tokenizers.ByteLevel.alphabet(), "'r", "xx", "xxxx"])}
    tokenizer = Tokenizer(models.BPE(vocab, [("'", "r"), ("x", "x"), ("xx", "xx")]))
    tokenizer.decoder = decoders.ByteLevel()
    steps = [pre_tokenizers.Metaspace("'", "always", False), pre_tokenizers.ByteLevel(False)]
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(steps)
    encoding = loaded(tokenizer, tmp_path)
    with pytest.raises(PieceTooLong):
        encoding.truncate("re" + 3000 * "x", 1, level="code_point")
    assert encoding.truncate("rex", 1, level="code_point") == ""
