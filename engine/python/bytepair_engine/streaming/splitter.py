"""Divide text that arrives in pieces into chunks that can be encoded separately."""

from __future__ import annotations

from typing import Final

from bytepair_engine.errors import PieceTooLong, SpecialTokenFound
from bytepair_engine.streaming.split_points import SplitPoints
from bytepair_engine.streaming.utf8 import Utf8Decoder
from bytepair_engine.vocabulary.special_names import SpecialNames

#: Number of buffered characters from which all of them are searched for a split point. If none is
#: found, the next search waits until the buffer has doubled.
_SETTLE_AFTER: Final = 4096

#: Maximum number of split points skipped by a search because a special token extends across them.
_MAX_STEPS_BACK: Final = 8

#: Number of characters before a split point that the local rules see; see `split_points`.
_LOCAL_CONTEXT: Final = 2


class StreamSplitter:
    """Buffers text up to a safe split point. The ids of its chunks, encoded separately with the
    same special tokens, are those of the whole text.

    The cost of a piece is proportional to its length, however short the pieces are.
    """

    __slots__ = (
        "_allowed",
        "_context",
        "_disallowed",
        "_held_bytes",
        "_length",
        "_max_pending",
        "_names",
        "_parts",
        "_settle_at",
        "_split_points",
        "_tail",
        "_utf8",
    )

    def __init__(
        self,
        split_points: SplitPoints,
        *,
        allowed: SpecialNames,
        disallowed: SpecialNames,
        either: SpecialNames,
        max_pending_bytes: int,
    ) -> None:
        """Start a stream.

        Args:
            split_points: The split points of the encoding.
            allowed: The special tokens that become their id.
            disallowed: The strings that are an error.
            either: The union of both.
            max_pending_bytes: Limit of the buffered text, at least 1.
        """
        self._split_points: Final = split_points
        self._allowed: Final = allowed
        self._disallowed: Final = disallowed
        self._names: Final = either
        self._max_pending: Final = max_pending_bytes
        self._context: Final = max(_LOCAL_CONTEXT, either.longest)
        self._utf8: Final = Utf8Decoder("strict")
        self._parts: list[str] = []  # the buffered text
        self._length = 0  # its length in characters
        self._held_bytes = 0  # the length of its UTF-8
        self._tail = ""  # its end, which the local rules see together with the next piece
        self._settle_at = _SETTLE_AFTER

    @property
    def pending_bytes(self) -> int:
        """Number of buffered bytes, which wait for more text."""
        return self._held_bytes + len(self._utf8.pending)

    @property
    def bytes_returned(self) -> int:
        """Number of bytes of the text that were returned."""
        return self._utf8.decoded - self._held_bytes

    def feed(self, piece: str | bytes) -> str:
        """Add the next piece.

        Args:
            piece: Text, or UTF-8 bytes that may end within a character.
        Returns:
            The text up to the last split point that was found; "" if there was none.
        Raises:
            InvalidUnicode: The piece holds a lone surrogate, or is not UTF-8.
            SpecialTokenFound: The buffered text was searched, and contains a disallowed special
                token.
            PieceTooLong: More than `max_pending_bytes` have no split point.
        """
        start = self._utf8.decoded
        text = self._utf8.decode_piece(piece)
        self._held_bytes += self._utf8.decoded - start
        window, before = self._tail + text, self._length - len(self._tail)
        local = self._local_split_point(window, len(self._tail))
        self._hold(text)
        self._tail = window[-self._context :]
        if local:
            return self._release(before + local)
        if self._length >= self._settle_at or self.pending_bytes > self._max_pending:
            return self._release(self._settled_split_point())
        return ""

    def finish(self) -> str:
        """End the text.

        Returns:
            The buffered text; "" if there is none.
        Raises:
            InvalidUnicode: The last character is incomplete.
        """
        self._utf8.decode(b"", final=True)
        if self._utf8.fault is not None:
            raise self._utf8.fault
        return self._release(self._length)

    def _hold(self, text: str) -> None:
        """Add `text` to the buffer. Each part is longer than the next, so a character is copied a
        logarithmic number of times, however many pieces there are."""
        self._length += len(text)
        self._parts.append(text)
        while len(self._parts) > 1 and len(self._parts[-2]) <= len(self._parts[-1]):
            last = self._parts.pop()
            self._parts[-1] += last

    def _release(self, point: int) -> str:
        """Remove the text before `point` from the buffer, and return it."""
        if point == 0:
            return ""
        text = "".join(self._parts)
        released, rest = text[:point], text[point:]
        self._parts = [rest] if rest else []
        self._length = len(rest)
        self._held_bytes = len(rest.encode())
        self._tail = rest[-self._context :]
        self._settle_at = max(_SETTLE_AFTER, 2 * len(rest))
        return released

    def _local_split_point(self, window: str, known: int) -> int:
        """Return the last split point in `window` by the local rules; 0 if there is none, or if
        it is within the first `known` characters, which were searched before."""
        names = self._names
        end = min(len(window), names.unfinished(window) + 1)
        for _ in range(_MAX_STEPS_BACK):
            found = self._split_points.local(window, end)
            if found < known:
                break
            across = names.across(window, found)
            if across is None:
                return found
            end = across + 1
        return 0

    def _settled_split_point(self) -> int:
        """Return the last split point, from all of the buffered text; 0 if there is none."""
        text = "".join(self._parts)
        end = self._names.unfinished(text)
        if rejected := self._disallowed.search(text, end):
            offset = self.bytes_returned + len(text[: rejected.start()].encode())
            raise SpecialTokenFound(rejected.group(), offset)
        start = 0
        for special in self._allowed.finditer(text, end):
            if special.end() > end:
                end = special.start()
                break
            start = special.end()
        stretch = text[start:end]
        local = self._split_points.local(stretch, len(stretch))
        point = start + (local or self._split_points.settled(stretch))
        if point == 0 and self.pending_bytes > self._max_pending:
            raise PieceTooLong(self._max_pending, self.bytes_returned)
        self._settle_at = 2 * self._length
        return point
