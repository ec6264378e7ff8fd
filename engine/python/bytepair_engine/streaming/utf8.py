"""Incremental decoding of UTF-8."""

from __future__ import annotations

from codecs import utf_8_decode
from typing import Final

from bytepair_engine.backends.interface import DecodeErrors
from bytepair_engine.errors import InvalidUnicode, wrong_type


class Utf8Decoder:
    """Decodes bytes as they arrive, and holds back only those that a further byte can complete to
    a character: at most three.

    Invalid bytes become one U+FFFD for each maximal subpart, as in the WHATWG's decoder and
    `bytes.decode`, as soon as no further byte can complete them.

    Attributes:
        pending: The bytes held back.
        decoded: Number of bytes that have become text.
        fault: The error of strict decoding, after which nothing is decoded; None if there is none.
    """

    __slots__ = ("_errors", "decoded", "fault", "pending")

    def __init__(self, errors: DecodeErrors, before: bytes = b"") -> None:
        """Start after the bytes `before`: their text is not returned, their errors are ignored."""
        self._errors: Final = errors
        self.pending = b""
        self.decoded = 0
        if before:
            context = Utf8Decoder("replace")
            context.decode(before)
            self.pending, self.decoded = context.pending, context.decoded
        self.fault: InvalidUnicode | None = None

    def decode_piece(self, piece: str | bytes) -> str:
        """Decode the next piece of a text: bytes as in `decode`, or a string.

        Returns:
            The text that is certain now, up to the first fault. `fault` is also set if the string
            holds a lone surrogate, or follows bytes that end within a character.
        Raises:
            TypeError: The piece is of another type.
        """
        if isinstance(piece, bytes):
            return self.decode(piece)
        if not isinstance(piece, str):
            raise wrong_type("piece", "str or bytes", piece)
        if piece and self.pending:
            self.fault = InvalidUnicode(self.decoded, "a character that is cut off")
            return ""
        try:
            self.decoded += len(piece) if piece.isascii() else len(piece.encode())
        except UnicodeEncodeError as error:
            piece = piece[: error.start]
            self.decoded += len(piece.encode())
            self.fault = InvalidUnicode(self.decoded, "lone surrogate")
        return piece

    def decode(self, data: bytes, *, final: bool = False) -> str:
        """Decode the next bytes.

        Args:
            data: Any bytes.
            final: Whether they are the last; then nothing is held back.
        Returns:
            The text that is certain now; in strict decoding, up to the first invalid byte.
        """
        data = self.pending + data
        try:
            text, used = utf_8_decode(data, self._errors, final)
            if used == len(data) - 2 and data[used] == 0xED and data[used + 1] >= 0xA0:
                # The standard library holds these bytes back for "surrogatepass", although no
                # character starts with them.
                text, used = utf_8_decode(data, self._errors, True)
        except UnicodeDecodeError as error:
            self.fault = InvalidUnicode(self.decoded + error.start, "invalid UTF-8")
            text, used = data[: error.start].decode(), error.start
            data = data[:used]
        self.decoded += used
        self.pending = data[used:]
        return text
