"""Parse SentencePiece's `.model` files strictly, in bounded time and memory.

The messages are those of sentencepiece_model.proto: a ModelProto with pieces, a trainer
specification and a normaliser specification. Fields that do not affect ids or text are skipped. If
a singular field occurs several times, the last value is used, as in Protocol Buffers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, Final, NamedTuple, NoReturn

from bytepair_engine.errors import VocabularyError
from bytepair_engine.formats.protobuf_wire import Kind, WireFault, fields, float32

REMEDY: Final = "check that this is a SentencePiece model, and that it is complete"

#: Maximum number of pieces. Published models have less than a third of it.
MAX_PIECES: Final = 2**20
#: Limit of the length of a piece, as in the sentencepiece package.
MAX_PIECE_BYTES: Final = 8000


class PieceType(IntEnum):
    """The type of a piece."""

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
    """A piece; its id is its index.

    Attributes:
        text: The spelling.
        score: The score, which determines the order of merges; a 32-bit float.
        type: The type.
    """

    text: str
    score: float
    type: PieceType


@dataclass(frozen=True, kw_only=True, slots=True)
class Normaliser:
    """The specification of the normaliser or of the denormaliser.

    Attributes:
        name: The name of the rules, such as "nmt_nfkc", which has no effect.
        charsmap: The compiled rules; b"" for none.
        dummy_prefix: Whether to add a space before (or after) each text.
        tidy: Whether to strip spaces at the ends and collapse runs of spaces.
        escape: Whether to replace each space by U+2581.
    """

    name: str = ""
    charsmap: bytes = b""
    dummy_prefix: bool = True
    tidy: bool = True
    escape: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class SentencePieceFile:
    """The content of a model file.

    Attributes:
        pieces: The pieces in order of ids.
        model_type: The algorithm.
        byte_fallback: Whether characters without a piece become byte pieces.
        whitespace_as_suffix: Whether words end with a space instead of starting with it.
        unknown_surface: The text that an unknown piece decodes to.
        normaliser: The normaliser, applied to text before encoding.
        denormaliser: The denormaliser, applied to decoded text.
    """

    pieces: tuple[Piece, ...]
    model_type: ModelType = ModelType.UNIGRAM
    byte_fallback: bool = False
    whitespace_as_suffix: bool = False
    unknown_surface: str = " \u2047 "
    normaliser: Normaliser = Normaliser()
    denormaliser: Normaliser = Normaliser()


def parse_sentencepiece(data: bytes, source: str) -> SentencePieceFile:
    """Parse a model file.

    Args:
        data: The content of the file, uncompressed.
        source: The name of the file, for errors.
    Raises:
        VocabularyError: The file is not a valid message, or a piece is invalid.
    """
    if not data:
        raise VocabularyError(source, "the file is empty", REMEDY)
    try:
        return _Reader(data, source).model()
    except WireFault as fault:
        raise VocabularyError(source, f"byte {fault.position}: {fault.problem}", REMEDY) from None


@dataclass(frozen=True, slots=True)
class _Reader:
    """Parses one file. `Any` marks values whose type is in a table of fields."""

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
                    self._reject(f"it has more than {MAX_PIECES} pieces")
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
                        found.denormaliser, "denormalizer_spec", _NORMALISER, start, end
                    ),
                )
        for number, name in (1, "pieces"), (2, "trainer_spec"), (3, "normalizer_spec"):
            if number not in seen:
                # A file that is cut off between two fields is still a valid message.
                self._reject(f"it has no {name}")
        return replace(found, pieces=tuple(pieces))

    def _piece(self, number: int, start: int, end: int) -> Piece:
        # Fast path: the usual layout of a normal piece, its text and then its score.
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
            self._reject(f"pieces[{number}].piece is empty")
        if len(text) >= MAX_PIECE_BYTES:
            self._reject(f"pieces[{number}].piece has {len(text)} bytes or more")
        if kind_of not in _PIECE_TYPES:
            self._reject(f"pieces[{number}].type is {kind_of}, which is unknown")
        if score != score:
            self._reject(f"pieces[{number}].score is not a number")
        return Piece(self._text(text, f"pieces[{number}].piece"), score, _PIECE_TYPES[kind_of])

    def _merge(self, into: Any, name: str, known: _Fields, start: int, end: int) -> Any:
        """Return `into` with the fields of a message that `known` lists."""
        found: dict[str, Any] = {}
        for number, kind, first, last in fields(self.data, start, end):
            if number not in known:
                continue
            field, attribute, type_ = known[number]
            path = f"{name}.{field}"
            self._is(kind, "varint" if type_ in (bool, ModelType) else "bytes", path, first)
            if type_ is bool:
                found[attribute] = last != 0
            elif type_ is ModelType:
                if last not in _MODEL_TYPES:
                    self._reject(f"{path} is {last}, which is unknown")
                found[attribute] = ModelType(last)
            elif type_ is str:
                found[attribute] = self._text(self.data[first:last], path)
            else:
                found[attribute] = self.data[first:last]
        return replace(into, **found)

    def _text(self, data: bytes, path: str) -> str:
        try:
            return data.decode()
        except UnicodeDecodeError:
            self._reject(f"{path} is not UTF-8")

    def _is(self, kind: Kind, expected: str, path: str, position: int) -> None:
        if kind != expected:
            self._reject(f"byte {position}: {path} holds a {kind} value, the wrong type")

    def _reject(self, problem: str) -> NoReturn:
        raise VocabularyError(self.source, problem, REMEDY)


_PIECE_TYPES: Final = {int(kind): kind for kind in PieceType}
_MODEL_TYPES: Final = frozenset(ModelType)

#: Field number to its name in the proto, the attribute here, and its type.
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
