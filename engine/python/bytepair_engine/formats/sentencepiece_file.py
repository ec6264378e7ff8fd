"""SentencePiece's `.model` files: what they say, read strictly and in bounded time and memory.

The messages are those of sentencepiece_model.proto: ModelProto with its pieces, a trainer
specification (of which only what decides ids matters here) and a normaliser specification. Fields
that decide nothing are skipped, as Protocol Buffers mean it; of a field that stands several times
the last one counts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, Final, NamedTuple, NoReturn

from bytepair_engine.errors import VocabularyError
from bytepair_engine.formats.protobuf_wire import Kind, WireFault, fields, float32

REMEDY: Final = "check that this is a SentencePiece model, and that it is whole"

#: No published model has a third as many.
MAX_PIECES: Final = 2**20
#: As in the sentencepiece package: a longer piece is refused.
MAX_PIECE_BYTES: Final = 8000


class PieceType(IntEnum):
    """What a piece is for."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


class ModelType(IntEnum):
    """The algorithm of a model."""

    UNIGRAM = 1
    BPE = 2
    WORD = 3
    CHAR = 4


class Piece(NamedTuple):
    """One piece; its id is its position.

    Attributes:
        text: Its spelling.
        score: Its score, which decides the order of merges; a 32-bit number.
        type: What it is for.
    """

    text: str
    score: float
    type: PieceType


@dataclass(frozen=True, kw_only=True, slots=True)
class Normaliser:
    """The normaliser specification, or the denormaliser's.

    Attributes:
        name: What the rules are called, such as "nmt_nfkc"; it decides nothing.
        charsmap: The rules, compiled; b"" for none.
        dummy_prefix: Whether a space is put before (or after) each text.
        tidy: Whether spaces at the ends go, and runs of them become one.
        escape: Whether U+2581 takes the place of each space.
    """

    name: str = ""
    charsmap: bytes = b""
    dummy_prefix: bool = True
    tidy: bool = True
    escape: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class SentencePieceFile:
    """What a model file says.

    Attributes:
        pieces: By id.
        model_type: The algorithm.
        byte_fallback: Whether characters that are no piece become byte pieces.
        whitespace_as_suffix: Whether words end with their space, rather than start with it.
        unknown_surface: What an unknown piece decodes to.
        normaliser: What is done to text before it is encoded.
        denormaliser: What is done to decoded text; None for nothing.
    """

    pieces: tuple[Piece, ...]
    model_type: ModelType = ModelType.UNIGRAM
    byte_fallback: bool = False
    whitespace_as_suffix: bool = False
    unknown_surface: str = " \u2047 "
    normaliser: Normaliser = Normaliser()
    denormaliser: Normaliser | None = None


def parse_sentencepiece(data: bytes, source: str) -> SentencePieceFile:
    """Read a model file.

    Args:
        data: The file, uncompressed.
        source: Its name, for errors.
    Raises:
        VocabularyError: It is no message of this kind, or a piece is not what it must be.
    """
    if not data:
        raise VocabularyError(source, "the file is empty", REMEDY)
    try:
        return _Reader(data, source).model()
    except WireFault as fault:
        raise VocabularyError(source, f"byte {fault.position}: {fault.problem}", REMEDY) from None


