"""Texts that tokenizers get wrong, and a generator of random ones."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache

import regex

#: Characters that the published split patterns distinguish: letters of each case class, marks,
#: numbers of each kind, every white space, apostrophes and contractions, joiners, U+FFFD.
HARD_CHARACTERS = [
    *"aAzZsStTdDmMlLrRvVeE019 \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f\x85\xa0'/.,-_|<>#$%\\\"",
    "\u2028", "\u2029", "\u3000", "\u1680", "\u200b", "\u200d", "\ufeff", "\u180e",
    "\u017f", "\u212a", "ı", "İ", "ß", "ǅ", "ʰ", "ª", "ñ", "n\u0303", "\u0301", "\u0903",
    "\u20dd", "²", "½", "Ⅷ", "٣", "१", "〇", "中", "の", "ア", "한", "ก", "ำ", "ع", "א",
    "\U0001f642", "\U0001f468\u200d\U0001f469", "\U0001f1e9", "\ufe0f", "\U00010400",
    "\ufffd", "\uffff", "\U0010ffff", "\x00", "\x7f", "’", "＇", "。", "￼",
]  # fmt: skip

#: Strings of several characters that are special cases of the patterns.
HARD_PIECES = [
    "'s", "'S", "'re", "'LL", "'ve", "'ſ", "don't", "DON'T", "O'Neil", "HTMLParser", "iPhone",
    "camelCaseID", "1234567", "12,345.67", "3.14e-10", "https://example.com/a?b=c#d", "/*", "//",
    "  \n", "\r\n", "\n\n\n", "\t\t", "   ", " \n ", "\n    return x", "<|endoftext|>",
    "<|im_start|>", "<|endoftext", "|>", "Việt", " Việt", "naïve", "Ελληνικά", "привет",
    "日本語のテキストです", "삼겹살", "\U0001f642\U0001f642", "e\u0301", "ก็", "नमस्ते",
]  # fmt: skip


def random_texts(rng: random.Random, tokens: list[bytes], number: int) -> Iterator[str]:
    """Yield random texts biased to hard cases.

    Args:
        rng: The random generator. The caller seeds it, and prints the seed.
        tokens: Tokens of a vocabulary. Concatenated at random, they only just merge.
        number: Number of texts.
    """
    decodable = [t.decode(errors="ignore") for t in rng.sample(tokens, min(2000, len(tokens)))]
    for _ in range(number):
        length = rng.choice([1, 2, 3, 5, 8, 20, 60])
        pool = rng.choice([HARD_CHARACTERS, HARD_PIECES, decodable, None])
        if pool is None:
            yield "".join(random_character(rng) for _ in range(length))
        else:
            mixed = [pool, pool, pool, HARD_CHARACTERS]
            yield "".join(rng.choice(rng.choice(mixed)) for _ in range(length))


def random_character(rng: random.Random) -> str:
    """Return any code point except surrogates."""
    code = rng.choice([rng.randrange(0x80), rng.randrange(0x3000), rng.randrange(0x110000)])
    return chr(code) if not 0xD800 <= code < 0xE000 else "\ufffd"


@cache
def every_character() -> list[str]:
    """Return every code point except surrogates."""
    return [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]


@cache
def text_of_every_character() -> str:
    """Return one text of every code point except surrogates, in their order."""
    return "".join(every_character())


@cache
def every_white_space() -> list[str]:
    """Return every code point with the property White_Space."""
    return regex.findall(r"\s", text_of_every_character())
