"""Decode token ids that arrive one by one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from threading import Lock
from typing import Any, Final, Generic, Literal, TypeVar, cast, overload

from bytepair_engine.backends.interface import DecodeErrors
from bytepair_engine.encoding import Encoding
from bytepair_engine.errors import BytepairError, InvalidOption, StreamFinished, UnknownTokenId
from bytepair_engine.pipeline.decoding import DecoderState
from bytepair_engine.streaming.stop_strings import StopMatcher, compile_stops
from bytepair_engine.streaming.utf8 import Utf8Decoder

T = TypeVar("T", str, bytes)

#: Encodings whose tokens' texts are kept for streams to come.
_KEPT_TEXTS: Final = 16


class StreamDecoder(Generic[T]):
    """Decodes a stream of ids: what `feed` and `finish` give, joined, is what
    `Encoding.decode` gives for all ids at once, up to the first stop string.

    Every delta is whole characters. At most three bytes of an incomplete character are held
    back, and the suffix of the text that can still become a stop string. The cost of an id
    does not depend on how many came before it.

    Errors do not cost the text before them. `feed` gives what was certain, sets `fault`, and
    the next call of `feed` or `finish` raises it; so a loop that writes each delta and calls
    `finish` at the end loses neither text nor error. At a fault the text that was held for a
    stop string is released; bytes of an incomplete character are not text and are dropped.

    Several threads may use one decoder: a lock serialises their calls.

    >>> from bytepair_engine.toy import toy
    >>> decoder = StreamDecoder(toy(), stop=["bb"])
    >>> [decoder.feed([token_id]) for token_id in (195, 169, 257, 98, 97)]
    ['', 'é', 'a', '', '']
    >>> decoder.stop_matched, decoder.tokens_consumed
    ('bb', 4)
    """

    __slots__ = (
        "_before",
        "_closed",
        "_empty",
        "_encoding",
        "_ends",
        "_lock",
        "_skip",
        "_stop",
        "_taken",
        "_utf8",
        "_whole",
        "fault",
        "tokens_consumed",
        "undelivered",
    )

    @overload
    def __init__(
        self: StreamDecoder[str],
        encoding: Encoding,
        *,
        prefill_ids: Sequence[int] = (),
        skip_special_tokens: bool = False,
        stop: Collection[str] = (),
        include_stop: bool = False,
        errors: DecodeErrors = "replace",
        as_bytes: Literal[False] = False,
    ) -> None: ...

    @overload
    def __init__(
        self: StreamDecoder[bytes],
        encoding: Encoding,
        *,
        prefill_ids: Sequence[int] = (),
        skip_special_tokens: bool = False,
        stop: Collection[str] = (),
        include_stop: bool = False,
        as_bytes: Literal[True],
    ) -> None: ...

    def __init__(
        self,
        encoding: Encoding,
        *,
        prefill_ids: Sequence[int] = (),
        skip_special_tokens: bool = False,
        stop: Collection[str] = (),
        include_stop: bool = False,
        errors: DecodeErrors = "replace",
        as_bytes: bool = False,
    ) -> None:
        """Start a stream.

        Args:
            encoding: What the ids belong to.
            prefill_ids: Ids that came before the stream, such as those of a prompt. They
                give no text, but bytes at their end that begin a character are completed by
                the first ids of the stream, or become U+FFFD there.
            skip_special_tokens: Ids of special tokens are as if they were not there: they
                neither end nor lose a character that is not complete yet.
            stop: The stream ends before the first of these in its text, of several that
                start at one place before the longest. None may be empty.
            include_stop: The text ends after the stop string that matched.
            errors: What bytes that are not UTF-8 become: "replace" gives U+FFFD as soon as
                no further byte can complete them; "strict" is a fault.
            as_bytes: Give bytes as they come, and match the UTF-8 of stop strings in them.
        Raises:
            UnknownTokenId: `prefill_ids` holds one; its index is one of `prefill_ids`.
            InvalidOption: `stop` is one string or holds an empty one or one with a lone
                surrogate, or `errors` is neither of the two, or strict although `as_bytes`.
        """
        if errors not in ("replace", "strict"):
            raise InvalidOption("errors", 'must be "replace" or "strict"')
        if as_bytes and errors == "strict":
            raise InvalidOption("errors", "cannot be strict where bytes are given as they are")
        self._encoding: Final[Encoding] = encoding
        self._whole: Final[dict[int, Any]] = _whole_texts(encoding)
        self._skip: Final = skip_special_tokens
        self._lock: Final = Lock()
        self._closed = False
        self._taken = 0  # ids given to `feed`
        self._empty: Final[T] = cast(Any, b"" if as_bytes else "")
        self._stop: Final[StopMatcher[T] | None] = _stop_matcher(
            stop, self._empty, include_stop=include_stop
        )
        #: How many ids were taken: all of them, or those before the one at fault, or those
        #: up to and with the one that completed the stop string.
        self.tokens_consumed = 0
        #: What the next call raises; None as long as all is well.
        self.fault: BytepairError | None = None
        #: What `finish` released before it found a fault of its own and raised it.
        self.undelivered: T = self._empty
        # Where tokens' bytes depend on their place, what knows it, and how it was before the ids
        # of a call; None as soon as, or where, they no longer do.
        self._ends = None if encoding.decoder is None else DecoderState(encoding.decoder)
        self._before = self._ends
        context, _ = self._bytes_of(prefill_ids)
        if self.fault is not None:
            raise self.fault
        self._utf8: Final = None if as_bytes else Utf8Decoder(errors, context)

    @property
    def pending_bytes(self) -> int:
        """How many bytes are held back, of an incomplete character and of a possible stop
        string, the latter in UTF-8."""
        pending = 0 if self._utf8 is None else len(self._utf8.pending)
        pending += 0 if self._ends is None else self._ends.pending_bytes
        held = b"" if self._stop is None else self._stop.held
        return pending + len(held.encode() if isinstance(held, str) else held)

    @property
    def stop_matched(self) -> str | None:
        """The stop string that matched; None as long as it is not certain."""
        matched = None if self._stop is None else self._stop.matched
        return matched.decode() if isinstance(matched, bytes) else matched

    @property
    def finished(self) -> bool:
        """Whether the stream is over: after `finish`, `abandon`, a stop string or a fault."""
        return self._closed or self.fault is not None or self.stop_matched is not None

    def feed(self, ids: Iterable[int]) -> T:
        """Take the next ids, any number of them.

        Returns:
            The text, or bytes, that became certain; nothing once a stop string has matched.
        Raises:
            UnknownTokenId: The ids before held one; its index counts all ids of the stream.
            InvalidUnicode: The ids before were not UTF-8, and `errors` is "strict"; the
                offset counts the bytes of `prefill_ids` and of the stream.
            StreamFinished: After `finish`.
            Cancelled: The work was cancelled (`CancelScope`), and the stream cannot go on.
        """
        batch = ids if isinstance(ids, (list, tuple)) else list(ids)
        with self._lock:
            if len(batch) == 1:
                whole = self._take_whole(batch[0])
                if whole is not None:
                    return whole
            self._raise_if_over()
            if self.stop_matched is not None:
                return self._empty
            data, count = self._bytes_of(batch)
            if count == len(batch) == 1:
                self._remember_whole(batch[0], data)
            return self._take(batch[:count], data, last=False)

    def finish(self) -> T:
        """Say that no more ids come.

        Returns:
            What was held back; nothing once a stop string has matched.
        Raises:
            UnknownTokenId, InvalidUnicode: As `feed`; in strict decoding also where the last
                character is not complete, and then `undelivered` is the text before it.
            StreamFinished: At a second call.
        """
        with self._lock:
            self._raise_if_over()
            self._closed = True
            if self.stop_matched is not None:
                return self._empty
            delta = self._take((), b"" if self._ends is None else self._ends.finish(), last=True)
            if self.fault is not None:
                self.undelivered = delta
                raise self.fault
            return delta

    def abandon(self) -> T:
        """Say that the stream is cut off: what comes will not come here.

        Returns:
            What was held for a stop string or as the last token, as at a fault; nothing after
            the stream's end.
        """
        with self._lock:
            if self.finished:
                return self._empty
            self._closed = True
            delta = self._empty
            if self._ends is not None:
                delta = self._take((), self._ends.finish(), last=False)
            return delta if self._stop is None else delta + self._stop.finish()

    def _raise_if_over(self) -> None:
        if self.fault is not None:
            raise self.fault
        if self._closed:
            raise StreamFinished

    def _take_whole(self, token_id: int) -> T | None:
        """The text of an id whose token is whole characters, where nothing is held back and
        no stop string starts in it; None where that is not so. What most ids of most streams
        take, at a fraction of the cost."""
        utf8, stop = self._utf8, self._stop
        if utf8 is None or utf8.pending or self._closed or self.fault is not None:
            return None
        if self._ends is not None:
            return None
        text = self._whole.get(token_id)
        if text is None or (stop is not None and not stop.passes(text)):
            return None
        utf8.decoded += len(text) if text.isascii() else len(text.encode())
        self._taken += 1
        self.tokens_consumed = self._taken
        return cast(T, text)

    def _remember_whole(self, token_id: int, token: bytes) -> None:
        if self._ends is self._before is None and not self._encoding.is_special_id(token_id):
            with suppress(UnicodeDecodeError):
                self._whole[token_id] = token.decode()

    def _take(self, batch: Sequence[int], data: bytes, *, last: bool) -> T:
        """Take ids without a fault, whose bytes `data` is, before `self.fault` if there is
        one; count them."""
        utf8, stop = self._utf8, self._stop
        pending, start = b"", 0
        delta: Any = data
        if utf8 is not None:
            pending, start = utf8.pending, utf8.decoded + len(utf8.pending)
            delta = utf8.decode(data, final=last)
        seen, end = (0, None) if stop is None else (stop.seen, stop.end)
        if utf8 is not None and utf8.fault is not None:
            self.fault = utf8.fault
            count = self._ids_within(batch, utf8.fault.byte_offset - start)
        else:
            count = len(batch)
        if stop is not None:
            delta = stop.feed(cast(T, delta))
            if stop.matched is None and (last or self.fault is not None):
                delta += stop.finish()
            if stop.matched is not None:
                self.fault = None  # nothing after a stop string is read
            if stop.end is not None and stop.end != end:
                count = self._ids_until(batch, pending, stop.end - seen)
        if stop is None or stop.end is None or stop.end != end:
            self.tokens_consumed = self._taken + count
        self._taken += len(batch)
        return cast(T, delta)

    def _bytes_of(self, ids: Sequence[int]) -> tuple[bytes, int]:
        """The bytes of the ids before the first unknown one, which becomes `fault`, and how
        many ids these are."""
        known = self._encoding.without_special(ids) if self._skip else ids
        self._before = None if self._ends is None else self._ends.copy()
        try:
            return self._decoded(known), len(ids)
        except UnknownTokenId as error:
            before = error.index or 0
        index = next(islice(self._indices(ids), before, None))
        self.fault = UnknownTokenId(ids[index], self._taken + index)
        self._ends = None if self._before is None else self._before.copy()
        data = self._decoded(known[:before])
        return data if self._ends is None else data + self._ends.finish(), index

    def _decoded(self, ids: Sequence[int]) -> bytes:
        decoder, ends = self._encoding.decoder, self._ends
        if decoder is None:
            return self._encoding.decode_bytes(ids)
        if ends is None:
            return decoder.amid(ids)
        data = ends.feed(ids)
        if ends.settled:
            self._ends = None
        return data

    def _bytes_one_by_one(self) -> Callable[[int], bytes]:
        """What gives the bytes of each of the last ids in order."""
        if self._before is None:
            return self._encoding.decode_single_token_bytes
        ends = self._before.copy()
        return lambda token_id: ends.feed((token_id,))

    def _indices(self, ids: Sequence[int]) -> Iterator[int]:
        """The indices of the ids that are not skipped."""
        special = self._encoding.is_special_id
        return (i for i, token_id in enumerate(ids) if not (self._skip and special(token_id)))

    def _ids_within(self, ids: Sequence[int], size: int) -> int:
        """How many of `ids` come before the one that goes beyond `size` bytes."""
        token_bytes = self._bytes_one_by_one()
        for i in self._indices(ids):
            size -= len(token_bytes(ids[i]))
            if size < 0:
                return i
        return len(ids)

    def _ids_until(self, ids: Sequence[int], pending: bytes, size: int) -> int:
        """How many of `ids`, after the bytes `pending`, make the first `size` characters (or
        bytes) certain; all of them where only the end of the stream does."""
        utf8 = Utf8Decoder("replace", pending)
        token_bytes = self._bytes_one_by_one()
        for i in self._indices(ids):
            token = token_bytes(ids[i])
            size -= len(token if self._utf8 is None else utf8.decode(token))
            if size <= 0:
                return i + 1
        return len(ids)


@lru_cache(_KEPT_TEXTS)
def _whole_texts(encoding: Encoding) -> dict[int, str]:  # noqa: ARG001
    """The texts of the tokens of an encoding that are whole characters, special ones apart,
    as far as a stream had them one by one. Shared by its streams."""
    return {}


def _stop_matcher(stop: Collection[str], empty: T, *, include_stop: bool) -> StopMatcher[T] | None:
    if isinstance(stop, str):
        raise InvalidOption("stop", "must be a collection of strings, not one string")
    if "" in stop:
        raise InvalidOption("stop", "holds an empty string")
    if not stop:
        return None
    try:
        as_bytes = tuple(string.encode() for string in stop)
    except UnicodeEncodeError:
        raise InvalidOption("stop", "holds a string with a lone surrogate") from None
    units: Any = as_bytes if isinstance(empty, bytes) else tuple(stop)
    return StopMatcher(compile_stops(units), empty, include_stop=include_stop)