@dataclass(frozen=True, slots=True)
class _Reader:
    """Takes one file apart.

    `Any` stands where the table of a message's fields says the type.
    """

    data: bytes
    source: str

    def model(self) -> SentencePieceFile:
        pieces: list[Piece] = []
        seen = set()
        found = SentencePieceFile(pieces=())
        for number, kind, start, end in fields(self.data, 0, len(self.data)):
            seen.add(number)
            if number == 1:
                self._is(kind, "bytes", "pieces", start)
                if len(pieces) == MAX_PIECES:
                    self._refuse(f"it has more than {MAX_PIECES} pieces")
                pieces.append(self._piece(len(pieces), start, end))
            elif number == 2:
                self._is(kind, "bytes", "trainer_spec", start)
                found = self._merge(found, "trainer_spec", _TRAINER, start, end)
            elif number == 3:
                self._is(kind, "bytes", "normalizer_spec", start)
                found = replace(
                    found,
                    normaliser=self._merge(
                        found.normaliser, "normalizer_spec", _NORMALISER, start, end
                    ),
                )
            elif number == 5:
                self._is(kind, "bytes", "denormalizer_spec", start)
                found = replace(
                    found,
                    denormaliser=self._merge(
                        found.denormaliser or Normaliser(),
                        "denormalizer_spec",
                        _NORMALISER,
                        start,
                        end,
                    ),
                )
        for number, name in (1, "pieces"), (2, "trainer_spec"), (3, "normalizer_spec"):
            if number not in seen:
                # What is cut off between two fields is a message too, with other ids.
                self._refuse(f"it has no {name}")
        return replace(found, pieces=tuple(pieces))

    def _piece(self, number: int, start: int, end: int) -> Piece:
        # As every writer writes a normal piece: its text, then its score.
        data, last = self.data, end - 5
        if (
            last > start + 2
            and data[start] == 0x0A
            and data[start + 1] == last - start - 2 < 0x80
            and data[last] == 0x15
            and (score := float32(data, last + 1)) == score
        ):
            text = self._text(data[start + 2 : last], f"pieces[{number}].piece")
            return Piece(text, score, PieceType.NORMAL)
        return self._any_piece(number, start, end)

    def _any_piece(self, number: int, start: int, end: int) -> Piece:
        text, score, kind_of = b"", 0.0, int(PieceType.NORMAL)
        for field, kind, first, last in fields(self.data, start, end):
            if field == 1 and kind == "bytes":
                text = self.data[first:last]
            elif field == 2 and kind == "32-bit":
                score = float32(self.data, first)
            elif field == 3 and kind == "varint":
                kind_of = last
            elif field <= 3:
                self._is(kind, "another kind", f"pieces[{number}]", first)
        if not text:
            self._refuse(f"pieces[{number}].piece is empty")
        if len(text) >= MAX_PIECE_BYTES:
            self._refuse(f"pieces[{number}].piece has {len(text)} bytes or more")
        if kind_of not in _PIECE_TYPES:
            self._refuse(f"pieces[{number}].type is {kind_of}, which is none that is known")
        if score != score:
            self._refuse(f"pieces[{number}].score is not a number")
        return Piece(self._text(text, f"pieces[{number}].piece"), score, _PIECE_TYPES[kind_of])

    def _merge(self, into: Any, name: str, known: _Fields, start: int, end: int) -> Any:
        """Take what `known` lists of a message into the dataclass `into`."""
        found: dict[str, Any] = {}
        for number, kind, first, last in fields(self.data, start, end):
            if number not in known:
                continue
            field, attribute, type_ = known[number]
            place = f"{name}.{field}"
            self._is(kind, "varint" if type_ in (bool, ModelType) else "bytes", place, first)
            if type_ is bool:
                found[attribute] = last != 0
            elif type_ is ModelType:
                if last not in _MODEL_TYPES:
                    self._refuse(f"{place} is {last}, which is none that is known")
                found[attribute] = ModelType(last)
            elif type_ is str:
                found[attribute] = self._text(self.data[first:last], place)
            else:
                found[attribute] = self.data[first:last]
        return replace(into, **found)

    def _text(self, data: bytes, place: str) -> str:
        try:
            return data.decode()
        except UnicodeDecodeError:
            self._refuse(f"{place} is not UTF-8")

    def _is(self, kind: Kind, must: str, place: str, position: int) -> None:
        if kind != must:
            self._refuse(f"byte {position}: {place} holds a {kind} value, and not what it must")

    def _refuse(self, problem: str) -> NoReturn:
        raise VocabularyError(self.source, problem, REMEDY)


_PIECE_TYPES: Final = {int(kind): kind for kind in PieceType}
_MODEL_TYPES: Final = frozenset(ModelType)

#: Field number to its name in the proto, our attribute, and its type.
_Fields = dict[int, tuple[str, str, type]]
_TRAINER: Final[_Fields] = {
    3: ("model_type", "model_type", ModelType),
    24: ("treat_whitespace_as_suffix", "whitespace_as_suffix", bool),
    35: ("byte_fallback", "byte_fallback", bool),
    44: ("unk_surface", "unknown_surface", str),
}
_NORMALISER: Final[_Fields] = {
    1: ("name", "name", str),
    2: ("precompiled_charsmap", "charsmap", bytes),
    3: ("add_dummy_prefix", "dummy_prefix", bool),
    4: ("remove_extra_whitespaces", "tidy", bool),
    5: ("escape_whitespaces", "escape", bool),
}
