"""The ids and starts of the tokens of documents that arrive in pieces."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from typing import Final, Protocol

from bytepair_engine import Encoding, StreamEncoder, can_stream
from bytepair_engine.vocabulary.special_sets import SpecialTokens

#: A document may contain any amount of text without a split point.
_NO_LIMIT: Final = 2**62


class IdStream(Protocol):
    """The ids of one document."""

    def feed(self, piece: str) -> list[int]:
        """Encode the next piece, and return the ids that are certain now."""

    def finish(self) -> list[int]:
        """Return the remaining ids."""


def id_stream(encoding: Encoding, *, allowed_special: SpecialTokens = frozenset()) -> IdStream:
    """Start a document. It is buffered completely if text cannot be streamed into the encoding.

    Args:
        encoding: The encoding.
        allowed_special: See `Encoding`; other special tokens are ordinary text.
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
    """The starts of the tokens of documents, one document at a time, in bytes of UTF-8.

    The tokens of a rank table have the bytes of the text. Other encodings may change the text, so
    their starts are known only after the end of a document.

    Attributes:
        starts: The starts found in the current document and not dropped, in order.
        known: Position before which all starts are known.
        unknown: The starts of tokens for text that the vocabulary cannot represent.
    """

    def __init__(self, encoding: Encoding) -> None:
        """Prepare for documents; call `begin` before each one."""
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
        """Add the next piece of the document."""
        if self._ids is None:
            self._pieces.append(piece)
        else:
            self._add(self._ids.feed(piece))

    def finish(self) -> None:
        """End the document."""
        if self._ids is not None:
            self._add(self._ids.finish())
            return
        text = "".join(self._pieces)
        ids, self.starts = self._encoding.encode_with_offsets(
            text, unit="byte", disallowed_special=()
        )
        self.known = len(text.encode())
        # A token after the end of the text belongs to its last byte.
        self.starts = [min(start, self.known - 1) for start in self.starts]
        self.unknown = [
            start
            for token_id, start in zip(ids, self.starts, strict=True)
            if token_id == self._unknown_id
        ]

    def drop(self, end: int) -> None:
        """Drop the starts before a position."""
        for starts in (self.starts, self.unknown):
            del starts[: bisect_left(starts, end)]

    def _add(self, ids: Sequence[int]) -> None:
        if ids:
            ends = [*accumulate(map(self._lengths.__getitem__, ids), initial=self.known)]
            self.known = ends.pop()
            self.starts += ends
