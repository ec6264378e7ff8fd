r"""The definition of training: byte-pair merges in plain Python, written to be read.

Let W be the *pre-tokens* of a corpus: its texts, split by the pattern, each a sequence of bytes.
Every byte is a token. Training repeats two steps.

1. Count every pair of adjacent tokens in W, overlapping occurrences too; nothing is adjacent
   across the end of a pre-token, so nothing merges across two of them, or across two texts.
2. Take the pair of the greatest count, by the tie rule if there are several. What the two make
   is a token and has the next id. In every pre-token, from left to right, replace the pair by it.

It ends when there are enough tokens, or when no pair stands often enough.

No two tokens have the same bytes, and encoding by the table gives every pre-token the tokens that
training left it with: docs/training.md proves both.

A pre-token that stands n times is counted once with weight n: pairs within equal pre-tokens are
equal, and stay so.

>>> merges = train_reference({b"aaab": 2, b"ab": 1}, tokens=258, byte_order=bytes(range(256)))
>>> [(merge.left, merge.right, merge.count) for merge in merges]
[(97, 97, 4), (97, 98, 3)]

Sources: P. Gage, "A New Algorithm for Data Compression" (1994); R. Sennrich, B. Haddow, A. Birch,
"Neural Machine Translation of Rare Words with Subword Units" (2016).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal


@dataclass(frozen=True, slots=True)
class Merge:
    """One merge: two tokens, and how often they stood side by side."""

    left: int
    right: int
    count: int


def train_reference(
    counts: Mapping[bytes, int],
    *,
    tokens: int,
    byte_order: bytes,
    min_frequency: int = 1,
    ties: Literal["lowest", "first-seen"] = "lowest",
) -> list[Merge]:
    """Train.

    Args:
        counts: How often each pre-token stands, in the order of first sight.
        tokens: How many tokens there are to be, with the 256 bytes.
        byte_order: The bytes in the order of their ids.
        min_frequency: How often a pair must stand to be merged, from 1.
        ties: "lowest": of several pairs that of the lowest ids, left before right. "first-seen":
            the one that stands first.
    Returns:
        The merges in order; fewer than requested if no pair stands often enough.
    """
    words = [([byte_order.index(byte) for byte in word], n) for word, n in counts.items() if n]
    bytes_of = [bytes([byte]) for byte in byte_order]
    merges: list[Merge] = []
    while len(bytes_of) < tokens:
        stands: dict[tuple[int, int], int] = {}  # in the order of first sight
        for word, n in words:
            for pair in pairwise(word):
                stands[pair] = stands.get(pair, 0) + n
        if ties == "lowest":
            stands = dict(sorted(stands.items()))
        left, right = max(stands, key=lambda pair: stands[pair], default=(0, 0))
        count = stands.get((left, right), 0)
        if count < min_frequency:
            break
        token = len(bytes_of)
        bytes_of.append(bytes_of[left] + bytes_of[right])
        merges.append(Merge(left, right, count))
        words = [(replace(word, left, right, token), n) for word, n in words]
    return merges


def replace(word: Sequence[int], left: int, right: int, token: int) -> list[int]:
    """The word with every pair replaced, from left to right."""
    result: list[int] = []
    at = 0
    while at < len(word):
        if word[at : at + 2] == [left, right]:
            result.append(token)
            at += 2
        else:
            result.append(word[at])
            at += 1
    return result
