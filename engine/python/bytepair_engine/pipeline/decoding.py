"""Incremental decoding of ids to bytes, which may depend on the position of a token."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from copy import copy
from typing import Final

from bytepair_engine.errors import UnknownTokenId
from bytepair_engine.pipeline.definition import Decoder


class DecoderState:
    """The state of decoding one sequence of ids.

    The joined results of `feed` and `finish` do not depend on how the ids are divided into calls.
    At most the last token and `strip_end` characters are held back.
    """

    __slots__ = ("_decoder", "_end", "_held", "_last", "_lead", "_start", "_to_strip", "_unit")

    def __init__(self, decoder: Decoder) -> None:
        """Start before the first id."""
        character, count = decoder.strip_end
        self._decoder: Final = decoder
        self._start = True  # whether the next token is the first
        self._held: int | None = None  # a token with other bytes if it is the last
        self._unit: Final = decoder.strip_start[0].encode()
        self._to_strip = decoder.strip_start[1]
        self._end: Final = (character.encode(), count)
        self._lead = b""  # an incomplete character that may be stripped from the start
        self._last = b""  # characters that may be stripped from the end

    def feed(self, ids: Iterable[int]) -> bytes:
        """Decode the next ids.

        Returns:
            The bytes that are certain now.
        Raises:
            UnknownTokenId: No token has one of the ids; the index is that in `ids`.
        """
        decoder = self._decoder
        parts = []
        for index, token_id in enumerate(map(operator.index, ids)):
            if token_id not in decoder.middle:
                raise UnknownTokenId(token_id, index)
            if self._held is not None:
                parts.append(self._bytes(self._held, decoder.first))
                self._held = None
            if token_id in decoder.last or (self._start and token_id in decoder.only):
                self._held = token_id
            else:
                parts.append(self._bytes(token_id, decoder.first))
        return self._stripped(b"".join(parts))

    def finish(self) -> bytes:
        """End the sequence.

        Returns:
            The bytes that were held back.
        """
        data = b""
        if self._held is not None:
            decoder = self._decoder
            data = self._bytes(self._held, decoder.only, decoder.last)
            self._held = None
        data = self._stripped(data) + self._last + self._lead
        self._last = self._lead = b""
        unit, count = self._end
        while unit and count and data.endswith(unit):
            data, count = data[: -len(unit)], count - 1
        return data

    @property
    def settled(self) -> bool:
        """Whether every further token decodes as in the middle of a sequence."""
        decoder = self._decoder
        return not (
            self._start or self._to_strip or self._lead or decoder.last or decoder.strip_end[1]
        )

    def copy(self) -> DecoderState:
        """Return a copy of the state, to continue with other ids."""
        return copy(self)

    @property
    def pending_bytes(self) -> int:
        """Number of bytes held back; the last token counts as in the middle of a sequence."""
        held = 0 if self._held is None else len(self._decoder.middle[self._held])
        return held + len(self._lead) + len(self._last)

    def _bytes(
        self, token_id: int, at_start: Mapping[int, bytes], later: Mapping[int, bytes] | None = None
    ) -> bytes:
        """Return the bytes of a token: those for its position, else those of the middle."""
        middle = self._decoder.middle
        table = at_start if self._start else (middle if later is None else later)
        data = table.get(token_id, middle[token_id])
        self._start = self._start and self._decoder.first_until_text and not data
        return data

    def _stripped(self, data: bytes) -> bytes:
        """Strip the start of the text from `data`, and hold back what may be stripped from the
        end."""
        if self._to_strip:
            data, self._lead = self._lead + data, b""
        while self._to_strip and data:
            if data.startswith(self._unit):
                data, self._to_strip = data[len(self._unit) :], self._to_strip - 1
            elif self._unit.startswith(data):
                self._lead, data = data, b""
            else:
                self._to_strip = 0
        unit, count = self._end
        if unit and count:
            data, self._last = self._last + data, b""
            end = len(data)
            while count and data.endswith(unit, 0, end):
                end, count = end - len(unit), count - 1
            data, self._last = data[:end], data[end:]
        return data
