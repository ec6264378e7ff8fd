"""Whether a pipeline is what a rank table, a split pattern and special tokens say: then it runs as
the built-in encodings do, and has the fingerprint of the rank file of the same content.

The question is when merging by a list of pairs gives what merging by rank gives, for every text.
docs/formats.md proves the answer that is computed here. A template, which no rank file can say, is
kept beside the ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from bytepair_engine.backends.reference import merge
from bytepair_engine.errors import VocabularyError
from bytepair_engine.pipeline.definition import Merges, Pipeline, Ranks, Split
from bytepair_engine.pipeline.text_model import text_model

_BYTES: Final = 256

#: What answers `merges_by_rank`.
ByRank = Callable[[Mapping[bytes, int], Merges, bool], bool]


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


def rank_parts(pipeline: Pipeline, by_rank: ByRank | None = None) -> RankParts | None:
    """What a rank table would hold.

    Args:
        pipeline: The pipeline.
        by_rank: What answers `merges_by_rank`; that function by default.
    Returns:
        The parts; None if it is not certain that they say the same as the pipeline.
    """
    pattern = _pattern(pipeline)
    model = pipeline.model
    special = {token.name: token.id for token in pipeline.added}
    if pattern is None or model.units != "bytes" or model.prefix or model.suffix:
        return None
    if not all(
        token.special and not (token.left_strip or token.right_strip or token.single_word)
        for token in pipeline.added
    ):
        return None
    try:
        model = text_model(pipeline)
    except VocabularyError:
        return None  # and making a backend of the pipeline says why
    ranks = model.tokens
    if any(bytes([byte]) not in ranks for byte in range(_BYTES)):
        return None
    if not _decodes_to_itself(pipeline, ranks, special):
        return None
    if isinstance(model.rule, Merges):
        if not (by_rank or merges_by_rank)(ranks, model.rule, model.whole_first):
            return None
    elif not (isinstance(model.rule, Ranks) and model.whole_first):
        return None
    return RankParts(sorted(ranks.items(), key=lambda item: item[1]), pattern, special)


def _pattern(pipeline: Pipeline) -> str | None:
    """The splits as one pattern; None if text is changed, or cut in another way."""
    if pipeline.normalisers or not pipeline.pre_tokenizers:
        return None
    lines = [
        step.pattern
        for step in pipeline.pre_tokenizers
        if isinstance(step, Split) and step.behaviour == "isolated" and not step.inverted
    ]
    whole = len(lines) == len(pipeline.pre_tokenizers) and not any("\n" in line for line in lines)
    return "\n".join(lines) if whole else None


def _decodes_to_itself(
    pipeline: Pipeline, ranks: Mapping[bytes, int], special: Mapping[str, int]
) -> bool:
    middle = pipeline.decoder.middle
    return (
        pipeline.decoder.is_plain
        and len(middle) == len(ranks) + len(set(special.values()))
        and all(middle[i] == token for token, i in ranks.items())
        and all(middle[i] == token.encode() for token, i in special.items())
    )


def merges_by_rank(ranks: Mapping[bytes, int], rule: Merges, whole_first: bool) -> bool:
    """Whether it is certain that merging by a list is merging by rank, whole pieces first.

    Args:
        ranks: Token to id; every single byte is there.
        rule: The list.
        whole_first: Whether pieces that are a token are taken whole with the list, too.
    """
    if list(rule.results) != sorted(rule.results):
        return False  # an earlier priority for a later rank
    listed = set(zip(rule.lefts, rule.rights, strict=True))
    for token in ranks:
        if len(token) > 1:
            found = merge(token, ranks, until=2)
            if len(found) == 2 and (ranks[found[0]], ranks[found[1]]) not in listed:
                return False
            if len(found) > 2 and not whole_first:
                return False  # a piece that is this token would be one token by rank
    return True
