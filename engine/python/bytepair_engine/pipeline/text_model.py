"""The model that text meets: a pipeline's, without the special tokens.

A publisher's model may hold special tokens, and may have merges that make one. To text they do not
exist: it never becomes the id of what is not allowed, whatever the merges say. So an answer differs
from the publisher's where the publisher's holds the id of a special token, and nowhere else; a
pipeline for which that cannot be said is rejected.

**Theorem.** Let no special token that merging makes, and no id that stands for text without a
token, be half of a merge to an ordinary token, and none be a unit. Then a piece becomes the same
with and without the special tokens, or with them an id of one.

*Proof.* Let the model with them give none for a piece. It did not take the piece whole as one. As
nothing ordinary is merged from a special token, a part that is one stays one, or becomes another:
so there never was one. Each merge was thus one that there is without them, too; all merges without
them are among those with them, so each was the best of those as well; and the units are the same. ∎

A pipeline is also rejected where the model may make the token of text that does not spell it once
normalised: where a step puts one of its characters into text (as the mark for a space), where it
starts or ends with `prefix` or `suffix`, or where its bytes are not its spelling.
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
    "take it out of also_special if it is named there, or serve a vocabulary in which it is no "
    "special token"
)


def text_model(pipeline: Pipeline) -> Model:
    """What turns text into ids, except for the added tokens that are found in it.

    Args:
        pipeline: The pipeline.
    Returns:
        Its model without the special tokens and the merges that name one; the same model if it
        holds none. `byte_tokens` and `unknown` stay, special or not: they stand for text that has
        no token, which no text can choose by how it spells them.
    Raises:
        VocabularyError: The model may make a special token of a single byte or character, of text
            that does not spell it, or on the way to an ordinary token: without it, text that
            does not look like the token would become other ids. The error's source is the token.
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
    stand_ins = {model.unknown, *model.byte_tokens.values()}
    for token, token_id in hidden.items():
        name = special[token_id]
        if _is_unit(model, token):
            _refuse(name, "it is a single byte or character, which text could not hold any more")
        if token_id in halves and (token_id in merged or token_id in stand_ins):
            _refuse(name, "an ordinary token is merged from it, so text that holds that needs it")
        if (token_id in merged or model.whole_first) and not _is_spelled(pipeline, token, name):
            _refuse(name, "the model may make it of text that does not spell it")


def _is_unit(model: Model, token: bytes) -> bool:
    """Whether a single unit of some piece may be `token`."""
    prefix, suffix = model.prefix.encode(), model.suffix.encode()
    bodies = {token, token.removeprefix(prefix)}
    bodies |= {body.removesuffix(suffix) for body in bodies}
    if model.units == "bytes":
        return any(len(body) == 1 for body in bodies)
    return any(len(body.decode()) == 1 for body in bodies)


def _is_spelled(pipeline: Pipeline, token: bytes, name: str) -> bool:
    """Whether what becomes `token` is what spells it once it is normalised: no step puts one of its
    characters into text, as for a space or the end of a word."""
    prefix, suffix = pipeline.model.prefix, pipeline.model.suffix
    if (prefix and name.startswith(prefix)) or (suffix and name.endswith(suffix)):
        return False
    put = {c for step in (*pipeline.normalisers, *pipeline.pre_tokenizers) for c in _put(step)}
    return token == name.encode() and put.isdisjoint(name)


def _put(step: Normaliser | PreTokenizer) -> str:
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
    """The special tokens that merges make, and those that they make ordinary tokens of."""
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
    """As `_listed`, where any two tokens merge whose concatenation is one."""
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
    """Every two parts of a piece that may merge to `token`, and perhaps some that may not."""
    scores = model.rule.scores if isinstance(model.rule, Scores) else None
    if scores is not None and model.tokens[token] not in scores:
        return
    for cut in range(1, len(token)):
        pair = token[:cut], token[cut:]
        # Under scores, a character merges that is no token.
        if all(
            part in model.tokens or (scores is not None and len(part.decode(errors="replace")) == 1)
            for part in pair
        ):
            yield pair


def _refuse(name: str, problem: str) -> NoReturn:
    short = repr(name) if len(name) <= 80 else repr(name[:77]) + "..."
    raise VocabularyError(f"special token {short}", problem, _REMEDY)
