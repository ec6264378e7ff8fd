"""The model for ordinary text: that of a pipeline without the special tokens.

The model of a publisher may contain special tokens, and merges that produce them. For ordinary text
they are removed, so that it never becomes a special id. The ids thus differ from the publisher's
only if those contain a special id. A pipeline for which this cannot be guaranteed is rejected.

**Theorem.** Assume that no special token is a unit, and that no special token which merging
produces, or which replaces text without a token, is half of a merge to an ordinary token. Then the
ids of a piece are the same with and without the special tokens, unless the ids with them contain a
special id.

*Proof.* Assume that the ids with them contain no special id. Then the piece was not looked up as a
whole special token. Since nothing ordinary is merged from a special token, a special part remains
special until the end; so there never was one. So each merge also exists without the special tokens.
All merges without them are among those with them, so each was the best one there too. The units are
the same. ∎

A pipeline is also rejected if the model could produce a special token from text that does not spell
it after normalisation: if a step inserts one of its characters (such as the mark for a space), if
it starts with `prefix` or ends with `suffix`, or if its bytes are not its spelling.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from itertools import compress
from typing import Final, NoReturn

from bytepair_engine.errors import VocabularyError
from bytepair_engine.pipeline.definition import (
    MergeRule,
    Merges,
    Model,
    Normaliser,
    Pipeline,
    Prefix,
    Prepend,
    PreTokenizer,
    Ranks,
    Replace,
    Scores,
    Spacing,
    Substitute,
    Surround,
)

_REMEDY: Final = (
    "remove it from also_special if it is there, or use a vocabulary in which it is not special"
)


def text_model(pipeline: Pipeline) -> Model:
    """Return the model for ordinary text.

    Args:
        pipeline: The pipeline.
    Returns:
        The model without the special tokens and the merges that involve one; the same model if it
        contains none. `byte_tokens` and `unknown` stay even if special: they replace text without a
        token, and no text can produce them by spelling them.
    Raises:
        VocabularyError: The model may produce a special token from a single byte or character, from
            text that does not spell it, or as a part of an ordinary token. Removing it would change
            the ids of text that does not look like the token. The error's source is the token.
    """
    model = pipeline.model
    special = {token.id: token.name for token in pipeline.added if token.special}
    hidden = {token: i for token, i in model.tokens.items() if i in special}
    if not hidden:
        return model
    _check(pipeline, hidden, special)
    return replace(
        model,
        tokens={token: i for token, i in model.tokens.items() if i not in special},
        rule=_rule_without(model.rule, special.keys()),
    )


def _rule_without(rule: MergeRule, special: AbstractSet[int]) -> MergeRule:
    if isinstance(rule, Scores):
        return replace(rule, scores={i: s for i, s in rule.scores.items() if i not in special})
    if isinstance(rule, Ranks) or all(map(special.isdisjoint, _columns(rule))):
        return rule
    kept = [special.isdisjoint(row) for row in zip(*_columns(rule), strict=True)]
    return Merges(*(array("I", compress(c, kept)) for c in (rule.priorities, *_columns(rule))))


def _columns(rule: Merges) -> tuple[array[int], array[int], array[int]]:
    return rule.results, rule.lefts, rule.rights


def _check(pipeline: Pipeline, hidden: Mapping[bytes, int], special: Mapping[int, str]) -> None:
    model = pipeline.model
    if isinstance(model.rule, Merges):
        merged, halves = _listed(model.rule, special.keys())
    else:
        merged, halves = _concatenated(model, hidden)
    fallbacks = {model.unknown, *model.byte_tokens.values()}
    for token, token_id in hidden.items():
        name = special[token_id]
        if _is_unit(model, token):
            _reject(name, "it is a single byte or character, so text could no longer contain it")
        if token_id in halves and (token_id in merged or token_id in fallbacks):
            _reject(name, "an ordinary token is merged from it, so ordinary text needs it")
        if (token_id in merged or model.whole_first) and not _is_spelled(pipeline, token, name):
            _reject(name, "the model may produce it from text that does not spell it")


def _is_unit(model: Model, token: bytes) -> bool:
    """Whether `token` may be a single unit of some piece."""
    prefix, suffix = model.prefix.encode(), model.suffix.encode()
    bodies = {token, token.removeprefix(prefix)}
    bodies |= {body.removesuffix(suffix) for body in bodies}
    if model.units == "bytes":
        return any(len(body) == 1 for body in bodies)
    return any(len(body.decode()) == 1 for body in bodies)


def _is_spelled(pipeline: Pipeline, token: bytes, name: str) -> bool:
    """Whether only text that spells `token` after normalisation can become it: no step inserts one
    of its characters, such as the mark for a space or for the end of a word."""
    prefix, suffix = pipeline.model.prefix, pipeline.model.suffix
    if (prefix and name.startswith(prefix)) or (suffix and name.endswith(suffix)):
        return False
    steps = (*pipeline.normalisers, *pipeline.pre_tokenizers)
    inserted = {character for step in steps for character in _inserted(step)}
    return token == name.encode() and inserted.isdisjoint(name)


def _inserted(step: Normaliser | PreTokenizer) -> str:
    match step:
        case Prepend(text):
            return text
        case Replace(_, content) | Surround(_, content):
            return content
        case Spacing(mark=mark):
            return mark
        case Substitute(_, new):
            return new
        case Prefix(character):
            return character
    return ""


def _listed(rule: Merges, special: AbstractSet[int]) -> tuple[set[int], set[int]]:
    """Return the special tokens that merges produce, and those that are a half of a merge to an
    ordinary token."""
    merged = set(rule.results) & special
    if special.isdisjoint(rule.lefts) and special.isdisjoint(rule.rights):
        return merged, set()
    rows = zip(*_columns(rule), strict=True)
    return merged, {
        half
        for result, left, right in rows
        if result not in special
        for half in (left, right)
        if half in special
    }


def _concatenated(model: Model, hidden: Mapping[bytes, int]) -> tuple[set[int], set[int]]:
    """Return the same as `_listed`, for rules that merge if the concatenation is a token."""
    merged = {i for token, i in hidden.items() if any(_halves(model, token))}
    ends = tuple(hidden)
    longer = (
        token
        for token in model.tokens
        if token not in hidden and (token.startswith(ends) or token.endswith(ends))
    )
    pairs = (pair for token in longer for pair in _halves(model, token))
    return merged, {hidden[half] for pair in pairs for half in pair if half in hidden}


def _halves(model: Model, token: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield all pairs of parts that may merge to `token`; some of them may be impossible."""
    scores = model.rule.scores if isinstance(model.rule, Scores) else None
    if scores is not None and model.tokens[token] not in scores:
        return
    for cut in range(1, len(token)):
        pair = token[:cut], token[cut:]
        # With scores, a character that is not a token can merge.
        if all(
            part in model.tokens or (scores is not None and len(part.decode(errors="replace")) == 1)
            for part in pair
        ):
            yield pair


def _reject(name: str, problem: str) -> NoReturn:
    short = repr(name) if len(name) <= 80 else repr(name[:77]) + "..."
    raise VocabularyError(f"special token {short}", problem, _REMEDY)
