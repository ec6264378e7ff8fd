"""Compare ids with tiktoken's on short strings that are hard to split, one by one.

    make exactness-hard                              every built-in encoding
    make exactness-hard ENCODINGS="cl100k_base"      some of them

- Every code point but surrogates alone and doubled; those below U+30000, every tag and variation
  selector and a sample of the rest also between letters, digits, spaces and apostrophes.
- Every string of one to four characters of an alphabet that has one, at least, of each kind that a
  published pattern can tell apart.
- Hard strings behind 0 to 130 characters of other text, so that they lie in every way across the
  blocks of 64 bytes that the core's scanners look at.
- Random hard strings.

Prints a line for each kind and encoding as it is done. Ends with status 1 if any id differs.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterator
from itertools import chain, product

import bytepair_engine
from support.hard_text import HARD_CHARACTERS, HARD_PIECES
from support.oracle import oracle

SEED = 20261120
SURROUNDINGS = [
    *("a{}b", "A{}B", " {} ", "1{}2", "\n{}\n", " {}a", "{}A", "a'{}", "'s{}"),
    *("{}'s", "!{}!", " {0}a{0} {0}", "\t{}\r", "\U0001f642{}\U0001f643"),
]
ALPHABET = "aAs\u017fǅʰ中の\u03011² \n\r\t\u00a0\u3000'/._\0\u200d\U0001f642"
FILLERS = ["a", "A", " x", "é", "中", "1", " ", "\n", ".", "a'"]
MAX_SHIFT = 130
RANDOM_STRINGS = 180_000


def main() -> int:
    """Compare all kinds for all encodings."""
    different = 0
    for name in sys.argv[1:] or bytepair_engine.list_encodings():
        encode = bytepair_engine.get_encoding(name, backend="native").encode_ordinary
        expect = oracle(name).encode_ordinary
        for kind, strings in kinds().items():
            start, compared, wrong = time.monotonic(), 0, []
            for text in strings:
                compared += 1
                if encode(text) != expect(text):
                    wrong.append(text)
            different += len(wrong)
            seconds = time.monotonic() - start
            print(
                f"{name:15}{kind:24}{compared:>10,} strings, {len(wrong)} differ, {seconds:.0f} s"
            )
            if wrong:
                print(f"the shortest that differs: {min(wrong, key=len)!r}")
            sys.stdout.flush()
    return int(different > 0)


def kinds() -> dict[str, Iterator[str]]:
    """Return the strings of each kind; see the module."""
    return {
        "code points": code_points(),
        "in surroundings": in_surroundings(),
        "all short strings": short_strings(),
        "at every alignment": at_every_alignment(),
        "random": random_strings(random.Random(SEED)),
    }


def code_points() -> Iterator[str]:
    """Yield each code point alone, and doubled."""
    for code_point in chain(range(0xD800), range(0xE000, 0x110000)):
        yield chr(code_point)
        yield chr(code_point) * 2


def in_surroundings() -> Iterator[str]:
    """Yield assigned code points, tags and a few others, each between other characters."""
    for code_point in chain(range(0xD800), range(0xE000, 0x110000)):
        tag = 0xE0000 <= code_point < 0xE0200
        if code_point < 0x30000 or tag or code_point % 4096 < 2:
            for surroundings in SURROUNDINGS:
                yield surroundings.format(chr(code_point))


def short_strings() -> Iterator[str]:
    """Yield all strings of up to four characters of the alphabet."""
    for length in range(1, 5):
        yield from map("".join, product(ALPHABET, repeat=length))


def at_every_alignment() -> Iterator[str]:
    """Yield hard strings after fillers of every length."""
    for shift, filler in product(range(MAX_SHIFT), FILLERS):
        for index, hard in enumerate(HARD_PIECES):
            yield filler * shift + hard + HARD_CHARACTERS[(shift + index) % len(HARD_CHARACTERS)]


def random_strings(rng: random.Random) -> Iterator[str]:
    """Yield random strings of up to 90 hard characters and pieces."""
    alphabet = HARD_CHARACTERS + HARD_PIECES
    for number in range(RANDOM_STRINGS):
        yield "".join(rng.choices(alphabet, k=rng.randrange(1, 12 if number % 2 else 90)))


if __name__ == "__main__":
    sys.exit(main())
