"""The merges: the native trainer against its definition, HuggingFace's trainer and minbpe's
rule."""

from __future__ import annotations

import random
from collections.abc import Iterable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import bytepair_engine
import numpy
import pytest
from bytepair_engine import InvalidOption, InvalidUnicode, TrainingError, VocabularyError
from bytepair_engine.backends.cores import BackendName
from bytepair_engine.backends.reference import split
from bytepair_engine.pipeline.byte_alphabet import read_bytes
from bytepair_engine.training.counting import Counting, counts_of
from bytepair_engine.training.merging import Trained, merge_by_reference, merge_counts
from bytepair_engine.training.settings import TrainingSettings
from bytepair_engine.vocabulary.patterns import PATTERNS
from support.hard_text import HARD_CHARACTERS, HARD_PIECES

ROOT = Path(__file__).resolve().parents[2]
TEXTS = [file.read_text(encoding="utf-8") for file in sorted((ROOT / "docs").glob("*.md"))]
SEED = 20261121


def ask(vocab_size: int, pattern: str | None = "gpt2", **options: object) -> TrainingSettings:
    return TrainingSettings.checked(vocab_size=vocab_size, pattern=pattern, **options)  # type: ignore[arg-type]


def trained(texts: Iterable[str], settings: TrainingSettings, threads: int = 0) -> Trained:
    with Counting(settings.pattern, threads=threads) as counting:
        for _ in counting.add_all(texts):
            pass
        return merge_counts(counting.counts(), settings)


def random_counts(rng: random.Random) -> dict[bytes, int]:
    """Generate words of few letters, so that pairs tie, repeat and overlap."""
    letters = rng.choice(["a", "ab", "aab", "abc", "abcdefgh é"])
    words = {
        "".join(rng.choices(letters, k=rng.randrange(1, 25))).encode()
        for _ in range(rng.randrange(1, 12))
    }
    return {word: rng.randrange(1, 5) for word in sorted(words, key=lambda _: rng.random())}


@pytest.mark.slow
def test_the_native_trainer_equals_the_definition() -> None:
    rng = random.Random(SEED)
    for number in range(400):
        counts = random_counts(rng)
        settings = ask(
            256 + rng.randrange(1, 40),
            None,
            ties=rng.choice(["lowest", "first-seen"]),
            min_frequency=rng.choice([1, 2, 3]),
            byte_order=rng.choice(["gpt2", "value"]),
        )
        native = merge_counts(counts_of(counts), settings)
        assert native == merge_by_reference(counts, settings), (SEED, number, counts)
        assert len(set(native.tokens)) == len(native.tokens)


@pytest.mark.slow
@pytest.mark.parametrize("ties", ["lowest", "first-seen"])
def test_the_native_trainer_equals_the_definition_on_text(ties: str) -> None:
    settings = ask(420, "cl100k_base", ties=ties)
    counts: dict[bytes, int] = {}
    for piece in split(TEXTS[0][:20_000], PATTERNS["cl100k_base"]):
        counts[piece.encode()] = counts.get(piece.encode(), 0) + 1
    assert trained([TEXTS[0][:20_000]], settings) == merge_by_reference(counts, settings)


def huggingface(texts: list[str], vocab_size: int, min_frequency: int, split: bool) -> list[bytes]:
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=split)
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        min_frequency=min_frequency,
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator(texts, trainer)
    vocabulary = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
    return [read_bytes(token) or b"" for token, _ in vocabulary]


@pytest.mark.slow
@pytest.mark.parametrize("min_frequency", [1, 3])
def test_lowest_ties_give_the_table_of_huggingface(min_frequency: int) -> None:
    settings = ask(6000, "gpt2", min_frequency=min_frequency)
    ours = trained(TEXTS, settings)
    assert list(ours.tokens) == huggingface(TEXTS, 6000, min_frequency, split=True)


def test_lowest_ties_give_the_table_of_huggingface_for_overlapping_pairs() -> None:
    rng = random.Random(SEED)
    for number in range(60):
        texts = [word.decode() for word, n in random_counts(rng).items() for _ in range(n)]
        size = 256 + rng.randrange(1, 40)
        expected = huggingface(texts, size, 1, split=False)
        assert list(trained(texts, ask(size, None)).tokens) == expected, (SEED, number, texts)


