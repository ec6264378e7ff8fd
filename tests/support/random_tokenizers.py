"""Files tokenizer.json of random steps, made by `tokenizers`, which is the oracle of their ids."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from bytepair_engine.vocabulary.patterns import ONIGURUMA_SPELLINGS, PATTERNS
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from tokenizers import normalizers as norm

#: Characters that steps compose, map, insert, split at or make white space of.
LETTERS = [
    *("a", "b", "S", "s", "e", "K", "é", "e\u0301", "\u0301", "o\u0323\u0302", "\u0302", "ﬁ", "İ"),
    *(" ", " ", "  ", "\n", "\r\n", "\t", "\xa0", "\u3000", "▁", "_", "-", ",", ".", "/", "'"),
    *("1", "12", "²", "中", "\uf900", "か\u3099", "\u3099", "ガ", "\u1100\u1161", "\u11a8", "가"),
    *("\u0958", "\u093c", "\u2126", "<\u0338", "\u0338", "≮", "Α\u0345", "¨", "\u200b", "🙂"),
    *("'s", "foo", "ab", ", ", "a b"),
]

_BEHAVIOURS = ["isolated", "removed", "merged_with_previous", "merged_with_next", "contiguous"]
_NAMED = [
    *ONIGURUMA_SPELLINGS.values(),
    *(PATTERNS[name] for name in ("llama3", "qwen2", "o200k_base", "tekken")),
]


def vocabulary(
    rng: random.Random, letters: Sequence[str], size: int, *, in_bytes: bool
) -> Tokenizer:
    """Train a vocabulary on random text without any step, so that tokens extend across whatever
    steps do.

    Args:
        rng: The random generator.
        letters: What the text consists of.
        size: Maximum number of tokens.
        in_bytes: Whether merging starts from bytes. A step ByteLevel must be added then.
    """
    options: dict[str, Any] = {"ignore_merges": rng.random() < 0.2}
    if not in_bytes:
        options |= {"fuse_unk": rng.random() < 0.5, "byte_fallback": rng.random() < 0.5}
        options |= {"unk_token": "<unk>"} if rng.random() < 0.8 else {}
    tokenizer = Tokenizer(models.BPE(**options))
    if in_bytes:
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(False, use_regex=False)
        tokenizer.decoder = decoders.ByteLevel()
    corpus = ["".join(rng.choices(letters, k=3000)) for _ in range(3)]
    few = [letter for letter in ("a", "b", ",", " ", "é") if letter in letters]
    corpus += ["".join(rng.choices(few or letters, k=20)) for _ in range(100)]
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=["<unk>"],
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet() if in_bytes else [],
    )
    tokenizer.train_from_iterator(corpus, trainer)
    return tokenizer


def _normaliser(rng: random.Random) -> Any:
    text = rng.choice([" ", "▁", ",", "-", "a", "b", "_", "é", "S"])
    put = rng.choice([" ", "▁", "", "'", "\n", "xy", "e", "\u0301", "ab", "A", " a"])
    expression = rng.choice([r"\s", r"\s+", "[ab]", r"\b", "^", r"\p{M}"])
    makers: list[Any] = [
        *(norm.NFC, norm.NFC, norm.NFC, norm.NFD, norm.NFKC, norm.NFKD, norm.Lowercase),
        *[lambda: norm.Replace(text, put)] * 4,
        lambda: norm.Replace(Regex(expression), put),
        lambda: norm.Prepend(rng.choice(["▁", " ", "e", "'"])),
        lambda: norm.Strip(rng.random() < 0.7, rng.random() < 0.7),
        lambda: norm.BertNormalizer(*(rng.random() < 0.5 for _ in range(4))),
    ]
    return rng.choice(makers)()


def _pre_tokenizer(rng: random.Random) -> Any:
    pre = pre_tokenizers
    behaviour, inverted = rng.choice(_BEHAVIOURS), rng.random() < 0.3
    expression = rng.choice([r"\s", r"\d", "[,.]", r"\b", "^", "$", r"\w+|[^\w\s]+", r"\X", "."])
    mark = rng.choice(["▁", "▁", "_", "'", "s", "\u0301"])
    scheme = rng.choice(["always", "first", "never"])
    makers: list[Any] = [
        *[lambda: pre.Metaspace(mark, scheme, rng.random() < 0.4)] * 3,
        lambda: pre.Digits(rng.random() < 0.5),
        lambda: pre.Punctuation(behaviour),
        *(pre.Whitespace, pre.WhitespaceSplit, pre.BertPreTokenizer),
        lambda: pre.Split(rng.choice([" ", ",", "é", "a", "▁"]), behaviour, inverted),
        lambda: pre.Split(Regex(expression), behaviour, inverted),
        lambda: pre.Split(Regex(rng.choice(_NAMED)), "isolated"),
    ]
    return rng.choice(makers)()


def random_tokenizer(rng: random.Random) -> Tokenizer:
    """Make a vocabulary with random steps."""
    in_bytes = rng.random() < 0.7
    tokenizer = vocabulary(rng, LETTERS, rng.choice([300, 450]), in_bytes=in_bytes)
    steps = [_normaliser(rng) for _ in range(rng.choice([0, 0, 1, 1, 2, 3]))]
    if steps:
        tokenizer.normalizer = norm.Sequence(steps)
    splits = [_pre_tokenizer(rng) for _ in range(rng.choice([0, 0, 1, 1, 2]))]
    if in_bytes:
        is_named = rng.random() < 0.4
        if is_named:
            splits.append(pre_tokenizers.Split(Regex(rng.choice(_NAMED)), "isolated"))
        at = len(splits) if rng.random() < 0.9 else 0
        prefix = rng.random() < 0.3
        splits.insert(at, pre_tokenizers.ByteLevel(prefix, use_regex=not is_named))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(splits)
    if rng.random() < 0.4:
        content = rng.choice(["foo", "ab", "a b", ", ", "'s", "é", "e\u0301", "▁a", "\n"])
        names = ["single_word", "lstrip", "rstrip", "normalized"]
        token = AddedToken(content, **{name: rng.random() < 0.3 for name in names})
        tokenizer.add_tokens([token])
    return tokenizer


def random_text(rng: random.Random, parts: int) -> str:
    """Return text of at most this number of parts, in half of the cases of few different ones."""
    pool = rng.choice([LETTERS, rng.choices(LETTERS, k=5)])
    return "".join(rng.choices(pool, k=rng.randrange(parts + 1)))
