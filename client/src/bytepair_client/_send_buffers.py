"""The send buffer of a stream: it groups pending input into requests, and keeps unsettled input.

A request is made when the sender is ready, from all pending input. So items that arrive while a
request is being sent share the next one, and no item waits for more to arrive.

Input is settled when the output for it is final, whatever follows. Sent input is kept until it is
settled. If the connection breaks, `rewind` makes the kept input pending again, and `read` then
drops the output that the caller already has.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from operator import index
from typing import Any, Final, Generic, TypeVar
from zlib import crc32

from bytepair.v1 import stream_pb2, text_pb2
from google.protobuf.message import Message

from bytepair_client._arguments import MAX_TOKEN_ID, lone_surrogate, unknown_id
from bytepair_client._errors import TokenizerError, Unavailable

#: Maximum input to keep, in full requests. It exceeds `MAX_UNREAD_REQUESTS`, so only input that
#: never settles reaches it: an endless partial match of a stop string, or no output.
MAX_KEPT_REQUESTS: Final = 8
#: Minimum number of settled ids to send before a resumed stream, because some vocabularies write a
#: token differently after others.
MIN_CONTEXT_IDS: Final = 256

_log = logging.getLogger("bytepair_client")

Part = TypeVar("Part", "list[int]", bytearray)


class SendBuffer(ABC, Generic[Part]):
    """The requests of one stream. Not safe for threads, except that `parts` may run concurrently.

    The first request holds the configuration and all input that is pending then. A part without
    input makes a request too, which may share its message with pending input."""

    def __init__(self, config: Any, max_request: int, empty: Callable[[], Part]) -> None:
        self.max_request = max_request  # of a request, in bytes of text or in ids; at least 1
        self.sent = 0  # the size of the input sent so far, in the same unit
        self.reread = 0  # the size of the input before a restart, which must come again
        self.can_rewind = True  # whether the stream can resume over another connection
        self._given = 0  # the size of the input that `parts` has read
        self._pending: Part = empty()
        self._kept: Part = empty()  # sent since the last settled position
        self._settled = 0  # that position
        self._settles = True  # whether responses arrive before the end
        self._base = 0  # the position at which this connection started
        self._byte_base = 0  # the same in the bytes that errors count
        self._config = config
        self._needs_config = True
        self._is_due = True  # a request, even without input

    @abstractmethod
    def parts(self, item: object) -> Iterator[Part]:
        """Cut one item of the source into parts for `put`: one empty part if the item is empty. If
        the item is invalid, raises the error after the valid parts."""

    def put(self, part: Part) -> None:
        """Add a part to the pending input."""
        self._pending += part
        self._is_due = True

    @property
    def is_full(self) -> bool:
        """Whether a full request is pending, so the source must wait."""
        return len(self._pending) >= self.max_request

    @property
    def is_empty(self) -> bool:
        """Whether there is no request to take."""
        return not self._is_due

    def take(self) -> bytes:
        """The next request, with as much input as fits."""
        part = self._pending[: self.max_request]
        del self._pending[: self.max_request]
        self._is_due = bool(self._pending)
        self.sent += len(part)
        if self.can_rewind:
            self._kept += part
            if len(self._kept) > MAX_KEPT_REQUESTS * self.max_request:
                self._keep_no_more()
        config, self._needs_config = self._config if self._needs_config else None, False
        return self._request(config, part).SerializeToString()

    @abstractmethod
    def _request(self, config: Any, part: Part) -> Message:
        """The request that holds a configuration, or None, and a part."""

    @abstractmethod
    def read(self, response: Any) -> bool:
        """Process a response: correct its positions and drop repeated output.

        Returns False if it is an extra response, which the server sends before it fails the stream.
        Such a response is valid only if the stream does not resume."""

    def rewind(self, first: Any) -> None:
        """Make all input since the last settled position pending again; or unless `can_rewind`,
        drop all input, because the source is read again from its start. The next connection must
        have the encoding of `first`, the first response if any."""
        if self.can_rewind:
            self._pending[:0] = self._kept
            self.sent -= len(self._kept)
        else:
            self._pending.clear()
            self.sent = self._given = 0
        self._kept.clear()
        self._base = self._byte_base = self._settled
        self._needs_config = self._is_due = self.can_rewind = True
        if first is not None:
            self._config.encoding = first.encoding
            self._config.expected_fingerprint = first.fingerprint

    def correct(self, failure: TokenizerError) -> None:
        """Change the position in an error to that in the whole stream."""
        shift(failure, "index", self._base)
        shift(failure, "byte_offset", self._byte_base)

    def _settle(self, position: int) -> Part:
        """Drop the kept input before a position. Returns it."""
        count = position - self._settled
        settled = self._kept[:count]
        del self._kept[:count]
        self._settled = position
        return settled

    def _keep_no_more(self) -> None:
        self.can_rewind = False
        self._kept.clear()
        if not self._settles:
            return  # there is one response, at the end: the stream restarts, if at all
        _log.warning(
            "a stream can no longer be resumed if its connection breaks: more than %d bytes or "
            "ids are pending",
            MAX_KEPT_REQUESTS * self.max_request,
        )


class TextBuffer(SendBuffer[bytearray]):
    """The send buffer of EncodeStream, CountStream and SplitStream, for UTF-8 cut anywhere."""

    def __init__(self, config: Any, request: type[Any], max_request_bytes: int) -> None:
        """Hold only the configuration. A request has at most `max_request_bytes` of text."""
        super().__init__(config, max_request_bytes, bytearray)
        self._type = request
        self._settles = isinstance(config, stream_pb2.EncodeStreamConfig)
        # The number of ids so far, which are the template's until text is settled; and how many of
        # them the next response repeats.
        self._template_size = self._repeated = 0
        self._preceding = ""  # the last settled character
        self._last_start = -1  # of the chunks that the caller has
        # Of the text so far, and of that before a restart.
        self._size = self._checksum = self._expected = 0

    def parts(self, item: object) -> Iterator[bytearray]:
        if isinstance(item, memoryview):
            item = bytes(item)
        if not isinstance(item, str | bytes | bytearray):
            raise TypeError(f"pieces must be str or bytes, not {type(item).__name__}")
        for start in range(0, len(item) or 1, self.max_request):
            part = item[start : start + self.max_request]
            try:
                data = bytearray(part.encode() if isinstance(part, str) else part)
            except UnicodeEncodeError as error:
                raise lone_surrogate(error.object, error.start, self._given) from None
            self._given += len(data)
            yield data

    def put(self, part: bytearray) -> None:
        """Add a part. Raises Unavailable if the source gave another text before a restart."""
        left = self.reread - self._size
        is_reached = 0 < left <= len(part)
        if is_reached and crc32(part[:left], self._checksum) != self._expected:
            raise other_text()
        self._size += len(part)
        self._checksum = crc32(part, self._checksum)
        super().put(part)

    def _request(self, config: Any, part: bytearray) -> Message:
        request: Message = self._type(config=config, data=bytes(part))
        return request

    def read(self, response: Any) -> bool:
        if not self._settles:
            chunks = getattr(response, "chunks", None)  # of SplitStream
            while chunks and chunks[0].start <= self._last_start:
                del chunks[0]
            if chunks:
                self._last_start = chunks[-1].start
            return True
        response.bytes_consumed += self._base
        del response.ids[: self._repeated]
        self._repeated = 0
        settled = self._settle(response.bytes_consumed)
        # A character has at most four bytes.
        end = settled[-4:].decode(errors="ignore")
        self._preceding = end[-1:] or self._preceding
        self._template_size += len(response.ids)
        return True

    def rewind(self, first: Any) -> None:
        if not self.can_rewind:
            if self._size > self.reread:
                self.reread, self._expected = self._size, self._checksum
            self._size = self._checksum = 0
        super().rewind(first)
        if self._settles:
            self._config.preceding_text = self._preceding
        self._repeated = 0 if self._preceding else self._template_size


def other_text() -> Unavailable:
    """The error for a source that is read again and does not give the same text, such as a file."""
    return Unavailable(
        "the connection broke, and pieces gave another text when they were read again",
        code="UNAVAILABLE",
    )


class IdsBuffer(SendBuffer[list[int]]):
    """The send buffer of DecodeStream. Items are ids or lists of ids."""

    def __init__(self, config: stream_pb2.DecodeStreamConfig, max_request_ids: int) -> None:
        """Hold only the configuration. A request has at most `max_request_ids`."""
        super().__init__(config, max_request_ids, list)
        self._prefill = list(config.prefill_ids)
        # Byte offsets in errors include the prefill, whose size in bytes is unknown here. So in
        # strict mode the prefill and the first settled piece are never dropped: only a first piece
        # may decode to another number of bytes.
        self._is_strict = config.errors == text_pb2.DECODE_ERRORS_STRICT
        # The last settled ids before `_kept`, in pieces that start at a character, each with the
        # UTF-8 bytes of its output; their number; and the output of those that were dropped.
        self._context: deque[tuple[list[int], int]] = deque()
        self._context_size = self._dropped_output = 0
        self._answered = -1
        # Output since the settled position: of this connection, and what the caller has.
        self._output = self._output_bytes = self._delivered = 0

    def parts(self, item: object) -> Iterator[list[int]]:
        part: list[int] = []
        fault: Exception | None = None
        try:
            for token_id in _flat(item):
                if not 0 <= token_id <= MAX_TOKEN_ID:
                    fault = unknown_id(token_id, self._given + len(part))
                    break
                part.append(token_id)
        except TypeError:
            fault = TypeError("ids must be integers or lists of integers")
        self._given += len(part)
        stop = len(part) if part or fault else 1  # one empty part for an empty item
        for start in range(0, stop, self.max_request):
            yield part[start : start + self.max_request]
        if fault is not None:
            raise fault

    def _request(self, config: Any, part: list[int]) -> stream_pb2.DecodeStreamRequest:
        return stream_pb2.DecodeStreamRequest(config=config, ids=part)

    def read(self, response: stream_pb2.DecodeStreamResponse) -> bool:
        response.tokens_consumed += self._base
        name = response.WhichOneof("content") or "data"
        output: str | bytes = getattr(response, name)
        repeated = self._delivered - self._output
        if repeated:
            setattr(response, name, output[repeated:])
        if response.tokens_consumed == self._answered and not response.finished:
            # The response to a request without ids, or an extra one, which has output.
            return not output
        self._answered = response.tokens_consumed
        self._output += len(output)
        self._output_bytes += len(output.encode() if isinstance(output, str) else output)
        self._delivered = max(self._delivered, self._output)
        # Ids without output do not show that a text has begun, so they are not settled: a decoder
        # that starts with settled ids, even without those before them, is in the middle of a text.
        if self._output and not response.pending_bytes and self.can_rewind:
            self._keep_context(self._settle(response.tokens_consumed))
        return True

    def _keep_context(self, ids: list[int]) -> None:
        if self._is_strict and self._settled == len(ids):
            self._prefill += ids
        else:
            self._context.append((ids, self._output_bytes))
            self._context_size += len(ids)
        self._delivered -= self._output
        self._output = self._output_bytes = 0
        if not self._is_strict:
            # One piece may be a single token, which may be written differently if it is the only
            # one. Until there are two, the prefill is cut only so far that the server accepts it.
            needed = 0 if len(self._context) > 1 else len(self._config.prefill_ids)
            needed = max(needed, MIN_CONTEXT_IDS) - self._context_size
            del self._prefill[: max(0, len(self._prefill) - needed)]
        while self._context and self._context_size - len(self._context[0][0]) >= MIN_CONTEXT_IDS:
            dropped, output = self._context.popleft()
            self._context_size -= len(dropped)
            self._dropped_output += output

    def rewind(self, first: Any) -> None:
        super().rewind(first)
        self._answered = -1
        self._output = self._output_bytes = 0
        self._byte_base = self._dropped_output
        self._config.prefill_ids[:] = chain(self._prefill, *(ids for ids, _ in self._context))


def _flat(item: object) -> Iterator[int]:
    """The ids of an id, or of an iterable of ids and lists of ids. Raises TypeError for others, and
    for bytes."""
    try:
        yield _id(item)
        return
    except TypeError:
        if not isinstance(item, Iterable) or isinstance(item, bytes | bytearray):
            raise
    lists = (list, tuple)  # making a union for each element costs more than the check
    for element in item:
        if isinstance(element, lists):
            yield from map(_id, element)
        else:
            yield _id(element)


def _id(item: Any) -> int:
    if item is True or item is False:
        raise TypeError("a bool is no id")
    return index(item)


def shift(failure: TokenizerError, name: str, by: int) -> None:
    """Add `by` to a position in the metadata and the message of an error, `name` being "index" or
    "byte_offset"."""
    value = failure.metadata.get(name, "")
    if by and value.isdecimal():
        failure.metadata[name] = str(int(value) + by)
        where = f"at {name.partition('_')[0]} "  # other numbers may have the same digits
        failure.message = failure.message.replace(where + value, where + failure.metadata[name], 1)
