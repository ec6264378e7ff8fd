"""Incremental decoding of token ids."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from threading import Lock
from typing import Any, Final, Generic, Literal, TypeVar, cast, overload
from weakref import WeakKeyDictionary

from bytepair_engine.backends.interface import DecodeErrors
from bytepair_engine.encoding import Encoding, check_encoding
from bytepair_engine.errors import (
    BytepairError,
    InvalidOption,
    StreamFinished,
    UnknownTokenId,
)
from bytepair_engine.pipeline.decoding import DecoderState
from bytepair_engine.streaming.no_copies import NoCopies
from bytepair_engine.streaming.stop_strings import StopMatcher, compile_stops
from bytepair_engine.streaming.utf8 import Utf8Decoder

T = TypeVar("T", str, bytes)

#: The decoded tokens of each encoding, which its streams share and fill: ordinary tokens that are
#: whole characters.
_WHOLE_TEXTS: Final[WeakKeyDictionary[Encoding, dict[int, str]]] = WeakKeyDictionary()


class StreamDecoder(NoCopies, Generic[T]):
    """Decodes a stream of ids.

    The joined results of `feed` and `finish` equal `Encoding.decode` of all ids, up to the first
    stop string. Every result contains only complete characters. The decoder holds back at most
    three bytes of an incomplete character, and the suffix of the text that can still become a stop
    string. The cost of an id does not depend on the number of ids before it.

    An error does not lose the text before it: `feed` returns that text and sets `fault`, and the
    next call of `feed` or `finish` raises it. So a loop that writes every result and finally calls
    `finish` loses neither text nor error. On a fault, text held for a stop string is released, and
    the bytes of an incomplete character are dropped.

    A decoder is thread-safe: a lock serialises calls.

    >>> from bytepair_engine.toy import toy
    >>> decoder = StreamDecoder(toy(), stop=["bb"])
    >>> [decoder.feed([token_id]) for token_id in (195, 169, 257, 98, 97)]
    ['', 'é', 'a', '', '']
    >>> decoder.stop_matched, decoder.tokens_consumed
    ('bb', 4)
    """

    __slots__ = (
        "_closed",
        "_empty",
        "_encoding",
        "_fed",
        "_lock",
        "_skip",
        "_state",
        "_state_before",
        "_stop",
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
            encoding: The encoding of the ids.
            prefill_ids: Ids before the stream, such as those of a prompt. Their text is not
                returned. If they end within a character, the first ids of the stream complete it,
                or it becomes U+FFFD.
            skip_special_tokens: Whether to ignore ids of special tokens. An ignored id does not
                interrupt an incomplete character.
            stop: Stop strings, not empty: the text ends before the first match, the longest of
                several that start at the same position.
            include_stop: Whether the text includes the stop string that matched.
            errors: Handling of bytes that are not UTF-8: "replace" inserts U+FFFD as soon as no
                further byte can complete them; "strict" sets a fault.
            as_bytes: Whether to return bytes, undecoded. Stop strings match by their UTF-8.
        Raises:
            UnknownTokenId: No token has one of `prefill_ids`; the index is that in `prefill_ids`.
            InvalidOption: `stop` is one string, or contains an empty string or a lone surrogate;
                or `errors` is another value, or "strict" with `as_bytes`.
        """
        if errors not in ("replace", "strict"):
            raise InvalidOption("errors", 'must be "replace" or "strict"')
        if as_bytes and errors == "strict":
            raise InvalidOption("errors", 'cannot be "strict" together with as_bytes')
        check_encoding(encoding)
        self._encoding: Final[Encoding] = encoding
        self._whole: Final[dict[int, Any]] = _WHOLE_TEXTS.setdefault(encoding, {})
        self._skip: Final = skip_special_tokens
        self._lock: Final = Lock()
        self._closed = False
        self._fed = 0  # number of ids passed to `feed`
        self._empty: Final[T] = cast(Any, b"" if as_bytes else "")
        self._stop: Final[StopMatcher[T] | None] = _stop_matcher(
            stop, self._empty, include_stop=include_stop
        )
        #: Number of ids consumed: all of them; on a fault those before it; after a stop string
        #: those up to and including the id that completed it.
        self.tokens_consumed = 0
        #: The error that the next call raises; None if there is none.
        self.fault: BytepairError | None = None
        #: The text that `finish` released before it raised an error.
        self.undelivered: T = self._empty
        # The state of decoding, and a copy from before the ids of the current call. None if, or as
        # soon as, the bytes of a token no longer depend on its position.
        self._state = None if encoding.decoder is None else DecoderState(encoding.decoder)
        self._state_before = self._state
        context, _ = self._bytes_of(_integers(prefill_ids, "prefill_ids"))
        if self.fault is not None:
            raise self.fault
        self._utf8: Final = None if as_bytes else Utf8Decoder(errors, context)

    @property
    def pending_bytes(self) -> int:
        """Number of bytes held back: of an incomplete character, and of the UTF-8 of a possible
        stop string."""
        pending = 0 if self._utf8 is None else len(self._utf8.pending)
        pending += 0 if self._state is None else self._state.pending_bytes
        held = b"" if self._stop is None else self._stop.held
        return pending + len(held.encode() if isinstance(held, str) else held)

    @property
    def stop_matched(self) -> str | None:
        """The stop string that matched; None if none is certain yet."""
        matched = None if self._stop is None else self._stop.matched
        return matched.decode() if isinstance(matched, bytes) else matched

    @property
    def finished(self) -> bool:
        """Whether the stream has ended: after `finish`, `abandon`, a stop string or a fault."""
        return self._closed or self.fault is not None or self.stop_matched is not None

    def feed(self, ids: Iterable[int]) -> T:
        """Decode the next ids.

        Args:
            ids: Any number of ids.
        Returns:
            The text (or bytes) that is certain now; empty after a stop string has matched.
        Raises:
            UnknownTokenId: No token has one of the earlier ids; the index is that in the stream.
            InvalidUnicode: The bytes of earlier ids are not UTF-8, and `errors` is "strict". The
                offset counts the bytes of `prefill_ids` and of the stream.
            StreamFinished: `finish` was called.
            Cancelled: The work was cancelled (`CancelScope`); the stream cannot continue.
        """
        # Not under the lock: the methods of ids of other types may use this decoder.
        batch: Sequence[int] = (
            ids
            if isinstance(ids, (list, tuple)) and len(ids) == 1 and type(ids[0]) is int
            else _integers(ids)
        )
        with self._lock:
            if len(batch) == 1:
                whole = self._decode_whole(batch[0])
                if whole is not None:
                    return whole
            self._raise_if_over()
            if self.stop_matched is not None:
                return self._empty
            data, count = self._bytes_of(batch)
            if count == len(batch) == 1:
                self._cache_whole(batch[0], data)
            return self._advance(batch[:count], data, last=False)

    def finish(self) -> T:
        """End the stream.

        Returns:
            The text that was held back; empty after a stop string has matched.
        Raises:
            UnknownTokenId: See `feed`.
            InvalidUnicode: See `feed`; or the last character is incomplete in strict decoding, and
                `undelivered` is the text before it.
            StreamFinished: `finish` was called before.
        """
        with self._lock:
            self._raise_if_over()
            self._closed = True
            if self.stop_matched is not None:
                return self._empty
            data = b"" if self._state is None else self._state.finish()
            delta = self._advance((), data, last=True)
            if self.fault is not None:
                self.undelivered = delta
                raise self.fault
            return delta

    def abandon(self) -> T:
        """End an incomplete stream: no error is raised for an incomplete character.

        Returns:
            The text that was held for a stop string or as the last token, as on a fault; empty if
            the stream has ended.
        """
        with self._lock:
            if self.finished:
                return self._empty
            self._closed = True
            delta = self._empty
            if self._state is not None:
                delta = self._advance((), self._state.finish(), last=False)
            return delta if self._stop is None else delta + self._stop.finish()

    def _raise_if_over(self) -> None:
        if self.fault is not None:
            raise self.fault
        if self._closed:
            raise StreamFinished

    def _decode_whole(self, token_id: int) -> T | None:
        """Decode an id by the cache: the fast path of most ids. None unless the token is whole
        characters, nothing is held back and no stop string starts in the text."""
        utf8, stop = self._utf8, self._stop
        if utf8 is None or utf8.pending or self._closed or self.fault is not None:
            return None
        if self._state is not None:
            return None
        text = self._whole.get(token_id)
        if text is None or (stop is not None and not stop.passes(text)):
            return None
        utf8.decoded += len(text) if text.isascii() else len(text.encode())
        self._fed += 1
        self.tokens_consumed = self._fed
        return cast(T, text)

    def _cache_whole(self, token_id: int, token: bytes) -> None:
        if self._state is self._state_before is None and not self._encoding.is_special_id(token_id):
            with suppress(UnicodeDecodeError):
                self._whole[token_id] = token.decode()

    def _advance(self, batch: Sequence[int], data: bytes, *, last: bool) -> T:
        """Advance the stream by valid ids with the bytes `data`, which come before `self.fault`
        if it is set."""
        utf8, stop = self._utf8, self._stop
        pending, delta = b"", cast(Any, data)
        if utf8 is not None:
            pending = utf8.pending
            delta = utf8.decode(data, final=last)
        seen, end = (0, None) if stop is None else (stop.seen, stop.end)
        if utf8 is not None and utf8.fault is not None:
            self.fault = utf8.fault
            count = self._ids_before_fault(batch, pending)
        else:
            count = len(batch)
        if stop is not None:
            delta = stop.feed(cast(T, delta))
            if stop.matched is None and (last or self.fault is not None):
                delta += stop.finish()
            if stop.matched is not None:
                self.fault = None  # ids after a stop string are ignored
            if stop.end is not None and stop.end != end:
                count = self._ids_until(batch, pending, stop.end - seen)
        if stop is None or stop.end is None or stop.end != end:
            self.tokens_consumed = self._fed + count
        self._fed += len(batch)
        return cast(T, delta)

    def _bytes_of(self, ids: Sequence[int]) -> tuple[bytes, int]:
        """Return the bytes and the number of the ids before the first unknown one, which becomes
        `fault`."""
        known = self._encoding.without_special(ids) if self._skip else ids
        self._state_before = None if self._state is None else self._state.copy()
        try:
            return self._decoded(known), len(ids)
        except UnknownTokenId as error:
            before = error.index or 0
        index = next(islice(self._indices(ids), before, None))
        self.fault = UnknownTokenId(ids[index], self._fed + index)
        self._state = None if self._state_before is None else self._state_before.copy()
        data = self._decoded(known[:before])
        return data if self._state is None else data + self._state.finish(), index

    def _decoded(self, ids: Sequence[int]) -> bytes:
        decoder, state = self._encoding.decoder, self._state
        if decoder is None:
            return self._encoding.decode_bytes(ids)
        if state is None:
            return decoder.amid(ids)
        data = state.feed(ids)
        if state.settled:
            self._state = None
        return data

    def _bytes_one_by_one(self) -> Callable[[int], bytes]:
        """Return a function that decodes the ids of the current call one by one."""
        if self._state_before is None:
            return self._encoding.decode_single_token_bytes
        state = self._state_before.copy()
        return lambda token_id: state.feed((token_id,))

    def _indices(self, ids: Sequence[int]) -> Iterator[int]:
        """Return the indices of the ids that are not skipped."""
        special = self._encoding.is_special_id
        return (i for i, token_id in enumerate(ids) if not (self._skip and special(token_id)))

    def _ids_before_fault(self, ids: Sequence[int], pending: bytes) -> int:
        """Return the number of ids, after the bytes `pending`, before the one whose bytes show that
        they are not UTF-8; all if only the end of the stream does."""
        utf8 = Utf8Decoder("strict", pending)
        token_bytes = self._bytes_one_by_one()
        for i in self._indices(ids):
            utf8.decode(token_bytes(ids[i]))
            if utf8.fault is not None:
                return i
        return len(ids)

    def _ids_until(self, ids: Sequence[int], pending: bytes, size: int) -> int:
        """Return the number of ids, after the bytes `pending`, that make the first `size`
        characters (or bytes) certain; all if only the end of the stream does."""
        utf8 = Utf8Decoder("replace", pending)
        token_bytes = self._bytes_one_by_one()
        for i in self._indices(ids):
            token = token_bytes(ids[i])
            size -= len(token if self._utf8 is None else utf8.decode(token))
            if size <= 0:
                return i + 1
        return len(ids)


def _integers(ids: Iterable[int], option: str = "ids") -> list[int]:
    """Return ids of other types as integers: some, such as tensors, are not equal to these."""
    try:
        return [*map(operator.index, ids)]
    except TypeError as error:
        raise TypeError(f"{option}: {error}") from None


def _stop_matcher(stop: Collection[str], empty: T, *, include_stop: bool) -> StopMatcher[T] | None:
    if isinstance(stop, str):
        raise InvalidOption("stop", "must be a collection of strings, not one string")
    if not isinstance(stop, Collection) or not all(isinstance(each, str) for each in stop):
        raise TypeError("stop must be a collection of strings")
    if "" in stop:
        raise InvalidOption("stop", "contains an empty string")
    if not stop:
        return None
    try:
        as_bytes = tuple(string.encode() for string in stop)
    except UnicodeEncodeError:
        raise InvalidOption("stop", "contains a string with a lone surrogate") from None
    units: Any = as_bytes if isinstance(empty, bytes) else tuple(stop)
    return StopMatcher(compile_stops(units), empty, include_stop=include_stop)
