"""Options, texts and output of the comparisons of vocabularies."""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from bytepair_engine import Encoding
from support.hard_text import every_character, random_texts

from bench.texts import corpora

SEED = 20261121
DOCUMENT = 2000


def parsed(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Parse the arguments of a comparison: names, and the number of texts."""
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only each N-th text")
    parser.add_argument("--random", type=int, default=20_000, help="how many random strings")
    return parser.parse_args()


def compare(
    name: str,
    encoding: Encoding,
    oracle: Any,
    differs: Callable[[Encoding, Any, str], bool],
    options: argparse.Namespace,
    *more: Iterable[str],
) -> int:
    """Compare all kinds of text, and print a line. Returns how many texts differ."""
    kinds = [
        list(documents())[:: options.every],
        list(code_points())[:: options.every],
        list(random_texts(random.Random(SEED), encoding.token_byte_values(), options.random)),
        *map(list, more),
    ]
    wrong = sum(differs(encoding, oracle, text) for kind in kinds for text in kind)
    counts = "".join(f"{len(kind):>11,}" for kind in kinds)
    print(f"{name:16}{encoding.backend:10}{counts}{wrong:>9}", flush=True)
    return wrong


def documents() -> Iterator[str]:
    for file in corpora():
        text = file.read_text(encoding="utf-8", errors="replace")
        yield from (text[i : i + DOCUMENT] for i in range(0, len(text), DOCUMENT))


def code_points() -> Iterator[str]:
    """Texts of sixteen code points, separated by lines so that no token spans two of them."""
    characters = every_character()
    for i in range(0, len(characters), 16):
        some = characters[i : i + 16]
        yield "\n".join(f"{c} a{c}b {c}{c}" for c in some)
        yield from (some if i < 0x3000 else ())
