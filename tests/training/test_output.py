"""The files of a training: other libraries read them with the same ids."""

from __future__ import annotations

import itertools
import random
import tomllib
from dataclasses import replace
from pathlib import Path

import bytepair_engine
import pytest
from bytepair_engine import (
    Encoding,
    EncodingSpec,
    InvalidOption,
    TrainingError,
    VocabularyError,
    can_stream,
    load_encoding,
)
from bytepair_engine.extending import extend_encoding, ordinary_tokens
from bytepair_engine.training.counting import Counting, counts_of
from bytepair_engine.training.merging import Trained, merge_counts
from bytepair_engine.training.output import configuration, rank_file
from bytepair_engine.training.settings import TrainingSettings
from bytepair_engine.training.tokenizer_json import tokenizer_json
from bytepair_engine.training.training import encoding_of
from bytepair_engine.vocabulary.patterns import PATTERNS
from support.hard_text import HARD_CHARACTERS, HARD_PIECES, random_texts
from support.random_patterns import random_pattern
from tokenizers import Tokenizer

ROOT = Path(__file__).resolve().parents[2]
TEXTS = [file.read_text(encoding="utf-8")[:8000] for file in sorted((ROOT / "docs").glob("*.md"))]
LETTERS = "aAbBxiİısſ'é1²\u200d \n中"
SPECIAL = ("<|end|>", '<|"quoted"|>\x7f')


def train(pattern: str | None, size: int = 1500) -> tuple[Trained, Encoding]:
    settings = TrainingSettings.checked(vocab_size=size, pattern=pattern, special_tokens=SPECIAL)
    with Counting(settings.pattern) as counting:
        counting.add([*TEXTS, "".join(HARD_CHARACTERS * 2), "".join(HARD_PIECES * 2)])
        trained = merge_counts(counting.counts(), settings)
    return trained, encoding_of(trained, name="mine")


@pytest.mark.slow
@pytest.mark.parametrize("pattern", [*PATTERNS, r"\p{L}+|[^\p{L}]", None])
def test_huggingface_gives_the_same_ids(pattern: str | None) -> None:
    trained, encoding = train(pattern)
    theirs = Tokenizer.from_str(tokenizer_json(trained))
    theirs.encode_special_tokens = True  # a page may contain one
    seed = 20261121
    texts = [*random_texts(random.Random(seed), list(trained.tokens), 600), *TEXTS]
    for text in texts:
        # Their regular expressions use older Unicode tables.
        if all(ord(character) < 0x1C00 for character in text):
            assert theirs.encode(text).ids == encoding.encode_ordinary(text), (seed, text)
    theirs.encode_special_tokens = False
    assert theirs.encode("a<|end|>").ids[-1] == encoding.special_tokens["<|end|>"] == 1498
    assert theirs.decode(encoding.encode_ordinary("naïve 日本")) == "naïve 日本"


@pytest.mark.slow
@pytest.mark.parametrize("pattern", [*PATTERNS, None])
def test_its_own_tokenizer_json_is_read_with_the_same_ids_and_streams(
    pattern: str | None, tmp_path: Path
) -> None:
    trained, encoding = train(pattern, size=600)
    file = tmp_path / "tokenizer.json"
    file.write_text(tokenizer_json(trained), encoding="utf-8")
    again = load_encoding(EncodingSpec(name="again", file=file))
    assert can_stream(again) == can_stream(encoding)
    seed = 20261127
    for text in [*random_texts(random.Random(seed), list(trained.tokens), 300), *TEXTS]:
        assert again.encode_ordinary(text) == encoding.encode_ordinary(text), (seed, text)


@pytest.mark.parametrize(
    "pattern",
    [
        r"a{1,3}+",
        r"^a|.",
        r"a$|.",
        r"(?V1)[a&&b]",
        r"\w+|[^\w\s]+|\s+",
        r"\W|\w",
        r"[\w-]+",
        r"\pL+|\pN{1,3}|\s+",
        r"(?i:ss)|\s",
        r"(?i:[a-z])+|\s+",
        r"(?is:a)",
        r"[a-z]*",
        r"[a-z]*?",
        r"(?=a)",
        r"(?:(?<=a)|c)?b",
        "a\n\\w",
    ],
)
def test_a_pattern_with_another_meaning_in_huggingface_is_rejected(pattern: str) -> None:
    with pytest.raises(TrainingError, match="may have another meaning"):
        tokenizer_json(with_pattern(pattern))


