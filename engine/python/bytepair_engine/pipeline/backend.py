"""The reference backend of pipelines: deliberately simple and slow."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from bytepair_engine import cancel
from bytepair_engine.backends.derived import DerivedBackend
from bytepair_engine.backends.interface import OffsetUnit
from bytepair_engine.backends.reference import SpecialSet, check_unicode
from bytepair_engine.errors import SpecialTokenFound
from bytepair_engine.pipeline.added import AddedTokens
from bytepair_engine.pipeline.aligned import Aligned
from bytepair_engine.pipeline.byte_alphabet import write_bytes
from bytepair_engine.pipeline.decoding import DecoderState
from bytepair_engine.pipeline.definition import AddedToken, ByteAlphabet, Pipeline
from bytepair_engine.pipeline.fingerprint import pipeline_fingerprint
from bytepair_engine.pipeline.model import Tokenizer
from bytepair_engine.pipeline.normalising import normalise
from bytepair_engine.pipeline.splitting import pre_tokenize
from bytepair_engine.pipeline.text_model import text_model


@dataclass(frozen=True, slots=True)
class PipelineSpecialSet:
    """A set of special tokens: their names, and a search for them in text."""

    names: frozenset[str]
    search: SpecialSet

    def is_in(self, data: bytes) -> bool:
        return self.search.is_in(data)


class PipelineTable:
    """Lookups of single tokens of a pipeline; see `interface.Backend` for each method.

    Attributes:
        pipeline: The pipeline.
        fingerprint: The fingerprint.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline: Final = pipeline
        self.fingerprint: Final = pipeline_fingerprint(pipeline)
        self._always_found: Final = {t.name.encode(): t.id for t in pipeline.added if not t.special}

    def token_id(self, token: bytes) -> int | None:
        found = self._always_found.get(token)
        return self.pipeline.model.tokens.get(token) if found is None else found

    def token_bytes(self, token_id: int) -> bytes | None:
        return self.pipeline.decoder.middle.get(token_id)

    def token_byte_values(self) -> list[bytes]:
        return sorted(self.pipeline.model.tokens)


class PipelineBackend(PipelineTable, DerivedBackend[PipelineSpecialSet]):
    """The reference backend of a pipeline; see `interface.Backend` for each method."""

    name: Final = "reference"
    splitter: Final = "regex"

    def __init__(self, pipeline: Pipeline) -> None:
        """Build the backend.

        Raises:
            VocabularyError: See `text_model`.
        """
        super().__init__(pipeline)
        self._raw: Final = AddedTokens([t for t in pipeline.added if not t.normalised])
        self._normalised: Final = AddedTokens([t for t in pipeline.added if t.normalised])
        self._tokenizer: Final = Tokenizer(
            text_model(pipeline),
            written=any(isinstance(s, ByteAlphabet) for s in pipeline.pre_tokenizers),
        )

    def special_set(self, names: frozenset[str]) -> PipelineSpecialSet:
        return PipelineSpecialSet(names, SpecialSet(names))

    def _tokens(
        self, text: str, allowed: PipelineSpecialSet, disallowed: PipelineSpecialSet
    ) -> Iterator[tuple[int, int, int]]:
        """Yield each id, the index of the character of `text` in which it starts, and the byte
        within that character; 0 if normalisation changed the character."""
        cancel.check()
        check_unicode(text)
        for at, name in disallowed.search.matches(text):
            raise SpecialTokenFound(name, len(text[:at].encode()))
        for stretch, token in self._stretches(Aligned.original(text), allowed, disallowed):
            if token is not None:
                yield token.id, stretch.starts[0], 0
                continue
            for piece in pre_tokenize(stretch, self.pipeline.pre_tokenizers):
                cancel.check()
                origins = list(self._origins(text, piece))
                for token_id, at in self._tokenizer.tokens(piece.text):
                    yield token_id, *origins[min(at, len(origins) - 1)]

    def _stretches(
        self, text: Aligned, allowed: PipelineSpecialSet, disallowed: PipelineSpecialSet
    ) -> Iterator[tuple[Aligned, AddedToken | None]]:
        """Yield the stretches of normalised text, and the added tokens between them."""

        def cut(
            stretch: Aligned, tokens: AddedTokens
        ) -> Iterator[tuple[Aligned, AddedToken | None]]:
            def is_text(at: int, token: AddedToken) -> bool:
                if token.name in disallowed.names:
                    before = text.text[: stretch.starts[at]]
                    raise SpecialTokenFound(token.name, len(before.encode()))
                return token.name not in allowed.names

            for start, end, token in tokens.parts(stretch.text, is_text):
                yield stretch.part(start, end), token

        for stretch, token in cut(text, self._raw):
            if token is not None:
                yield stretch, token
            else:
                yield from cut(normalise(stretch, self.pipeline.normalisers), self._normalised)

    def _origins(self, text: str, piece: Aligned) -> Iterator[tuple[int, int]]:
        """Yield the origin of each byte of a piece: the character and the byte within it."""
        if self._tokenizer.written:
            within, before = 0, -1
            for written, start in piece.pairs():
                within = within + 1 if start == before else 0
                before = start
                original = write_bytes(text[start : start + 1].encode())
                yield start, within if original[within : within + 1] == written else 0
        else:
            for character, start in piece.pairs():
                is_unchanged = text[start : start + 1] == character
                for i in range(len(character.encode())):
                    yield start, i if is_unchanged else 0

    def encode(
        self, text: str, allowed: PipelineSpecialSet, disallowed: PipelineSpecialSet
    ) -> list[int]:
        return [token_id for token_id, _, _ in self._tokens(text, allowed, disallowed)]

    def encode_with_offsets(
        self,
        text: str,
        unit: OffsetUnit,
        allowed: PipelineSpecialSet,
        disallowed: PipelineSpecialSet,
    ) -> tuple[list[int], list[int]]:
        found = list(self._tokens(text, allowed, disallowed))
        units = _units_before_each_character(text, unit)
        offsets = (units[at] + (byte if unit == "byte" else 0) for _, at, byte in found)
        # An unknown token can follow the tokens of later bytes.
        return [token_id for token_id, _, _ in found], list(accumulate(offsets, max))

    def decode_bytes(self, ids: Collection[int]) -> bytes:
        state = DecoderState(self.pipeline.decoder)
        return state.feed(ids) + state.finish()


def _units_before_each_character(text: str, unit: OffsetUnit) -> Sequence[int]:
    if unit == "code_point":
        return range(len(text) + 1)
    encoding, size = ("utf-8", 1) if unit == "byte" else ("utf-16-le", 2)
    before = [0]
    for character in text:
        before.append(before[-1] + len(character.encode(encoding)) // size)
    return before
