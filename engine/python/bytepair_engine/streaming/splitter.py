"""Divide text that arrives in pieces into chunks that can be encoded separately."""

from __future__ import annotations

from typing import Final

from bytepair_engine.errors import PieceTooLong, SpecialTokenFound
from bytepair_engine.streaming.split_points import SplitPoints
from bytepair_engine.streaming.utf8 import Utf8Decoder
from bytepair_engine.vocabulary.special_search import SpecialSearch, special_search

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

    All that is released, and the error if there is one, do not depend on how the text is divided
    into pieces: the limit is checked at the same character. The cost of a piece is proportional to
    its length, however short the pieces are.

    Attributes:
        bytes_released: Number of bytes of the text that were released.
    """

    __slots__ = (
        "_allowed",
        "_context",
        "_disallowed",
        "_held_bytes",
        "_isolated",
        "_length",
        "_max_pending",
        "_names",
        "_parts",
        "_released",
        "_settle_at",
        "_split_points",
        "_tail",
        "_utf8",
        "bytes_released",
    )

    def __init__(
        self,
        split_points: SplitPoints,
        *,
        allowed: SpecialSearch,
        disallowed: SpecialSearch,
        either: SpecialSearch,
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
        isolated = split_points.isolated
        self._isolated: Final = (
            None if isolated is None else special_search(isolated.intersection(allowed.names))
        )
        self._max_pending: Final = max_pending_bytes
        self._context: Final = max(_LOCAL_CONTEXT, either.longest)
        self._utf8: Final = Utf8Decoder("strict")
        self._parts: list[str] = []  # the buffered text
        self._released: list[str] = []  # the text to return
        self._length = 0  # of the buffered text in characters
        self._held_bytes = 0  # the length of its UTF-8
        self._tail = ""  # its end, which the local rules see together with the next piece
        self._settle_at = _SETTLE_AFTER
        self.bytes_released = 0

    @property
    def pending_bytes(self) -> int:
        """Number of buffered bytes, which wait for more text."""
        return self._held_bytes + len(self._utf8.pending)

    def take_released(self) -> str:
        """Return the released text, and do not keep it: after a call that failed, the text before
        the error. It ends at most where a disallowed special token starts."""
        released, self._released = self._released, []
        return "".join(released)

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
        size = self._utf8.decoded - start
        at = 0
        while (room := self._max_pending - self._held_bytes) < size:
            # Up to the first character beyond the limit, which may decide where the text is split.
            part = text[at : at + room + 1]
            part = part[: len(part.encode()[:room].decode(errors="ignore")) + 1]
            at += len(part)
            size -= self._add(part, len(part.encode()))
            while self._held_bytes > self._max_pending:
                if not self._settle():
                    raise PieceTooLong(self._max_pending, self.bytes_released)
        self._add(text[at:] if at else text, size)
        if self._length >= self._settle_at and not self._settle():
            self._settle_at = 2 * self._length
        self._raise_fault()
        return self.take_released()

    def finish(self) -> str:
        """End the text.

        Returns:
            The buffered text; "" if there is none.
        Raises:
            InvalidUnicode: The last character is incomplete.
            SpecialTokenFound: It is incomplete, after a disallowed special token.
        """
        self._utf8.decode(b"", final=True)
        self._raise_fault()
        self._release(self._length)
        return self.take_released()

    def _raise_fault(self) -> None:
        """Raise the error of the text's Unicode, after the text that is certain before it."""
        if self._utf8.fault is not None:
            while self._settle():
                pass
            raise self._utf8.fault

    def _add(self, text: str, size: int) -> int:
        """Add text to the buffer, and release the text up to a split point by the local rules.

        Returns:
            `size`, the length of its UTF-8.
        """
        window, before = self._tail + text, self._length - len(self._tail)
        local = self._local_split_point(window, len(self._tail))
        self._hold(text)
        self._held_bytes += size
        self._tail = window[-self._context :]
        if local:
            self._release(before + local)
        return size

    def _hold(self, text: str) -> None:
        """Add `text` to the buffer. Each part is longer than the next, so a character is copied a
        logarithmic number of times, however many pieces there are."""
        self._length += len(text)
        self._parts.append(text)
        while len(self._parts) > 1 and len(self._parts[-2]) <= len(self._parts[-1]):
            last = self._parts.pop()
            self._parts[-1] += last

    def _release(self, point: int) -> None:
        """Move the text before `point` from the buffer to the released text."""
        text = "".join(self._parts)
        self._released.append(text[:point])
        rest = text[point:]
        self._parts = [rest] if rest else []
        self._length = len(rest)
        held, self._held_bytes = self._held_bytes, len(rest.encode())
        self.bytes_released += held - self._held_bytes
        self._tail = rest[-self._context :]
        self._settle_at = max(_SETTLE_AFTER, 2 * len(rest))

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

    def _settle(self) -> bool:
        """Search all of the buffered text for a split point, and release the text up to the last
        one. The rest can have another one: a rule is tried only if those before it find none.

        Returns:
            Whether there was one.
        """
        text = "".join(self._parts)
        end = self._names.unfinished(text)
        if rejected := self._disallowed.search(text, end):
            self._release(rejected.start())
            raise SpecialTokenFound(rejected.group(), self.bytes_released)
        if self._isolated is None:
            point = self._last_point(text, end)
        else:
            point = self._between(text, self._isolated) or self._local_split_point(text, 1)
        if point:
            self._release(point)
        return point > 0

    @staticmethod
    def _between(text: str, isolated: SpecialSearch) -> int:
        """Return the last position between two isolated special tokens; 0 if there is none."""
        point = end = 0
        for special in isolated.finditer(text, len(text)):
            if special.start() == end:
                point = end
            end = special.end()
        return point

    def _last_point(self, text: str, end: int) -> int:
        """Return the last split point up to `end` by all rules; 0 if there is none."""
        start = 0
        for special in self._allowed.finditer(text, end):
            if special.end() > end:
                end = special.start()
                break
            start = special.end()
        stretch = text[start:end]
        local = self._split_points.local(stretch, len(stretch))
        return start + (local or self._split_points.settled(stretch))