def with_pattern(pattern: str) -> Trained:
    """Return merges of whole texts, which differ from splits wherever there are several pieces."""
    texts = ["".join(pair).encode() for pair in itertools.permutations(LETTERS, 2)]
    settings = TrainingSettings.checked(vocab_size=600, pattern=None)
    trained = merge_counts(counts_of(dict.fromkeys(texts, 1)), settings)
    return replace(trained, settings=settings.checked(vocab_size=600, pattern=pattern))


@pytest.mark.slow
def test_a_random_pattern_is_written_only_if_huggingface_gives_the_same_ids() -> None:
    rng, compared = random.Random(seed := 20261129), 0
    while compared < 200:
        pattern = random_pattern(rng)
        try:
            ours = encoding_of(trained := with_pattern(pattern), name="mine")
            theirs = Tokenizer.from_str(tokenizer_json(trained))
        except (TrainingError, VocabularyError):
            continue
        compared += 1
        for _ in range(20):
            text = "".join(rng.choices(LETTERS, k=8))
            assert theirs.encode(text).ids == ours.encode_ordinary(text), (seed, pattern, text)


@pytest.mark.parametrize("special", ["user", "u", "Ġuser", "Ġ"])
def test_a_special_token_that_is_also_an_ordinary_one_is_rejected(special: str) -> None:
    """Hugging Face gives it the ordinary token's id. `Ġuser` is how its files write ` user`."""
    settings = TrainingSettings.checked(
        vocab_size=265, pattern="gpt2", special_tokens=(special, "<|user|>")
    )
    trained = merge_counts(counts_of({b" user": 2, b"user": 2}), settings)
    with pytest.raises(TrainingError, match=f"the special token {special!r}"):
        tokenizer_json(trained)


@pytest.mark.parametrize("pattern", ["gpt2", "deepseek_v3", r"\p{L}+|\"|\\", None])
def test_the_configuration_loads_the_rank_file(pattern: str | None, tmp_path: Path) -> None:
    _, encoding = train(pattern)
    ranks = rank_file(ordinary_tokens(encoding))
    (tmp_path / "mine.tiktoken").write_bytes(ranks)
    lines = configuration(
        "my own",
        file="mine.tiktoken",
        data=ranks,
        pattern=encoding.pattern,
        special_tokens=encoding.special_tokens,
    )
    ((name, table),) = tomllib.loads(lines)["encodings"].items()
    loaded = load_encoding(EncodingSpec.from_mapping(name, table, tmp_path))
    assert (loaded.name, loaded.fingerprint) == ("my own", encoding.fingerprint)


@pytest.mark.slow
def test_an_encoding_can_be_extended() -> None:
    base = bytepair_engine.get_encoding("cl100k_base")
    chat = extend_encoding(base, {"<|a|>": 100264, "<|b|>": 100300}, name="chat")
    assert (chat.n_vocab, chat.special_tokens["<|a|>"]) == (100301, 100264)
    text = "".join(HARD_PIECES)
    assert chat.encode_ordinary(text) == base.encode_ordinary(text)
    again = extend_encoding(chat, ["<|c|>", "<|d|>"], name="again")
    assert [again.special_tokens[token] for token in ("<|c|>", "<|d|>")] == [100301, 100302]
    last = extend_encoding(base, {"<|last|>": 2**31 - 1}, name="last")
    assert ordinary_tokens(last) == ordinary_tokens(base)  # in time for the tokens, not for all ids


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tokens", "problem"),
    [
        ({"<|a|>": 5}, "its id 5 is that of an ordinary token"),
        ({"<|a|>": 100257}, r"that of the special token '<\|endoftext\|>'"),
        ({"<|a|>": 100300, "<|b|>": 100300}, r"that of the special token '<\|a\|>'"),
        ({"<|endoftext|>": 100300}, "it has the id 100257 already"),
        ({"<|a|>": -1}, "outside 0 to"),
        ({"<|a|>": 2**31}, "outside 0 to"),
        ({"": 100300}, "is empty"),
        ({"\ud800": 100300}, "holds a lone surrogate"),
    ],
)
def test_no_id_has_two_meanings(tokens: dict[str, int], problem: str) -> None:
    base = bytepair_engine.get_encoding("cl100k_base")
    with pytest.raises(VocabularyError, match=problem):
        extend_encoding(base, tokens, name="x")


def test_names_are_unique() -> None:
    base = bytepair_engine.get_encoding("r50k_base")
    for tokens in ("<|a|>", ["<|a|>", "<|a|>"]):
        with pytest.raises(InvalidOption, match="special_tokens"):
            extend_encoding(base, tokens, name="x")