def minbpe(pieces: list[bytes], merges: int) -> list[tuple[int, int]]:
    """Apply the rule of minbpe's RegexTokenizer.train: `max` of a dictionary that is filled in the
    order of the text returns the first of the greatest pairs."""
    chunks, made = [list(piece) for piece in pieces], []
    for token in range(256, 256 + merges):
        seen: dict[tuple[int, int], int] = {}
        for chunk in chunks:
            for pair in pairwise(chunk):
                seen[pair] = seen.get(pair, 0) + 1
        best = max(seen, key=lambda pair: seen[pair])
        for chunk in chunks:
            at = 0
            while at < len(chunk) - 1:
                if (chunk[at], chunk[at + 1]) == best:
                    chunk[at : at + 2] = [token]
                at += 1
        made.append(best)
    return made


@pytest.mark.slow
def test_first_seen_ties_give_the_table_of_minbpe() -> None:
    text = "".join(HARD_PIECES) + TEXTS[1][:6000] + "".join(HARD_CHARACTERS)
    pieces = [piece.encode() for piece in split(text, PATTERNS["gpt2"])]
    settings = ask(256 + 400, "gpt2", ties="first-seen", byte_order="value")
    ours = trained([text], settings)
    assert [(merge.left, merge.right) for merge in ours.merges] == minbpe(pieces, 400)


@pytest.mark.parametrize("pattern", [*PATTERNS, r"\p{L}+|.", None])
def test_encoding_the_training_text_gives_the_trained_tokens(pattern: str | None) -> None:
    texts = [text[:4000] for text in TEXTS] + ["".join(HARD_CHARACTERS * 3), "".join(HARD_PIECES)]
    ours = trained(texts, ask(900, pattern))
    encoding = bytepair_engine.train(texts, vocab_size=900, pattern=pattern)
    assert sum(len(encoding.encode_ordinary(text)) for text in texts) == ours.text_tokens
    assert encoding.token_byte_values() == sorted(ours.tokens)


def test_order_and_threads_do_not_matter() -> None:
    settings = ask(3000, "o200k_base")
    expected = trained(TEXTS, settings, threads=1)
    shuffled = random.Random(SEED).sample(TEXTS, len(TEXTS))
    assert trained(shuffled, settings, threads=5) == expected
    first_seen = ask(3000, "o200k_base", ties="first-seen")
    assert trained(TEXTS, first_seen, threads=5) == trained(TEXTS, first_seen, threads=1)


def test_counts_beyond_32_bits() -> None:
    counts = {"abab": 2**40, "ab": 3, "cd": 2**40}
    ours = merge_counts(counts_of(counts), ask(259, None))
    assert [(merge.count, ours.tokens[256 + i]) for i, merge in enumerate(ours.merges)] == [
        (2**41 + 3, b"ab"),
        (2**40, b"cd"),
        (2**40, b"abab"),
    ]


def test_train_rejects_invalid_arguments() -> None:
    with pytest.raises(TrainingError, match="no text to train on"):
        bytepair_engine.train([], vocab_size=300, pattern="gpt2")
    with pytest.raises(TrainingError, match="no text to train on"):
        bytepair_engine.train(["", ""], vocab_size=300, pattern=None, backend="reference")
    with pytest.raises(TrainingError, match="than can be counted"):
        bytepair_engine.train({"ab": 2**62, "abc": 2**62}, vocab_size=300, pattern=None)
    with pytest.raises(InvalidOption, match=r"from 258 .* to .*, not 257"):
        bytepair_engine.train(["a"], vocab_size=257, pattern=None, special_tokens=["x", "y"])
    with pytest.raises(InvalidOption, match=r"from 256 .* to .*, not -5"):
        bytepair_engine.train(["a"], vocab_size=-5, pattern=None)
    with pytest.raises(InvalidOption, match="given twice"):
        bytepair_engine.train(["a"], vocab_size=300, pattern=None, special_tokens=["x", "x"])
    with pytest.raises(InvalidOption, match="holds a lone surrogate"):
        bytepair_engine.train(["a"], vocab_size=300, pattern=None, special_tokens=["\udcff"])
    with pytest.raises(InvalidOption, match="is only white space"):
        bytepair_engine.train(["a"], vocab_size=300, pattern=None, special_tokens=[" \n"])
    with pytest.raises(InvalidOption, match=r"use \[text\]"):
        bytepair_engine.train("a text", vocab_size=300, pattern=None)
    with pytest.raises(VocabularyError, match="no split pattern has the name 'gpt7'"):
        bytepair_engine.train(["a"], vocab_size=300, pattern="gpt7")


