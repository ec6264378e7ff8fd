"""The tokens of documents that come in pieces: their ids, and where they start."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from typing import Final, Protocol

from bytepair_engine import Encoding, StreamEncoder, can_stream
from bytepair_engine.vocabulary.special_sets import SpecialTokens

#: A document may hold any amount of text that can only be encoded together.
_NO_LIMIT: Final = 2**62


class IdStream(Protocol):
    """The ids of one document."""

    def feed(self, piece: str) -> list[int]:
        """Take the next piece, and give the ids that are certain now."""

    def finish(self) -> list[int]:
        """Give the rest of the ids."""


def id_stream(encoding: Encoding, *, allowed_special: SpecialTokens = frozenset()) -> IdStream:
    """Start a document. It is held as a whole where the encoding does not say where a text can be
    cut.

    Args:
        encoding: What it is encoded into.
        allowed_special: As for `Encoding.encode`; the others are ordinary text.
    """
    if not can_stream(encoding):
        return _Whole(encoding, allowed_special)
    return StreamEncoder(
        encoding,
        allowed_special=allowed_special,
        disallowed_special=(),
        max_pending_bytes=_NO_LIMIT,
    )


class _Whole:
    def __init__(self, encoding: Encoding, allowed_special: SpecialTokens) -> None:
        self._encoding: Final = encoding
        self._allowed: Final = allowed_special
        self._pieces: Final[list[str]] = []

    def feed(self, piece: str) -> list[int]:
        self._pieces.append(piece)
        return []

    def finish(self) -> list[int]:
        return self._encoding.encode(
            "".join(self._pieces), allowed_special=self._allowed, disallowed_special=()
        )


class TokenStarts:
    """Where the tokens of documents start, one document after the other, in bytes of UTF-8.

    Where an encoding is a rank table, its tokens' bytes are those of the text. Any other may change
    the text before, so that starts are known only once a document is complete.

    Attributes:
        starts: Those of the current document that were found and not dropped, in order.
        known: All starts before this place were found.
        unknown: Those of them that stand for text which the vocabulary cannot spell.
    """

    def __init__(self, encoding: Encoding) -> None:
        """Prepare; `begin` comes before each document."""
        self._encoding: Final = encoding
        self._unknown_id: Final = (
            None if encoding.pipeline is None else encoding.pipeline.model.unknown
        )
        self._lengths: Final = {
            encoding.encode_single_token(token): len(token)
            for token in ([] if encoding.pipeline else encoding.token_byte_values())
        }
        self.begin()

    def begin(self) -> None:
        """Start a document."""
        self.starts: list[int] = []
        self.unknown: list[int] = []
        self.known = 0
        self._pieces: list[str] = []
        self._ids = None if self._encoding.pipeline else id_stream(self._encoding)

    def feed(self, piece: str) -> None:
        """Take the next piece of the document."""
        if self._ids is None:
            self._pieces.append(piece)
        else:
            self._add(self._ids.feed(piece))

    def finish(self) -> None:
        """Say that the document is complete."""
        if self._ids is not None:
            self._add(self._ids.finish())
            return
        text = "".join(self._pieces)
        ids, self.starts = self._encoding.encode_with_offsets(
            text, unit="byte", disallowed_special=()
        )
        self.known = len(text.encode())
        # What is put after a text belongs to its last byte.
        self.starts = [min(start, self.known - 1) for start in self.starts]
        self.unknown = [
            start
            for token_id, start in zip(ids, self.starts, strict=True)
            if token_id == self._unknown_id
        ]

    def drop(self, end: int) -> None:
        """Forget the starts before a place."""
        for places in (self.starts, self.unknown):
            del places[: bisect_left(places, end)]

    def _add(self, ids: Sequence[int]) -> None:
        if ids:
            ends = [*accumulate(map(self._lengths.__getitem__, ids), initial=self.known)]
            self.known = ends.pop()
            self.starts += ends
