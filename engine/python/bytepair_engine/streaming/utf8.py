"""UTF-8 that arrives in pieces, cut anywhere."""

from __future__ import annotations

from codecs import utf_8_decode
from typing import Final

from bytepair_engine.backends.interface import DecodeErrors
from bytepair_engine.errors import InvalidUnicode


class Utf8Decoder:
    """Decodes bytes as they come and holds back only what a further byte can make a
    character of: at most three bytes.

    Invalid bytes give one U+FFFD for each maximal subpart, as the WHATWG's decoder and
    `bytes.decode` do, at the moment that nothing can complete them.

    Attributes:
        pending: The bytes that are held back.
        decoded: How many bytes have become text.
        fault: In strict decoding, the first invalid byte, after which nothing is decoded.
    """

    __slots__ = ("_errors", "decoded", "fault", "pending")

    def __init__(self, errors: DecodeErrors, before: bytes = b"") -> None:
        """Start after the bytes `before`, whose text is not given and whose faults are ignored."""
        self._errors: Final = errors
        self.pending = b""
        self.decoded = 0
        if before:
            context = Utf8Decoder("replace")
            context.decode(before)
            self.pending, self.decoded = context.pending, context.decoded
        self.fault: InvalidUnicode | None = None

    def decode(self, data: bytes, *, final: bool = False) -> str:
        """Decode the next bytes.

        Args:
            data: Any bytes.
            final: Whether they are the last, so that nothing is held back.
        Returns:
            The text that became certain; in strict decoding, up to the first invalid byte.
        """
        if self.pending:
            data = self.pending + data
        try:
            text, used = utf_8_decode(data, self._errors, final)
            if used == len(data) - 2 and data[used] == 0xED and data[used + 1] >= 0xA0:
                # Held back by the standard library for its "surrogatepass", although no
                # character starts like that.
                text, used = utf_8_decode(data, self._errors, True)
        except UnicodeDecodeError as error:
            self.fault = InvalidUnicode(self.decoded + error.start, "invalid UTF-8")
            text, used = data[: error.start].decode(), error.start
            data = data[:used]
        self.decoded += used
        self.pending = data[used:]
        return text
