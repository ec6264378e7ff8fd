"""Random split patterns, from a grammar of the syntax that the regex engine may support."""

from __future__ import annotations

import random
from typing import Final

ATOMS: Final[list[str]] = [
    *"aabbcABKx1 ", "é", "中", "'", r"\n", r"\s", r"\S", r"\d", r"\w", r"\W", r"\p{L}", r"\p{Lu}",
    r"\p{N}", r"\P{L}", ".", ".", "[ab]", "[^ab]", "[a-c]", r"[^\s\p{L}]", r"[\p{L}\p{M}]",
    r"[\r\n]", r"\p{Han}", "[^a]", "ab",
]  # fmt: skip
ASSERTIONS: Final = ["^", "$", r"\A", r"\Z", r"\b", r"\B"]
LOOKBEHINDS: Final = ["a", "[ab]", "ab", "a|bc", r"\s", r"\w{2}", "", "(?:a|b)c"]
QUANTIFIERS: Final = [
    "?", "*", "+", "{2}", "{1,3}", "{0,2}", "{2,}", "*?", "+?", "??", "?+", "*+", "++",
    "{1,2}+", "{1,3}?",
]  # fmt: skip


def random_pattern(rng: random.Random) -> str:
    """Return a pattern of one line. `regex` or the engine may reject it."""
    start = rng.choice(["(?i)", "(?s)", "(?m)"]) if rng.random() < 0.1 else ""
    return start + _alternatives(rng, rng.randrange(1, 5))


def _alternatives(rng: random.Random, depth: int) -> str:
    return "|".join(_item(rng, depth) for _ in range(rng.randrange(1, 4)))


def _item(rng: random.Random, depth: int) -> str:
    chance = rng.random()
    if depth == 0 or chance < 0.3:
        return rng.choice(ATOMS)
    depth -= 1
    if chance < 0.5:
        return "".join(_quantified(rng, depth) for _ in range(rng.randrange(1, 5)))
    if chance < 0.65:
        branches = [_item(rng, depth) if rng.random() < 0.9 else "" for _ in range(3)]
        return "(?:" + "|".join(branches) + ")"
    if chance < 0.70:
        return rng.choice(["(?=", "(?!", "(?>"]) + _alternatives(rng, depth) + ")"
    if chance < 0.73:
        return rng.choice(["(?<=", "(?<!"]) + rng.choice(LOOKBEHINDS) + ")"
    if chance < 0.77:
        return rng.choice(ASSERTIONS)
    if chance < 0.80:
        flags = rng.choice(["(?i:", "(?s:", "(?m:", "(?im:", "(?i-s:"])
        return flags + _alternatives(rng, depth) + ")"
    return _quantified(rng, depth)


def _quantified(rng: random.Random, depth: int) -> str:
    item = _item(rng, depth)
    if rng.random() < 0.6:
        return item
    return (item if item in ATOMS and item != "ab" else f"(?:{item})") + rng.choice(QUANTIFIERS)
