"""Convert a SentencePiece model to a pipeline.

Only BPE models are supported; the other types do not merge pairs. Models that the sentencepiece
package rejects are rejected here too, and so are features that a pipeline cannot represent.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, Literal, NoReturn

from bytepair_engine.errors import VocabularyError
from bytepair_engine.formats.sentencepiece_file import (
    REMEDY,
    ModelType,
    Piece,
    PieceType,
    SentencePieceFile,
    parse_sentencepiece,
)
from bytepair_engine.pipeline.charsmap import CharsMapFault, charsmap
from bytepair_engine.pipeline.definition import (
    AddedToken,
    Decoder,
    Model,
    Pipeline,
    Scores,
    Spacing,
)
from bytepair_engine.pipeline.growth import MAX_GROWTH, growth

#: The character that replaces a space in pieces.
MARK: Final = "\u2581"

#: The sentencepiece package finds only the shortest 64 of the user-defined symbols that start at a
#: position.
MAX_SYMBOLS_AT_POSITION: Final = 64

#: Maximum sum of the squared lengths of unused pieces: the cost of splitting them into halves. A
#: million pieces of 16 characters reach it.
MAX_UNUSED: Final = 2**28

_UNSUPPORTED: Final = "convert the model to another supported format"
_MERGED: Final = (PieceType.NORMAL, PieceType.USER_DEFINED, PieceType.UNUSED)
_BYTE_NAMES: Final = {f"<0x{byte:02X}>": byte for byte in range(256)}


def sentencepiece_pipeline(
    data: bytes, source: str, also_special: Collection[str] = ()
) -> Pipeline:
    """Read a model file and convert it to a pipeline.

    Args:
        data: The content of the file, uncompressed.
        source: The name of the file, for errors.
        also_special: User-defined symbols that a request must allow, like control symbols. All
            others are recognised in every text.
    Raises:
        VocabularyError: The file is not a model, or cannot be represented exactly.
    """
    file = parse_sentencepiece(data, source)
    return _Loader(file, source, frozenset(also_special)).pipeline()


class _Loader:
    """Validates and converts one file."""

    def __init__(self, file: SentencePieceFile, source: str, also_special: frozenset[str]) -> None:
        self._file: Final = file
        self._source: Final = source
        self._also_special: Final = also_special
        self._ids: Final = {piece.text: i for i, piece in enumerate(file.pieces)}

    def pipeline(self) -> Pipeline:
        file = self._file
        if file.model_type is not ModelType.BPE:
            self._reject(
                "trainer_spec.model_type",
                f"is {file.model_type.name}: only BPE models merge pairs of pieces",
                _UNSUPPORTED,
            )
        self._check_pieces()
        return Pipeline(
            model=Model(
                tokens={p.text.encode(): i for i, p in self._of(*_MERGED)},
                rule=Scores(
                    scores={i: p.score for i, p in self._of(*_MERGED)},
                    taken_apart={
                        i: parts
                        for i, p in self._of(PieceType.UNUSED)
                        if (parts := self._halves(p))
                    },
                ),
                units="characters",
                byte_tokens=self._byte_tokens(),
                unknown=self._unknown(),
                fuse_unknown=True,
            ),
            decoder=self._decoder(),
            normalisers=(self._spacing(),),
            added=self._added(),
        )

    def _of(self, *types: PieceType) -> list[tuple[int, Piece]]:
        return [(i, piece) for i, piece in enumerate(self._file.pieces) if piece.type in types]

    def _check_pieces(self) -> None:
        pieces = self._file.pieces
        for i, piece in enumerate(pieces):
            path = f"pieces[{i}].piece"
            if self._ids[piece.text] != i:
                self._reject(path, f"is {piece.text!r}, like pieces[{self._ids[piece.text]}]")
            if "\0" in piece.text:
                self._reject(path, "holds a zero character")
            if piece.type is PieceType.CONTROL and len(piece.text) == 1:
                self._reject(
                    path,
                    f"is the control symbol {piece.text!r}, a single character, which text could "
                    "then no longer contain",
                    _UNSUPPORTED,
                )
            if piece.type is PieceType.UNUSED and len(piece.text) == 1:
                self._reject(
                    path,
                    f"is the unused piece {piece.text!r}, a single character: versions of the "
                    "sentencepiece package give it different ids",
                    _UNSUPPORTED,
                )
        if sum(len(piece.text) ** 2 for _, piece in self._of(PieceType.UNUSED)) > MAX_UNUSED:
            self._reject("pieces", "hold unused pieces that are too long to be split into halves")

    def _unknown(self) -> int:
        found = [i for i, _ in self._of(PieceType.UNKNOWN)]
        if len(found) != 1:
            self._reject("pieces", f"hold {len(found)} unknown pieces instead of one")
        return found[0]

    def _byte_tokens(self) -> dict[int, int]:
        found = {}
        for i, piece in self._of(PieceType.BYTE):
            byte = _BYTE_NAMES.get(piece.text)
            if byte is None:
                self._reject(f"pieces[{i}].piece", f"is {piece.text!r}, which names no byte")
            found[byte] = i
        if len(found) != (256 if self._file.byte_fallback else 0):
            self._reject(
                "trainer_spec.byte_fallback",
                f"is {str(self._file.byte_fallback).lower()}, and {len(found)} bytes have a piece",
            )
        return found

    def _halves(self, unused: Piece) -> tuple[bytes, bytes] | None:
        """Return the pair that merges to an unused piece, which text becomes instead; or None."""
        text, pieces, ids = unused.text, self._file.pieces, self._ids

        def can_be(part: str) -> bool:
            return len(part) == 1 or (part in ids and pieces[ids[part]].type in _MERGED)

        cuts = [i for i in range(1, len(text)) if can_be(text[:i]) and can_be(text[i:])]
        if len(cuts) > 1:
            self._reject(
                f"pieces[{ids[text]}]",
                f"is the unused piece {text!r}, the result of {len(cuts)} pairs of pieces: the "
                "pair that text becomes depends on the rest of the text",
                _UNSUPPORTED,
            )
        return (text[: cuts[0]].encode(), text[cuts[0] :].encode()) if cuts else None

    def _decoder(self) -> Decoder:
        file = self._file
        if file.denormaliser.charsmap:
            self._reject(
                "denormalizer_spec",
                "has rules, so decoded text would depend on more than its tokens",
                _UNSUPPORTED,
            )
        middle: dict[int, bytes] = {}
        first: dict[int, bytes] = {}
        trims = file.normaliser.dummy_prefix or file.normaliser.tidy
        for i, piece in enumerate(file.pieces):
            if piece.type is PieceType.UNKNOWN:
                middle[i] = file.unknown_surface.encode()
            elif piece.type is PieceType.BYTE:
                middle[i] = bytes([_BYTE_NAMES[piece.text]])
            elif piece.type is PieceType.CONTROL:
                middle[i] = piece.text.encode()
            else:
                middle[i] = piece.text.replace(MARK, " ").encode()
                if trims and piece.text.startswith(MARK):
                    first[i] = middle[i][1:]
        if not file.unknown_surface and trims:
            self._reject(
                "trainer_spec.unk_surface",
                "is empty, so unknown pieces, which decode to nothing, would change the space at "
                "the start",
                _UNSUPPORTED,
            )
        return Decoder(middle=middle, first=first, first_until_text=file.normaliser.tidy)

    def _spacing(self) -> Spacing:
        file, normaliser = self._file, self._file.normaliser
        if normaliser.charsmap:
            try:
                charsmap(normaliser.charsmap)
            except CharsMapFault as fault:
                self._reject("normalizer_spec.precompiled_charsmap", f"is not a valid map: {fault}")
        pad: Literal["before", "after", "nowhere"] = "nowhere"
        if normaliser.dummy_prefix:
            pad = "after" if file.whitespace_as_suffix else "before"
        spacing = Spacing(
            table=normaliser.charsmap,
            kept=tuple(piece.text for _, piece in self._of(PieceType.USER_DEFINED)),
            tidy=normaliser.tidy,
            pad=pad,
            mark=MARK if normaliser.escape else " ",
        )
        if growth((spacing,)) > MAX_GROWTH:
            self._reject(
                "normalizer_spec.precompiled_charsmap",
                f"can make a text more than {MAX_GROWTH} times longer",
            )
        return spacing

    def _added(self) -> tuple[AddedToken, ...]:
        symbols = self._of(PieceType.USER_DEFINED)
        names = {piece.text for _, piece in symbols}
        if unknown := self._also_special - names:
            raise VocabularyError(
                self._source,
                f"it has no user-defined symbol {min(unknown)!r}, which is in also_special",
                "correct also_special",
            )
        for i, piece in symbols:
            starts = sum(piece.text[:n] in names for n in range(1, len(piece.text) + 1))
            if starts > MAX_SYMBOLS_AT_POSITION:
                self._reject(
                    f"pieces[{i}]",
                    f"is a user-defined symbol with {starts - 1} others as prefixes",
                    _UNSUPPORTED,
                )
        control = [
            AddedToken(content=piece.text, id=i, special=True, name=piece.text)
            for i, piece in self._of(PieceType.CONTROL)
        ]
        return (
            *control,
            *(
                AddedToken(
                    content=piece.text,
                    id=i,
                    special=piece.text in self._also_special,
                    name=piece.text,
                    normalised=True,
                )
                for i, piece in symbols
            ),
        )

    def _reject(self, path: str, problem: str, remedy: str = REMEDY) -> NoReturn:
        raise VocabularyError(self._source, f"{path} {problem}", remedy)
