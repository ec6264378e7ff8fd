"""Whether a form is what a rank table, a split pattern and special tokens say: then it runs as the
built-in encodings do, and has the fingerprint of the rank file of the same content.

The question is when merging by a list of pairs gives what merging by rank gives, for every text.
docs/formats.md proves the answer that is computed here. A template, which no rank file can say, is
kept beside the ranks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import regex

from bytepair_engine.patterns import COVERING
from bytepair_engine.pipeline.form import Form, Merges, Model, Ranks, Split
from bytepair_engine.reference import merge

_BYTES: Final = 256


@dataclass(frozen=True, slots=True)
class RankParts:
    """The parts of an encoding like the built-in ones.

    Attributes:
        items: Every ordinary token with its id.
        pattern: The split pattern.
        special_tokens: Spelling to id.
    """

    items: list[tuple[bytes, int]]
    pattern: str
    special_tokens: dict[str, int]


def rank_parts(form: Form) -> RankParts | None:
    """What a rank table would hold.

    Returns:
        The parts; None if it is not certain that they say the same as the form.
    """
    pattern = _pattern(form)
    model = form.model
    special = {token.name: token.id for token in form.added}
    ids = set(special.values())
    if pattern is None or model.units != "bytes" or model.prefix or model.suffix:
        return None
    if not all(
        token.special and not (token.left_strip or token.right_strip or token.single_word)
        for token in form.added
    ):
        return None
    ranks = {token: i for token, i in model.tokens.items() if i not in ids}
    hidden = [token for token, i in model.tokens.items() if i in ids]
    if model.whole_first and any(_may_be_a_piece(token, pattern) for token in hidden):
        return None
    if any(bytes([byte]) not in ranks for byte in range(_BYTES)):
        return None
    if not _decodes_to_itself(form, ranks, special) or not _merges_by_rank(model, ranks):
        return None
    return RankParts(sorted(ranks.items(), key=lambda item: item[1]), pattern, special)


def _pattern(form: Form) -> str | None:
    """The splits as one pattern; None if text is changed, or cut in another way."""
    if form.normalisers or not form.pre_tokenizers:
        return None
    lines = [
        step.pattern
        for step in form.pre_tokenizers
        if isinstance(step, Split) and step.behaviour == "isolated" and not step.inverted
    ]
    whole = len(lines) == len(form.pre_tokenizers) and not any("\n" in line for line in lines)
    return "\n".join(lines) if whole else None


def _may_be_a_piece(token: bytes, pattern: str) -> bool:
    """Whether splitting some text may give `token`. A pattern that covers every text gives its
    matches alone, and the published ones ask what follows a match at white space only."""
    text = token.decode(errors="replace")
    return (
        pattern not in COVERING
        or any(c.isspace() for c in text)
        or regex.fullmatch(pattern, text) is not None
    )


def _decodes_to_itself(form: Form, ranks: Mapping[bytes, int], special: Mapping[str, int]) -> bool:
    middle = form.decoder.middle
    return (
        form.decoder.is_plain
        and len(middle) == len(ranks) + len(set(special.values()))
        and all(middle[i] == token for token, i in ranks.items())
        and all(middle[i] == token.encode() for token, i in special.items())
    )


def _merges_by_rank(model: Model, ranks: Mapping[bytes, int]) -> bool:
    """Whether merging by `model.rule` is merging by rank, whole pieces first."""
    if isinstance(model.rule, Ranks):
        return model.whole_first
    if not isinstance(model.rule, Merges):
        return False
    pairs: dict[int, list[tuple[int, int]]] = defaultdict(list)
    last = -1
    for pair, (_, result) in sorted(model.rule.pairs.items(), key=lambda item: item[1]):
        if result < last:
            return False  # an earlier priority for a later rank
        last = result
        pairs[result].append(pair)
    last_pairs = _LastPairs(ranks)
    for token, token_id in sorted(ranks.items(), key=lambda item: item[1]):
        if len(token) > 1 and not last_pairs.add(token, token_id, pairs[token_id]):
            found = merge(token, ranks, until=2)
            reached = len(found) == 2
            if reached and (ranks[found[0]], ranks[found[1]]) not in pairs[token_id]:
                return False
            if not reached and not model.whole_first:
                return False  # a piece that is this token would be one token by rank
    return True


class _LastPairs:
    """Which pair each token is merged from by rank, found from the pairs of its halves.

    Tokens come in order of rank. One whose halves are both known, and come before it, is merged
    from them exactly if no merge of a lower rank joins the end of the left half, as it is by
    then, to the start of the right half, as it is by then.
    """

    def __init__(self, ranks: Mapping[bytes, int]) -> None:
        self._ranks = ranks
        self._spelling = {i: token for token, i in ranks.items()}
        self._bytes = {ranks[bytes([byte])] for byte in range(_BYTES)}
        self._halves: dict[int, tuple[int, int]] = {}

    def add(self, token: bytes, token_id: int, pairs: list[tuple[int, int]]) -> bool:
        """Whether one of `pairs` is certainly what `token` is merged from."""
        for left, right in pairs:
            if self._spelling[left] + self._spelling[right] == token and self._joins(
                left, right, token_id
            ):
                self._halves[token_id] = (left, right)
                return True
        return False

    def _joins(self, left: int, right: int, token_id: int) -> bool:
        for half in (left, right):
            if half not in self._bytes and not (half in self._halves and half < token_id):
                return False
        highest = token_id - 1
        while highest >= 0:
            # The parts beside the border while merges of rank `highest` are made: those on the
            # left are made before one across it, those on the right after.
            while left not in self._bytes and left > highest:
                left = self._halves[left][1]
            while right not in self._bytes and right >= highest:
                right = self._halves[right][0]
            lowest = max(
                0 if left in self._bytes else left, 0 if right in self._bytes else right + 1
            )
            across = self._ranks.get(self._spelling[left] + self._spelling[right])
            if across is not None and lowest <= across <= highest:
                return False
            highest = lowest - 1
        return True