def test_an_error_names_the_argument_of_a_wrong_type() -> None:
    train: Any = bytepair_engine.train
    valid = {"corpus": [], "vocab_size": 256, "pattern": None}
    more = "special_tokens", "min_frequency", "name", "progress", "threads", "memory_bytes"
    for option in (*valid, *more, "backend"):
        with pytest.raises(TypeError, match=f"^{option} must be "):
            train(**(valid | {option: 1.5}))
    for backend in ("native", "reference"):
        with pytest.raises(TypeError, match=r"^corpus: text 1 must be str, not NoneType"):
            train(**(valid | {"corpus": ["a", None], "backend": backend}))


@pytest.mark.parametrize(
    ("backend", "letters"), [("native", 10), ("native", 1 << 20), ("reference", 10)]
)
def test_train_names_the_text_with_a_lone_surrogate(backend: BackendName, letters: int) -> None:
    """Long texts are counted in parts."""
    corpus = ["a" * letters, "ab cd", f"é {'b' * letters}\ud800", "\udfff"]
    for pattern in "gpt2", None:
        with pytest.raises(InvalidUnicode) as found:
            bytepair_engine.train(corpus, vocab_size=300, pattern=pattern, backend=backend)
        assert (found.value.index, found.value.byte_offset) == (2, letters + 3)
        assert str(found.value) == f"text 2: lone surrogate at byte {letters + 3}"


@pytest.mark.parametrize("backend", ["native", "reference"])
def test_train_rejects_invalid_counts(backend: BackendName) -> None:
    for counts in ({"": 1}, {"a": -1}, {"a": 2**63}, {"a": 1.5}):
        with pytest.raises(InvalidOption, match=r"^corpus: "):
            bytepair_engine.train(counts, vocab_size=300, pattern=None, backend=backend)
    train: Any = bytepair_engine.train
    with pytest.raises(TypeError, match=r"^corpus: each pre-token must be str or bytes, not int$"):
        train({5: 1}, vocab_size=300, pattern=None, backend=backend)
    with pytest.raises(InvalidUnicode, match=r"^text 1: lone surrogate at byte 1$"):
        bytepair_engine.train({"b": 1, "a\ud800": 1}, vocab_size=300, pattern=None, backend=backend)


@pytest.mark.parametrize("backend", ["native", "reference"])
def test_counts_may_be_integers_of_numpy(backend: BackendName) -> None:
    counts: Any = {"aab": numpy.int64(3), "ba": numpy.uint8(0)}
    train = partial(bytepair_engine.train, vocab_size=258, pattern=None, backend=backend)
    assert train(counts).fingerprint == train({"aab": 3}).fingerprint
    with pytest.raises(InvalidOption, match=r"^corpus: np.float64\(3.0\) is not an integer"):
        train({"aab": numpy.float64(3)})


@pytest.mark.parametrize("backend", ["native", "reference"])
def test_a_training_without_further_pairs_has_fewer_tokens(backend: str) -> None:
    encoding = bytepair_engine.train(
        ["abc abc"],
        vocab_size=500,
        pattern=" ?[a-z]+",
        special_tokens=["<s>"],
        min_frequency=2,
        backend=backend,  # type: ignore[arg-type]
    )
    assert (encoding.n_vocab, encoding.special_tokens) == (259, {"<s>": 258})
    assert encoding.decode_single_token_bytes(257) == b"abc"


def test_an_exception_of_report_ends_the_training() -> None:
    def stop(progress: object) -> None:
        raise KeyError(progress)

    with pytest.raises(KeyError):
        bytepair_engine.train(TEXTS, vocab_size=1000, pattern="gpt2", progress=stop)
