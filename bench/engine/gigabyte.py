"""Compare ids with tiktoken's on a gigabyte of random texts, for each built-in encoding.

    make exactness-1gb                                              every encoding: half an hour
    PYTHONPATH=tests:. python -m bench.engine.gigabyte NAME…          some of them
    PYTHONPATH=tests:. python -m bench.engine.gigabyte --megabytes 50 less of it

Documents of about a megabyte, made in turns from

- slices of the corpora, from one character to some thousands, cut anywhere and glued together;
- the words of the corpora in random order, with random separators, now and then changed;
- tokens of the vocabulary, glued: the texts that only just merge;
- hard characters and pieces, at which the split patterns decide;
- code points of all planes, in runs of one script and mixed.

Without corpora the last three kinds make up all of it. For each document the ids, their number, the
number's limits and the decoded text are compared. Every document is determined by the seed, the
encoding and its number. Ends with status 1 at the first that differs.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections.abc import Callable

import bytepair_engine
from bytepair_engine import Encoding
from support.hard_text import HARD_CHARACTERS, HARD_PIECES
from support.oracle import oracle

from bench.texts import corpora

SEPARATORS = [" "] * 12 + [
    "",
    "\n",
    "\n\n",
    "  ",
    ", ",
    ". ",
    "-",
    "_",
    "/",
    "'",
    '"',
    "\t",
    "\u3000",
]
DOCUMENT_CHARACTERS = 600_000
REPORT_BYTES = 100_000_000
THREADS = 3

Make = Callable[[random.Random], str]


def main() -> int:
    """Compare, and print the progress."""
    names = bytepair_engine.list_encodings()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(names))
    parser.add_argument("--megabytes", type=int, default=1000, help="for each encoding")
    parser.add_argument("--seed", type=int, default=20261121)
    arguments = parser.parse_args()
    texts = [file.read_text(encoding="utf-8") for file in corpora()]
    print(f"seed {arguments.seed}, {len(texts)} corpora, {os.cpu_count()} cores", flush=True)
    for name in arguments.names or names:
        # With several threads, so that the chunks of large texts are compared too, on any machine.
        encoding = bytepair_engine.get_encoding(name, backend="native", threads=THREADS)
        kinds = kinds_of(encoding, texts)
        start, done, tokens, number, reported = time.monotonic(), 0, 0, 0, 0
        while done < arguments.megabytes * 1_000_000:
            text = document(kinds, f"{arguments.seed} {name} {number}", number)
            expected = oracle(name).encode_ordinary(text)
            if problem := difference(encoding, text, expected):
                kind = number % len(kinds)
                print(f"{name}: document {number}, of kind {kind}: {problem}")
                return 1
            done, tokens, number = done + len(text.encode()), tokens + len(expected), number + 1
            if done - reported >= REPORT_BYTES:
                reported = done
                print(f"{name}: {done:,} bytes in {time.monotonic() - start:.0f} s", flush=True)
        print(f"{name}: {number:,} documents, {done:,} bytes, {tokens:,} ids, all the same")
    return 0


def difference(encoding: Encoding, text: str, expected: list[int]) -> str | None:
    """Return what differs from the oracle's result; None if nothing does."""
    ids = encoding.encode_ordinary(text)
    if ids != expected:
        same = next(
            i for i, pair in enumerate(zip(ids, expected, strict=False)) if len({*pair}) > 1
        )
        around = encoding.decode(expected[max(0, same - 5) : same + 5])
        return f"the ids differ from the one at {same} on, near {around!r}"
    many = len(expected)
    for limit, right in ((None, many), (many, many), (many - 1, many), (many // 2, many // 2 + 1)):
        count = encoding.count(text, limit=limit, disallowed_special=())
        if count != right:
            return f"the count with limit {limit} is {count}, not {right}"
    return None if encoding.decode(ids) == text else "the text does not come back"


def document(kinds: list[Make], seed: str, number: int) -> str:
    """Return the document with this number."""
    rng = random.Random(seed)
    make = kinds[number % len(kinds)]
    parts, length = [], 0
    while length < DOCUMENT_CHARACTERS:
        parts.append(make(rng))
        length += len(parts[-1])
    return "".join(parts)


def kinds_of(encoding: Encoding, texts: list[str]) -> list[Make]:
    """Return the kinds of text; see the module."""
    decoded = [token.decode(errors="ignore") for token in encoding.token_byte_values()]
    scripts = list(range(0, 0xD800, 128)) + list(range(0xE000, 0x32000, 128))
    kinds: list[Make] = []
    if texts:
        words = [text.split() for text in texts]
        kinds += [
            lambda rng: _slices(rng, texts),
            lambda rng: _shuffled(rng, rng.choice(words)),
            lambda rng: _shuffled(
                rng, [word for some in words for word in rng.choices(some, k=200)]
            ),
        ]
    return [
        *kinds,
        lambda rng: "".join(rng.choices(rng.sample(decoded, rng.choice([5, 3000])), k=5_000)),
        lambda rng: "".join(rng.choices(_hard(rng), k=rng.choice([20, 2_000]))),
        lambda rng: "".join(map(chr, rng.choices(_code_points(rng, scripts), k=300))),
    ]


def _slices(rng: random.Random, texts: list[str]) -> str:
    text = rng.choice(texts)
    start = rng.randrange(len(text))
    return text[start : start + int(10 ** rng.uniform(0, 3.7))]


def _shuffled(rng: random.Random, words: list[str]) -> str:
    chosen = rng.choices(words, k=2_000)
    for _ in range(100):
        index = rng.randrange(len(chosen))
        word = chosen[index]
        cut = rng.randrange(len(word) + 1)
        change = (word.upper(), word.title(), word[::-1], word[:cut], word[:cut] + "'" + word[cut:])
        chosen[index] = rng.choice(change)
    separators = rng.choices(SEPARATORS, k=len(chosen))
    return "".join(part for pair in zip(chosen, separators, strict=True) for part in pair)


def _hard(rng: random.Random) -> list[str]:
    alphabet = HARD_CHARACTERS + HARD_PIECES
    return rng.sample(alphabet, rng.choice([2, 4, 12, len(alphabet)]))


def _code_points(rng: random.Random, scripts: list[int]) -> list[int]:
    """Return random code points of a few blocks, or of all; no surrogates."""
    if rng.random() < 0.2:
        code_points = (rng.randrange(0x110000) for _ in range(300))
        return [c for c in code_points if not 0xD800 <= c < 0xE000] + [32, 10]
    blocks = rng.sample(scripts, rng.choice([1, 1, 2, 6]))
    return [c for block in blocks for c in range(block, block + 128)] + [32] * 20 + [10]


if __name__ == "__main__":
    sys.exit(main())
