"""Compare ids with tiktoken's on every code point in many surroundings, and on random hard strings.

    PYTHONPATH=tests python bench/engine/hard_strings.py [ENCODING…]

Every code point below U+30000, every tag and variation selector, and a sample of the rest stand
alone, doubled, and between letters, digits, spaces and apostrophes. Takes minutes. Ends with
status 1 if any id differs.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator

import bytepair_engine
from support.hard_text import HARD_CHARACTERS, HARD_PIECES
from support.oracle import oracle

SURROUNDINGS = [
    *("{}", "{0}{0}", "a{}b", "A{}B", " {} ", "1{}2", "\n{}\n", " {}a", "{}A", "a'{}", "'s{}"),
    *("{}'s", "!{}!", " {0}a{0} {0}", "\t{}\r"),
]
RANDOM_BATCHES = 60
STRINGS_IN_BATCH = 3000


def main() -> int:
    seed = 20261120
    different = compared = 0
    for name in sys.argv[1:] or bytepair_engine.list_encodings():
        encoding = bytepair_engine.get_encoding(name, backend="native")
        for batch in batches(random.Random(seed)):
            expected = oracle(name).encode_ordinary_batch(batch)
            ids = encoding.encode_batch(batch, disallowed_special=())
            wrong = [text for text, a, b in zip(batch, expected, ids, strict=True) if a != b]
            compared += len(batch)
            different += len(wrong)
            if wrong:
                print(f"{name}: {len(wrong)} strings differ, the shortest {min(wrong, key=len)!r}")
        print(f"{name}: {compared:,} strings so far, {different} differ", flush=True)
    return int(different > 0)


def batches(random_source: random.Random) -> Iterator[list[str]]:
    """All strings, in lists."""
    for surroundings in SURROUNDINGS:
        yield [surroundings.format(chr(code_point)) for code_point in code_points()]
    alphabet = HARD_CHARACTERS + HARD_PIECES
    for number in range(RANDOM_BATCHES):
        most = 12 if number % 2 else 90
        yield [
            "".join(random_source.choices(alphabet, k=random_source.randrange(1, most)))
            for _ in range(STRINGS_IN_BATCH)
        ]


def code_points() -> Iterator[int]:
    """See the module."""
    for code_point in range(0x110000):
        surrogate = 0xD800 <= code_point < 0xE000
        tag = 0xE0000 <= code_point < 0xE0200
        if not surrogate and (code_point < 0x30000 or tag or code_point % 4096 < 2):
            yield code_point


if __name__ == "__main__":
    sys.exit(main())
