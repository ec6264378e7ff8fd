r"""The definition of training: byte-pair merges in plain Python, written to be read.

Let W be the *pre-tokens* of a corpus: its texts, split by the pattern, each a sequence of bytes.
Every byte is a token. Training repeats two steps.

1. Count every pair of adjacent tokens in W, overlapping occurrences too; nothing is adjacent
   across the end of a pre-token, so nothing merges across two of them, or across two texts.
2. Take the pair of the greatest count, by the tie rule if there are several. What the two make
   is a token and has the next id. In every pre-token, from left to right, replace the pair by it.

It ends when there are enough tokens, or when no pair stands often enough.

No two tokens have the same bytes, and encoding by the table gives every pre-token the tokens that
training left it with: both are proven below.

A pre-token that stands n times is counted once with weight n: pairs within equal pre-tokens are
equal, and stay so.

>>> merges = train_reference({b"aaab": 2, b"ab": 1}, tokens=258, byte_order=bytes(range(256)))
>>> [(merge.left, merge.right, merge.count) for merge in merges]
[(97, 97, 4), (97, 98, 3)]

Sources: P. Gage, "A New Algorithm for Data Compression" (1994); R. Sennrich, B. Haddow, A. Birch,
"Neural Machine Translation of Rare Words with Subword Units" (2016).

No token is made twice. If two different pairs could make the same bytes, "a"+"bc" and "ab"+"c", a
table would lose a token. It cannot happen.

*Lemma.* Let t be a byte string, and let an occurrence of t in a pre-token have ends that no
token crosses after step s. Then its tokens after step s are those that t would have after step s
if it were a pre-token by itself.

*Proof.* By induction over the steps. No token crossed them before, since tokens only grow.
A step replaces one pair from left to right. Outside a run of equal tokens, occurrences of a pair
do not overlap, so those inside t are replaced in both cases alike. In a run x x x … the pairs are
taken two by two from its start. If a run reaches into t from the left, an even number of its
tokens stands before t, or a token would cross the end; so the pairs inside t are the same as
without what stands before. ∎

*Theorem.* No two tokens have the same bytes. *Proof.* By the lemma, wherever t becomes one token,
it does so in the step in which t by itself does, and by the pair that t by itself consists of
then. ∎

Encoding gives what training left. By a rank file, any two adjacent tokens merge whose bytes are a
token's, lowest rank first, then leftmost (docs/algorithms.md). Training merged certain pairs only,
in order. Both leave every pre-token with the same tokens.

*Proof.* Let S be what the steps up to rank r left of a pre-token.

- No two adjacent tokens of S make a token of rank r or less: by the lemma they would be one by
  now.
- So let q > r be the lowest rank that two adjacent ones make, and t its token. The steps between r
  and q find nothing in S, since a pair of theirs would make a token of lower rank. By the lemma,
  what makes up each such t is what makes up t by itself before step q: the pair of step q. So the
  rank rule merges that pair, and no other, as step q does.
- Nothing of lower rank comes up meanwhile: if t and its neighbour z made a token u of a rank below
  q, then u would have been one token before step q, by the lemma. ∎

Hence a table of ranks holds all that training found, and the merges of `tokenizer.json` are those
of training, in order.
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
        counts: How often each pre-token stands, in the order of first occurrence.
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
        stands: dict[tuple[int, int], int] = {}  # in the order of first occurrence
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
