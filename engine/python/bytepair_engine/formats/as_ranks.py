"""Convert a pipeline to a rank table, a split pattern and special tokens if they are equivalent.

The encoding then runs like a built-in one, and has the same fingerprint as a rank file with this
content. The conversion is valid if merging by the list of pairs equals merging by rank for every
text; docs/formats.md proves the criterion that is checked here. A template is kept separately.
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

#: Maximum length of a token in bytes, which bounds the time for any file. With a longer token, the
#: answer is false.
_LONGEST: Final = 256

#: An implementation of `merges_by_rank`.
ByRank = Callable[[Mapping[bytes, int], Merges, bool], bool]


@dataclass(frozen=True, slots=True)
class RankParts:
    """A vocabulary that is a rank table.

    Attributes:
        items: Every ordinary token with its id, in order of ids.
        pattern: The split pattern.
        special_tokens: Spelling to id.
    """

    items: list[tuple[bytes, int]]
    pattern: str
    special_tokens: dict[str, int]


def rank_parts(pipeline: Pipeline, by_rank: ByRank | None = None) -> RankParts | None:
    """Convert a pipeline to a rank table.

    Args:
        pipeline: The pipeline.
        by_rank: An implementation of `merges_by_rank`; that function by default.
    Returns:
        The parts; None unless they are proven equivalent to the pipeline.
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
        return None  # building the pipeline's backend raises the error
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
    """Return the splits as one pattern; None if text is changed, or split in another way."""
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
    """Whether merging by a list is proven to equal merging by rank with whole pieces first.

    Args:
        ranks: Token to id, including every single byte.
        rule: The list of merges.
        whole_first: Whether the list, too, is used with whole pieces first.
    """
    if list(rule.results) != sorted(rule.results):
        return False  # the priorities are not in order of ranks
    listed = set(zip(rule.lefts, rule.rights, strict=True))
    for token in ranks:
        if len(token) > _LONGEST:
            return False
        if len(token) > 1:
            found = merge(token, ranks, until=2)
            if len(found) == 2 and (ranks[found[0]], ranks[found[1]]) not in listed:
                return False
            if len(found) > 2 and not whole_first:
                return False  # merging by rank makes this piece one token, the list does not
    return True
