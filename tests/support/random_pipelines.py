"""Pipelines of random steps and settings."""

from __future__ import annotations

import random
from typing import Any

from bytepair_engine.pipeline.definition import (
    AddedToken,
    Behaviour,
    ByteAlphabet,
    CharsMap,
    Decoder,
    Lowercase,
    Merges,
    Model,
    Normaliser,
    Pipeline,
    Prefix,
    Prepend,
    PreTokenizer,
    Ranks,
    Replace,
    Scores,
    Spacing,
    Split,
    Strip,
    Substitute,
    Surround,
    UnicodeForm,
)

from support.sentencepiece_models import character_map

LETTERS = [*"aAbB1 _.é", "▁", "日", "e\u0301", "①", "\u0301", "\u1100\u1161\u11a8", "\U0001f642"]
NAMES = ["<s>", "ab", " b", "É", "a", "\n"]
BEHAVIOURS: list[Behaviour] = [
    "isolated",
    "removed",
    "merged_with_previous",
    "merged_with_next",
    "contiguous",
]


def normaliser(rng: random.Random) -> Normaliser:
    makers: list[Any] = [
        lambda: UnicodeForm(rng.choice(["NFC", "NFD", "NFKC", "NFKD"])),
        Lowercase,
        lambda: Prepend(rng.choice(["▁", "ab", "é "])),
        lambda: Replace(
            rng.choice([" ", "ab", r"\s+", "ab|é", r"[_.]"]), rng.choice(["▁", "", "é", "ab"])
        ),
        lambda: Surround(rng.choice(["a", "[日①]", r"\s+", "ab|é"]), rng.choice([" ", "▁b"])),
        lambda: Strip(rng.random() < 0.7, rng.random() < 0.5),
        lambda: CharsMap(character_map()),
        lambda: Spacing(
            rng.choice([b"", character_map()]),
            rng.choice([(), ("ab", "  b"), ("①",)]),
            rng.random() < 0.5,
            rng.choice(["before", "after", "nowhere"]),
            rng.choice(["▁", " "]),
        ),
    ]
    made: Normaliser = rng.choice(makers)()
    return made


def normalisers(rng: random.Random) -> tuple[Normaliser, ...]:
    """At most one normaliser puts a space after a text."""
    steps = [normaliser(rng) for _ in range(rng.randrange(4))]
    spacing = [step for step in steps if isinstance(step, Spacing)]
    return tuple(step for step in steps if step not in spacing[1:])


def pre_tokenizer(rng: random.Random) -> PreTokenizer:
    makers: list[Any] = [
        lambda: Split(
            rng.choice([" ", r"\w+", r"\s", r"\p{N}", "a|日"]),
            rng.choice(BEHAVIOURS),
            rng.random() < 0.3,
        ),
        lambda: Substitute(*rng.choice([(" ", "▁"), ("a", "é"), ("日", "b")])),
        lambda: Prefix(rng.choice("▁ a"), rng.random() < 0.6),
    ]
    made: PreTokenizer = rng.choice(makers)()
    return made


def model(rng: random.Random, units: Any) -> Model:
    """Most letters are tokens, and some pairs of tokens are."""
    tokens: dict[bytes, int] = {}
    for letter in "".join(LETTERS):
        data = letter.encode()
        parts = [data] if units == "characters" else [bytes([byte]) for byte in data]
        for part in parts:
            if rng.random() < 0.9:
                tokens.setdefault(part, len(tokens) + 300)
    for _ in range(rng.randrange(25)):
        left, right = rng.choice([*tokens]), rng.choice([*tokens])
        tokens.setdefault(left + right, len(tokens) + 300)
    rule: Any = Ranks()
    kind = rng.randrange(3)
    if kind == 0:
        pairs = [(a, b) for a in tokens for b in tokens if a + b in tokens]
        pairs = rng.sample(pairs, rng.randrange(len(pairs) + 1))
        rule = Merges.listed(
            [tokens[a] for a, _ in pairs],
            [tokens[b] for _, b in pairs],
            [tokens[a + b] for a, b in pairs],
        )
    elif kind == 1 and units == "characters":
        rule = Scores({i: float(rng.randrange(4)) for i in tokens.values()})
    affixed = rng.random() < 0.2 and kind != 1
    return Model(
        tokens=tokens,
        rule=rule,
        units=units,
        whole_first=rng.random() < 0.3,
        byte_tokens={b: b for b in range(256) if b < 128 or rng.random() < 0.9}
        if rng.random() < 0.5
        else {},
        unknown=rng.choice([None, 256, 300]),
        fuse_unknown=rng.random() < 0.5,
        prefix="a" if affixed else "",
        suffix="b" if affixed else "",
    )


def random_pipeline(rng: random.Random) -> Pipeline:
    units = rng.choice(["bytes", "characters"])
    steps = [pre_tokenizer(rng) for _ in range(rng.randrange(4))]
    if units == "bytes" and steps and rng.random() < 0.4:
        # The steps after it see bytes as characters, and add only such characters.
        after = [step for step in steps if isinstance(step, Split)]
        steps = [*steps, ByteAlphabet(), *after] if after else steps
    made = model(rng, units)
    spellings = {i: token for token, i in made.tokens.items()} | dict.fromkeys(range(300), b"?")
    added = {
        (name, normalised): AddedToken(
            content=name,
            id=400 + i,
            special=rng.random() < 0.5,
            name=name,
            left_strip=rng.random() < 0.3,
            right_strip=rng.random() < 0.3,
            single_word=rng.random() < 0.2,
            normalised=normalised,
        )
        for i, name in enumerate(rng.sample(NAMES, rng.randrange(4)))
        for normalised in (rng.random() < 0.5,)
    }
    return Pipeline(
        model=made,
        decoder=Decoder(middle=spellings | {token.id: b"!" for token in added.values()}),
        normalisers=normalisers(rng),
        pre_tokenizers=tuple(steps),
        added=tuple(added.values()),
    )


def random_merge_list(rng: random.Random, pattern: str, *, longest: int = 6) -> Pipeline:
    """Return bytes, tokens merged from earlier ones, and merges for most of them, mostly in the
    order of their ids.

    Args:
        rng: The random generator.
        pattern: The split pattern.
        longest: Maximum length of a token in bytes.
    """
    tokens = {bytes([byte]): byte for byte in range(256)}
    letters = [b"a", b"b", b"c"]
    pairs: list[tuple[bytes, bytes]] = []
    for _ in range(rng.randrange(1, 8)):
        left, right = rng.choice(letters), rng.choice(letters)
        if left + right not in tokens and len(left + right) <= longest:
            tokens[left + right] = len(tokens)
            letters.append(left + right)
            if rng.random() < 0.9:
                pairs.append((left, right))
            if rng.random() < 0.2:  # another merge of the same token
                cut = rng.randrange(1, len(left + right))
                halves = (left + right)[:cut], (left + right)[cut:]
                if all(half in tokens for half in halves) and halves not in pairs:
                    pairs.insert(len(pairs) - rng.randrange(2), halves)
    if rng.random() < 0.2:
        rng.shuffle(pairs)
    return Pipeline(
        pre_tokenizers=(Split(pattern),),
        model=Model(
            tokens=tokens,
            rule=Merges.listed(
                [tokens[left] for left, _ in pairs],
                [tokens[right] for _, right in pairs],
                [tokens[left + right] for left, right in pairs],
            ),
            units="bytes",
            whole_first=rng.random() < 0.5,
        ),
        decoder=Decoder(middle={i: token for token, i in tokens.items()}),
    )
