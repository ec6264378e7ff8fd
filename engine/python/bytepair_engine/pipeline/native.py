"""The native backend of pipelines."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Collection
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import regex

from bytepair_engine.backends.derived import DerivedBackend
from bytepair_engine.backends.interface import DecodeErrors, OffsetUnit, Text
from bytepair_engine.pipeline.backend import PipelineTable
from bytepair_engine.pipeline.definition import (
    ByteAlphabet,
    CharsMap,
    Lowercase,
    Merges,
    Model,
    Normaliser,
    Pipeline,
    Prefix,
    Prepend,
    PreTokenizer,
    Ranks,
    Replace,
    Spacing,
    Split,
    Strip,
    Substitute,
    Surround,
    UnicodeForm,
)
from bytepair_engine.pipeline.normalising import lower
from bytepair_engine.pipeline.text_model import text_model
from bytepair_engine.pipeline.unicode_tables import YOUNGER

if TYPE_CHECKING:
    from bytepair_engine import _core

#: A step in the format of the core: its kind and its arguments.
Step = tuple[str, tuple[Any, ...]]


class NativePipelineBackend(PipelineTable, DerivedBackend["_core.SpecialSet"]):
    """A pipeline on the native core; see `interface.Backend` for each method."""

    name: Final = "native"
    splitter: Final = "regex"

    def __init__(self, pipeline: Pipeline, core: _core.Pipeline) -> None:
        """Wrap a core that `build` created."""
        super().__init__(pipeline)
        self._core: Final = core

    def special_set(self, names: frozenset[str]) -> _core.SpecialSet:
        return self._core.special_set(names)

    def encode(
        self, text: str, allowed: _core.SpecialSet, disallowed: _core.SpecialSet
    ) -> list[int]:
        return self._core.encode(text, allowed, disallowed)

    def encode_array(
        self, text: str, allowed: _core.SpecialSet, disallowed: _core.SpecialSet
    ) -> array[int]:
        return self._core.encode_array(text, allowed, disallowed)

    def encode_packed(
        self, text: Text, allowed: _core.SpecialSet, disallowed: _core.SpecialSet
    ) -> bytes:
        return self._core.encode_packed(text, allowed, disallowed)

    def encode_with_offsets(
        self,
        text: str,
        unit: OffsetUnit,
        allowed: _core.SpecialSet,
        disallowed: _core.SpecialSet,
    ) -> tuple[list[int], list[int]]:
        return self._core.encode_with_offsets(text, unit, allowed, disallowed)

    def count(
        self,
        text: Text,
        allowed: _core.SpecialSet,
        disallowed: _core.SpecialSet,
        limit: int | None,
    ) -> int:
        return self._core.count(text, allowed, disallowed, limit)

    def cut_counts(
        self,
        text: str,
        allowed: _core.SpecialSet,
        budget: int,
        front: tuple[str, str] | None,
    ) -> tuple[int | None, list[tuple[int, int]]] | None:
        """Return the counts of starts or ends of a text, as the core does."""
        return self._core.cut_counts(text, allowed, min(budget, sys.maxsize), front)

    def decode(self, ids: Collection[int], errors: DecodeErrors) -> str:
        return self._core.decode(ids, errors)

    def decode_bytes(self, ids: Collection[int]) -> bytes:
        return self._core.decode_bytes(ids)


def build(pipeline: Pipeline, cache_bytes: int) -> NativePipelineBackend:
    """Build a pipeline on the native core.

    Args:
        pipeline: The pipeline.
        cache_bytes: Maximum memory of the cache of pieces.
    Raises:
        VocabularyError: A pattern cannot run in bounded time; or see `text_model`.
    """
    from bytepair_engine import _core

    model, decoder = text_model(pipeline), pipeline.decoder
    core = _core.Pipeline.build(
        tokens=[(token, token_id) for token, token_id in model.tokens.items() if token],
        rule=_rule(model),
        model=(
            model.units == "bytes",
            model.whole_first,
            list(model.byte_tokens.items()),
            model.unknown,
            model.fuse_unknown,
            model.prefix,
            model.suffix,
        ),
        normalisers=([_normaliser(step) for step in pipeline.normalisers], list(_younger())),
        pre_tokenizers=[_pre_tokenizer(step) for step in pipeline.pre_tokenizers],
        added=[
            (
                token.content,
                token.id,
                token.special,
                token.name,
                token.left_strip,
                token.right_strip,
                token.single_word,
                token.normalised,
            )
            for token in pipeline.added
        ],
        decoder=(
            list(decoder.middle.items()),
            (
                dict(decoder.first),
                decoder.first_until_text,
                dict(decoder.last),
                dict(decoder.only),
                decoder.strip_start,
                decoder.strip_end,
            ),
        ),
        cache_bytes=cache_bytes,
    )
    return NativePipelineBackend(pipeline, core)


def _rule(model: Model) -> tuple[str, Any, Any]:
    rule = model.rule
    if isinstance(rule, Ranks):
        return "ranks", (), ()
    if isinstance(rule, Merges):
        return "merges", (rule.lefts, rule.rights, rule.priorities, rule.results), ()
    apart = [(token_id, left, right) for token_id, (left, right) in rule.taken_apart.items()]
    return "scores", list(rule.scores.items()), apart


def _normaliser(step: Normaliser) -> Step:
    match step:
        case UnicodeForm(form):
            return "unicode", (form,)
        case Lowercase():
            return "lowercase", (_lower_case(),)
        case Prepend(text):
            return "prepend", (text,)
        case Replace(pattern, content):
            return "replace", (pattern, content)
        case Surround(pattern, content):
            return "surround", (pattern, content)
        case Strip(left, right):
            return "strip", (left, right)
        case Spacing(table, kept, tidy, pad, mark):
            return "spacing", (table, list(kept), tidy, pad, mark)
        case CharsMap(table):
            return "charsmap", (table,)


def _pre_tokenizer(step: PreTokenizer) -> Step:
    match step:
        case Split(pattern, behaviour, inverted):
            return "split", (pattern, behaviour, inverted)
        case Substitute(old, new):
            return "substitute", (old, new)
        case Prefix(character, first_only):
            return "prefix", (character, first_only)
        case ByteAlphabet():
            return "byte_alphabet", ()


@cache
def _lower_case() -> dict[str, str]:
    characters = map(chr, [*range(0x80, 0xD800), *range(0xE000, 0x20000)])
    return {c: small for c in characters if (small := lower(c)) != c}


@cache
def _younger() -> tuple[tuple[int, int], ...]:
    """Return the ranges of `YOUNGER`."""
    ranges = regex.findall(r"\\U([0-9a-f]{8})(?:-\\U([0-9a-f]{8}))?", YOUNGER)
    return tuple((int(first, 16), int(last or first, 16)) for first, last in ranges)
