"""A form on the native core: the reference's twin, and the reference for what is rare."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import regex

from bytepair_engine.backend import DecodeErrors, OffsetUnit
from bytepair_engine.errors import InvalidUnicode
from bytepair_engine.pipeline.backend import FormBackend, NameSet
from bytepair_engine.pipeline.form import (
    ByteAlphabet,
    CharsMap,
    Form,
    Lowercase,
    Merges,
    Model,
    Normaliser,
    Prefix,
    Prepend,
    PreTokenizer,
    Ranks,
    Replace,
    Spacing,
    Split,
    Strip,
    Substitute,
    UnicodeForm,
)
from bytepair_engine.pipeline.normalising import lower
from bytepair_engine.pipeline.unicode_tables import YOUNGER

if TYPE_CHECKING:
    from bytepair_engine import _core

#: A step as the core takes it: its kind, and what belongs to it.
Step = tuple[str, tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class NativeNames:
    """A set of special tokens for the core, and the same for the reference."""

    core: _core.FormNames
    reference: NameSet


class NativeFormBackend:
    """A form on the core; see `backend.Backend` for each method.

    Offsets, and errors that need them, are the reference's work: it keeps where each character
    comes from.

    Attributes:
        form: The form.
    """

    name: Final = "native"

    def __init__(self, reference: FormBackend, core: _core.Form, splitter: str) -> None:
        """Use what `build` made."""
        self.form: Final = reference.form
        self.fingerprint: Final = reference.fingerprint
        self.splitter: Final = splitter
        self._reference: Final = reference
        self._core: Final = core

    def special_set(self, names: frozenset[str]) -> NativeNames:
        return NativeNames(self._core.names(names), self._reference.special_set(names))

    def encode(self, text: str, allowed: NativeNames, disallowed: NativeNames) -> list[int]:
        ids = self._core.encode(text, allowed.core, disallowed.core)
        if ids is None:
            return self._reference.encode(text, allowed.reference, disallowed.reference)
        return ids

    def encode_array(self, text: str, allowed: NativeNames, disallowed: NativeNames) -> array[int]:
        ids = self._core.encode_array(text, allowed.core, disallowed.core)
        if ids is None:
            return self._reference.encode_array(text, allowed.reference, disallowed.reference)
        return ids

    def encode_packed(self, text: str, allowed: NativeNames, disallowed: NativeNames) -> bytes:
        ids = self._core.encode_packed(text, allowed.core, disallowed.core)
        if ids is None:
            return self._reference.encode_packed(text, allowed.reference, disallowed.reference)
        return ids

    def encode_with_offsets(
        self, text: str, unit: OffsetUnit, allowed: NativeNames, disallowed: NativeNames
    ) -> tuple[list[int], list[int]]:
        return self._reference.encode_with_offsets(
            text, unit, allowed.reference, disallowed.reference
        )

    def encode_batch(
        self, texts: Sequence[str], allowed: NativeNames, disallowed: NativeNames
    ) -> list[list[int]]:
        return [self.encode(text, allowed, disallowed) for text in texts]

    def count(
        self, text: str, allowed: NativeNames, disallowed: NativeNames, limit: int | None
    ) -> int:
        # No text has so many tokens.
        most = None if limit is None else min(limit, sys.maxsize)
        count = self._core.count(text, allowed.core, disallowed.core, most)
        if count is None:
            return self._reference.count(text, allowed.reference, disallowed.reference, limit)
        return count

    def count_batch(
        self,
        texts: Sequence[str],
        allowed: NativeNames,
        disallowed: NativeNames,
        limit: int | None,
    ) -> list[int]:
        return [self.count(text, allowed, disallowed, limit) for text in texts]

    def decode(self, ids: Sequence[int], errors: DecodeErrors) -> str:
        data = self.decode_bytes(ids)
        try:
            return data.decode("utf-8", errors)
        except UnicodeDecodeError as error:
            raise InvalidUnicode(error.start, "invalid UTF-8") from None

    def decode_bytes(self, ids: Sequence[int]) -> bytes:
        data = self._core.decode_bytes(ids)
        return self._reference.decode_bytes(ids) if data is None else data

    def token_id(self, token: bytes) -> int | None:
        return self._reference.token_id(token)

    def token_bytes(self, token_id: int) -> bytes | None:
        return self._reference.token_bytes(token_id)

    def token_byte_values(self) -> list[bytes]:
        return self._reference.token_byte_values()


def build(form: Form, cache_bytes: int) -> NativeFormBackend | FormBackend:
    """A form on the core, or on the reference if the core does not know one of its steps.

    Args:
        form: The form.
        cache_bytes: What remembered pieces may take.
    """
    from bytepair_engine import _core

    reference = FormBackend(form)
    normalisers = _all([_normaliser(step) for step in form.normalisers])
    needs_origin = any(isinstance(s, Prefix) and s.first_only for s in form.pre_tokenizers)
    if normalisers is None or (needs_origin and normalisers):
        # Where a stretch's first character comes from is known to the reference alone.
        return reference
    model, decoder = form.model, form.decoder
    core = _core.Form.build(
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
        normalisers=(normalisers, list(_younger())),
        pre_tokenizers=[_pre_tokenizer(step) for step in form.pre_tokenizers],
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
            for token in form.added
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
    if core is None:
        return reference
    return NativeFormBackend(reference, core, "general")


def _all(steps: list[Step | None]) -> list[Step] | None:
    known = [step for step in steps if step is not None]
    return known if len(known) == len(steps) else None


def _rule(model: Model) -> tuple[str, Any, Any]:
    rule = model.rule
    if isinstance(rule, Ranks):
        return "ranks", (), ()
    if isinstance(rule, Merges):
        flat = chain.from_iterable(chain.from_iterable(rule.pairs.items()))
        return "merges", array("I", flat), ()
    apart = [(token_id, left, right) for token_id, (left, right) in rule.taken_apart.items()]
    return "scores", list(rule.scores.items()), apart


def _normaliser(step: Normaliser) -> Step | None:
    match step:
        case UnicodeForm(form):
            return "unicode", (form,)
        case Lowercase():
            return "lowercase", (_lower_case(),)
        case Prepend(text):
            return "prepend", (text,)
        case Replace(pattern, content):
            return "replace", (pattern, content)
        case Strip(left, right):
            return "strip", (left, right)
        case Spacing(table, kept, tidy, pad, mark):
            return "spacing", (table, list(kept), tidy, pad, mark)
        case CharsMap():
            return None  # needs grapheme clusters


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
    """The ranges of `YOUNGER`."""
    ranges = regex.findall(r"\\U([0-9a-f]{8})(?:-\\U([0-9a-f]{8}))?", YOUNGER)
    return tuple((int(first, 16), int(last or first, 16)) for first, last in ranges)
