"""Text that arrives in pieces, passed on in chunks that can be encoded one by one."""

from __future__ import annotations

from typing import Final

from bytepair_engine.errors import InvalidUnicode, PieceTooLong, SpecialTokenFound
from bytepair_engine.streaming.split_points import SplitPoints
from bytepair_engine.streaming.utf8 import Utf8Decoder
from bytepair_engine.vocabulary.special_names import SpecialNames

#: How many characters are held before a split point is looked for that costs a look at all of
#: them; each time that none is found, the double is waited for.
_SETTLE_AFTER: Final = 4096

#: How often the search for a split point steps back from one that a special token crosses.
_STEPS_BACK: Final = 8

#: Characters that the local rules may look at before a split point; see `split_points`.
_LOCAL_CONTEXT: Final = 2


class StreamSplitter:
    """Holds text back until a safe split point, so that the chunks that it gives, each encoded by
    itself with the same special tokens, have the ids of the whole text.

    The cost of a piece is in proportion to its length, however short the pieces are.
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
            split_points: Those of the split pattern.
            allowed: The special tokens that become their id.
            disallowed: The strings that are an error.
            either: Both.
            max_pending_bytes: At least 1: how much text may be held.
        """
        self._split_points: Final = split_points
        self._allowed: Final = allowed
        self._disallowed: Final = disallowed
        self._names: Final = either
        self._max_pending: Final = max_pending_bytes
        self._context: Final = max(_LOCAL_CONTEXT, either.longest)
        self._utf8: Final = Utf8Decoder("strict")
        self._parts: list[str] = []  # the text that is held
        self._length = 0  # of all chunks together, in characters
        self._held_bytes = 0  # of their UTF-8
        self._tail = ""  # their end: all of them that is looked at when a piece comes
        self._settle_at = _SETTLE_AFTER

    @property
    def pending_bytes(self) -> int:
        """How many bytes wait for more text."""
        return self._held_bytes + len(self._utf8.pending)

    @property
    def bytes_given(self) -> int:
        """How many bytes of the text were given on."""
        return self._utf8.decoded - self._held_bytes

    def feed(self, piece: str | bytes) -> str:
        """Take the next piece: characters, or UTF-8 that may be cut within one.

        Returns:
            The text up to the last split point that was found; "" if there was none.
        Raises:
            InvalidUnicode: A lone surrogate, or bytes that are not UTF-8.
            SpecialTokenFound, PieceTooLong: More than `max_pending_bytes` have no split point; the
                former if a disallowed special token is among them.
        """
        text = self._decode(piece)
        window, before = self._tail + text, self._length - len(self._tail)
        local = self._local_border(window, len(self._tail))
        self._hold(text)
        self._tail = window[-self._context :]
        if local:
            return self._give(before + local)
        if self._length >= self._settle_at or self.pending_bytes > self._max_pending:
            return self._give(self._settled_border())
        return ""

    def finish(self) -> str:
        """Say that no more text comes.

        Returns:
            What was held; "" for nothing.
        Raises:
            InvalidUnicode: The last character is not complete.
        """
        self._utf8.decode(b"", final=True)
        if self._utf8.fault is not None:
            raise self._utf8.fault
        return self._give(self._length)

    def _decode(self, piece: str | bytes) -> str:
        utf8 = self._utf8
        if isinstance(piece, bytes):
            start = utf8.decoded
            text = utf8.decode(piece)
            if utf8.fault is not None:
                raise utf8.fault
            self._held_bytes += utf8.decoded - start
            return text
        if utf8.pending:
            raise InvalidUnicode(utf8.decoded, "a character that is cut off")
        try:
            size = len(piece) if piece.isascii() else len(piece.encode())
        except UnicodeEncodeError as error:
            offset = utf8.decoded + len(piece[: error.start].encode())
            raise InvalidUnicode(offset, "lone surrogate") from None
        utf8.decoded += size
        self._held_bytes += size
        return piece

    def _hold(self, text: str) -> None:
        """Keep `text`; each chunk stays longer than the next, so that a character is copied a
        logarithmic number of times however many pieces there are."""
        self._length += len(text)
        self._parts.append(text)
        while len(self._parts) > 1 and len(self._parts[-2]) <= len(self._parts[-1]):
            last = self._parts.pop()
            self._parts[-1] += last

    def _give(self, point: int) -> str:
        """Drop the text before `point`."""
        if point == 0:
            return ""
        text = "".join(self._parts)
        given, rest = text[:point], text[point:]
        self._parts = [rest] if rest else []
        self._length = len(rest)
        self._held_bytes = len(rest.encode())
        self._tail = rest[-self._context :]
        self._settle_at = max(_SETTLE_AFTER, 2 * len(rest))
        return given

    def _local_border(self, window: str, known: int) -> int:
        """The last split point in `window` by the local rules, of those that the first `known`
        characters do not decide alone; 0 if there is none."""
        names = self._names
        end = min(len(window), names.unfinished(window) + 1)
        for _ in range(_STEPS_BACK):
            found = self._split_points.local(window, end)
            if found == 0 or found < known:
                break
            across = names.across(window, found)
            if across is None:
                return found
            end = across + 1
        return 0

    def _settled_border(self) -> int:
        """The last split point by a look at all the text that is held; 0 if there is none."""
        text = "".join(self._parts)
        end = self._names.unfinished(text)
        if rejected := self._disallowed.search(text, end):
            offset = self.bytes_given + len(text[: rejected.start()].encode())
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
            raise PieceTooLong(self._max_pending, self.bytes_given)
        self._settle_at = 2 * self._length
        return point
