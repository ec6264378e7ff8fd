r"""The reference of training: byte-pair merges in plain Python, written to be read.

Let W be the *pre-tokens* of a corpus: its texts, split by the pattern, each a sequence of bytes.
Every byte is a token. Training repeats two steps.

1. Count every pair of adjacent tokens in W, including overlapping occurrences. Tokens of different
   pre-tokens are not adjacent, so nothing merges across pre-tokens or texts.
2. Choose the pair with the highest count, by the tie rule if there are several. Its concatenation
   becomes a token with the next id. In every pre-token, from left to right, replace the pair by it.

It ends when there are enough tokens, or when no pair is frequent enough.

No two tokens have the same bytes, and encoding by the table yields the tokens that training left in
every pre-token: both are proven below.

A pre-token that occurs n times is counted once with weight n: the pairs within equal pre-tokens are
always equal.

>>> merges = train_reference({b"aaab": 2, b"ab": 1}, tokens=258, byte_order=bytes(range(256)))
>>> [(merge.left, merge.right, merge.count) for merge in merges]
[(97, 97, 4), (97, 98, 3)]

Sources: P. Gage, "A New Algorithm for Data Compression" (1994); R. Sennrich, B. Haddow, A. Birch,
"Neural Machine Translation of Rare Words with Subword Units" (2016).

No token is produced twice. If two different pairs could produce the same bytes, such as "a"+"bc"
and "ab"+"c", a table would lose a token. This cannot happen.

*Lemma.* Let t be a byte string, and let no token cross the ends of an occurrence of t in a
pre-token after step s. Then the tokens of the occurrence after step s are those that t would have
after step s if it were a pre-token.

*Proof.* By induction over the steps. No token crossed the ends before, because tokens only grow.
A step replaces one pair from left to right. Outside a run of equal tokens, occurrences of a pair
do not overlap, so those inside t are replaced in the same way in both cases. In a run x x x … the
pairs are replaced two by two from its start. If a run extends into t from the left, an even number
of its tokens comes before t, or a token would cross the end; so the pairs inside t are the same as
without the text before it. ∎

*Theorem.* No two tokens have the same bytes. *Proof.* By the lemma, wherever t becomes one token,
it does so in the same step as t alone, and from the pair that t alone consists of then. ∎

Encoding reproduces training. With a rank file, two adjacent tokens merge if their concatenation is
a token, lowest rank first, then leftmost (docs/algorithms.md). Training merged only certain pairs,
in order. Both leave every pre-token with the same tokens.

*Proof.* Let S be the tokens of a pre-token after the steps up to rank r.

- No two adjacent tokens of S make a token of rank r or less: by the lemma they would have become
  one token already.
- So let q > r be the lowest rank that two adjacent tokens make, and t its token. The steps between
  r and q find nothing in S, because their pair would make a token of lower rank. By the lemma, the
  parts of each such t are those of t alone before step q: the pair of step q. So the rank rule
  merges exactly that pair, as step q does.
- Nothing of lower rank arises meanwhile: if t and an adjacent token z made a token u of a rank
  below q, then u would have been one token before step q, by the lemma. ∎

Hence a table of ranks contains the complete result of training, and the merges of `tokenizer.json`
are those of training, in order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal


@dataclass(frozen=True, slots=True)
class Merge:
    """A merge: the ids of the two tokens, and the number of times they were adjacent."""

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
    """Train merges.

    Args:
        counts: Pre-token to count, in order of first occurrence.
        tokens: Number of tokens to reach, including the 256 bytes.
        byte_order: The bytes in the order of their ids.
        min_frequency: Minimum count of a pair to merge, at least 1.
        ties: The rule for pairs with equal counts. "lowest": the pair with the lowest ids, left
            before right. "first-seen": the pair that occurs first.
    Returns:
        The merges in order; fewer than requested if no pair is frequent enough.
    """
    words = [([byte_order.index(byte) for byte in word], n) for word, n in counts.items() if n]
    bytes_of = [bytes([byte]) for byte in byte_order]
    merges: list[Merge] = []
    while len(bytes_of) < tokens:
        pairs: dict[tuple[int, int], int] = {}  # counts, in order of first occurrence
        for word, n in words:
            for pair in pairwise(word):
                pairs[pair] = pairs.get(pair, 0) + n
        if ties == "lowest":
            pairs = dict(sorted(pairs.items()))
        left, right = max(pairs, key=lambda pair: pairs[pair], default=(0, 0))
        count = pairs.get((left, right), 0)
        if count < min_frequency:
            break
        token = len(bytes_of)
        bytes_of.append(bytes_of[left] + bytes_of[right])
        merges.append(Merge(left, right, count))
        words = [(replace(word, left, right, token), n) for word, n in words]
    return merges


def replace(word: Sequence[int], left: int, right: int, token: int) -> list[int]:
    """Replace every occurrence of a pair in a word, from left to right."""
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
