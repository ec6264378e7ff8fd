"""Texts that are slow to encode. Each is a repeated unit."""

from __future__ import annotations

import random

from bytepair_engine import Encoding

from support.hard_text import every_white_space

SEED = 20261120

SINGLE = {
    "one letter": "a",
    "one capital": "Z",
    "one mark of punctuation": "^",
    "underscores": "_",
    "full stops": ".",
    "apostrophes": "'",
    "slashes": "/",
    "digits": "1",
    "spaces": " ",
    "newlines": "\n",
    "carriage returns": "\r",
    "tabs": "\t",
    "no-break spaces": "\u00a0",
    "ideographic spaces": "\u3000",
    "combining marks": "\u0301",
    "joiners": "\u200d",
    "NULs": "\0",
    "日": "日",
    "ก": "ก",
    "one emoji": "\U0001f642",
    "private use": "\U0010fffd",
}
REPEATED = {
    "pairs of letters": "ab",
    "alternating case": "aA",
    "camel case": "Ab",
    "A中": "A中",
    "letters and digits": "a1b2c3d4e5f6g7h8",
    "letters and marks": "e\u0301",
    "letters and spaces": "x ",
    "letters and apostrophes": "'s",
    "letters and punctuation": "a.",
    "digits and punctuation": "1,",
    "space, newline": " \n",
    "newline, space": "\n \t",
    "CR LF": "\r\n",
    "blank lines": "\n\n    ",
    "punctuation, newline, slash": ".\n/",
    "and 123/": "and 123/",
    "日本語のテキストです": "日本語のテキストです",
    "numbers and letters of many scripts": "٣é٣ā٣ł٣Ɓ٣ǁ٣ȁ٣ɑ٣ʁ",
    "emoji and joiners": "\U0001f469\u200d\U0001f680",
    "flags": "\U0001f1e9\U0001f1ea",
    "alphabet": "abcdefghijklmnopqrstuvwxyz",
    "a mebibyte, then an x": " " * (1 << 20) + "x",
}
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def shapes(encoding: Encoding) -> dict[str, str]:
    """Return all texts by name. The last ones depend on the vocabulary and a seeded generator."""
    rng = random.Random(SEED)
    words = [t.decode() for t in encoding.token_byte_values() if t.isalpha() and t.isascii()]
    rng.shuffle(words)
    punctuation = '!"#$%&()*+,-.:;<=>?@[]^_`{|}~'
    return {
        **SINGLE,
        **REPEATED,
        "every white space": "".join(every_white_space()),
        "white space by chance": "".join(rng.choices(every_white_space(), k=100_000)),
        "letters by chance": "".join(rng.choices(LETTERS, k=200_000)),
        "letters of two kinds": "".join(rng.choices("ab", k=200_000)),
        "punctuation by chance": "".join(rng.choices(punctuation, k=200_000)),
        "digits by chance": "".join(rng.choices("0123456789", k=200_000)),
        "Han by chance": "".join(chr(rng.randrange(0x4E00, 0x9FA6)) for _ in range(99_999)),
        "Hangul by chance": "".join(chr(rng.randrange(0xAC00, 0xD7A4)) for _ in range(99_999)),
        "emoji by chance": "".join(chr(rng.randrange(0x1F300, 0x1F650)) for _ in range(99_999)),
        "tokens, no space": "".join(words),
        "tokens, no space, shuffled": "".join(rng.choices(words, k=200_000)),
        "long tokens, no last letter": "".join(word[:-1] for word in words if len(word) > 7),
        "long tokens, no first letter": "".join(word[1:] for word in words if len(word) > 7),
        "tokens that overlap": overlapping(words, rng),
        "tokens by rank, last first": by_rank(encoding, words),
    }


def overlapping(words: list[str], rng: random.Random) -> str:
    """Return tokens each of which starts with the end of the one before, so that two tokens compete
    for every pair of neighbours."""
    by_start: dict[str, list[str]] = {}
    for word in words:
        if len(word) >= 5:
            by_start.setdefault(word[:2], []).append(word)
    parts = [rng.choice(words)]
    for _ in range(40_000):
        nearest = by_start.get(parts[-1][-2:])
        parts.append(rng.choice(nearest)[2:] if nearest else rng.choice(words))
    return "".join(parts)


def by_rank(encoding: Encoding, words: list[str]) -> str:
    """Return tokens in descending order of rank: the worst order for an algorithm that merges the
    lowest rank of a window first."""
    ranked = sorted(words, key=encoding.encode_single_token, reverse=True)
    return "".join(ranked)
