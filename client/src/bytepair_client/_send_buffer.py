"""The send buffer of a stream: messages grow while they wait, and are kept until settled.

A request is made when the sender is free, of all that waits by then. So items that arrive while a
message is being sent go together in the next one, and nothing ever waits for more to come.

What was sent is kept until the server has settled it: until the output so far depends on nothing
that may still come. If the connection breaks, `rewind` lets another connection be sent the rest
from there, and `read` drops the output that the first one had already given.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from operator import index
from typing import Any, Final, Generic, TypeVar

from bytepair.v1 import context_pb2, stream_pb2, text_pb2
from google.protobuf.message import Message

from bytepair_client._errors import (
    InvalidUtf8,
    SpecialTokenInText,
    TokenizerError,
    UnknownTokenId,
)
from bytepair_client._text import MAX_TOKEN_ID, lone_surrogate, unknown_id

#: Requests of full size that are kept for another connection: more than can be unanswered, so
#: that only output which never settles, such as an endless match of a stop string, exceeds it.
MAX_KEPT_REQUESTS: Final = 8
#: Settled ids that go before a stream that is continued: how some vocabularies write a token
#: depends on the tokens before it.
MIN_CONTEXT_IDS: Final = 256

_log = logging.getLogger("bytepair_client")

Part = TypeVar("Part", "list[int]", bytearray)
TextConfig = (
    stream_pb2.EncodeStreamConfig | stream_pb2.CountStreamConfig | context_pb2.SplitStreamConfig
)
TextRequest = (
    type[stream_pb2.EncodeStreamRequest]
    | type[stream_pb2.CountStreamRequest]
    | type[context_pb2.SplitStreamRequest]
)


class SendBuffer(ABC, Generic[Part]):
    """The requests of one stream. Not safe for threads, but `parts` may run beside all else.

    The first request holds the configuration, and everything else that waits when it is made.

    Attributes:
        max_request: The most that one request holds, in bytes of text or in ids; at least 1.
        sent: How much of the source was sent so far, in the same unit.
        can_rewind: Whether enough was kept to continue on another connection.
    """

    def __init__(self, max_request: int, empty: Callable[[], Part]) -> None:
        self.max_request = max_request
        self.sent = 0
        self.can_rewind = True
        self._given = 0  # by the source
        self._waiting: Part = empty()
        self._kept: Part = empty()  # what was sent since the last settled point
        self._settled = 0  # where that point is
        self._settles = True  # whether answers come before the end
        self._base = 0  # where this connection's own counting starts
        self._needs_config = True

    @abstractmethod
    def parts(self, item: object) -> Iterator[Part]:
        """Cut one item of the source into parts for `put`.

        Raises:
            TokenizerError: It cannot be sent; the parts before the fault were given.
            TypeError: It is nothing that can be streamed.
        """

    def put(self, part: Part) -> None:
        """Let a part wait."""
        self._waiting += part

    @property
    def is_full(self) -> bool:
        """Whether a request's worth waits, so that the source should wait too."""
        return len(self._waiting) >= self.max_request

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to take."""
        return not self._needs_config and not self._waiting

    def take(self) -> bytes:
        """The next request, of as much as fits; only the configuration if nothing waits."""
        size = 0 if self._needs_config and self._config_goes_alone else self.max_request
        part = self._waiting[:size]
        del self._waiting[:size]
        self.sent += len(part)
        if self.can_rewind:
            self._kept += part
            if len(self._kept) > MAX_KEPT_REQUESTS * self.max_request:
                self._keep_no_more()
        request = self._request(part, with_config=self._needs_config)
        self._needs_config = False
        return request.SerializeToString()

    @property
    def _config_goes_alone(self) -> bool:
        """Whether the first request holds nothing but the configuration."""
        return False

    @abstractmethod
    def _request(self, part: Part, *, with_config: bool) -> Message:
        """The message that sends a part."""

    @abstractmethod
    def read(self, answer: Any) -> bool:
        """Note an answer, and make it what the source's stream would have got.

        Returns:
            Whether it is the answer to a request. One that is not was sent because the stream
            fails: it is left as it is, for `release`, and is void if the stream is continued.
        """

    def release(self, answer: Any) -> None:
        """Make an answer for which `read` returned False what the caller is to get."""
        del answer

    def rewind(self, first: Any) -> None:
        """Let all since the last settled point be sent again; `can_rewind` must hold.

        Args:
            first: The first answer of the stream, whose encoding the others must have; None if
                nothing was answered.
        """
        self._waiting[:0] = self._kept
        self.sent -= len(self._kept)
        self._kept.clear()
        self._base = self._settled
        self._needs_config = True
        if first is not None:
            self._pin(first)

    @abstractmethod
    def _pin(self, first: Any) -> None:
        """Put what the first answer says of the encoding into the configuration."""

    def restart(self) -> None:
        """Forget all that was sent and waits: the source is read again from its start."""
        self._waiting.clear()
        self._kept.clear()
        self.sent = self._given = self._settled = self._base = 0
        self._needs_config = self.can_rewind = True

    @abstractmethod
    def correct(self, failure: TokenizerError) -> None:
        """Make the position that an error names one of the whole stream."""

    def _settle(self, position: int) -> Part:
        """Forget what was kept before a position. Returns what was forgotten."""
        count = position - self._settled
        settled = self._kept[:count]
        del self._kept[:count]
        self._settled = position
        return settled

    def _keep_no_more(self) -> None:
        self.can_rewind = False
        self._kept.clear()
        if not self._settles:
            return  # the answer comes at the end: there is nothing to continue from
        _log.warning(
            "a stream can no longer be resumed if its connection breaks: more than %d bytes or "
            "ids are pending",
            MAX_KEPT_REQUESTS * self.max_request,
        )


class IdsBuffer(SendBuffer[list[int]]):
    """Ids, or lists of them, on their way to DecodeStream."""

    def __init__(self, config: stream_pb2.DecodeStreamConfig, max_request_ids: int) -> None:
        """Hold nothing but the configuration.

        Args:
            config: For the first request.
            max_request_ids: Of ids in one request, at least 1.
        """
        super().__init__(max_request_ids, list)
        self._config = config
        # Settled ids before `_kept`, in two parts of which the older one is dropped at times.
        # Each starts where nothing was pending, so that no character is cut.
        self._older: list[int] = list(config.prefill_ids)
        self._newer: list[int] = []
        self._older_output = self._newer_output = 0  # UTF-8 bytes of these two
        self._dropped_output = 0  # and of what was dropped before them
        self._byte_base = 0  # where this connection's own count of bytes starts
        # Byte offsets count the prefill too, whose size is not known here: it is never dropped
        # where an error may name an offset.
        is_strict = config.errors == text_pb2.DECODE_ERRORS_STRICT
        self._drops = not (is_strict and config.prefill_ids)
        self._answered = -1
        # Output since the settled point: by this connection, and as the caller has it.
        self._output = self._output_bytes = self._delivered = 0

    def parts(self, item: object) -> Iterator[list[int]]:
        numbers, fault = _numbers(item, self._given)
        self._given += len(numbers)
        for start in range(0, len(numbers), self.max_request):
            yield numbers[start : start + self.max_request]
        if fault is not None:
            raise fault

    def _request(self, part: list[int], *, with_config: bool) -> stream_pb2.DecodeStreamRequest:
        return stream_pb2.DecodeStreamRequest(
            config=self._config if with_config else None, ids=part
        )

    def read(self, answer: stream_pb2.DecodeStreamResponse) -> bool:
        answer.tokens_consumed += self._base
        if answer.tokens_consumed == self._answered and not answer.finished:
            return False  # each request holds ids
        self._answered = answer.tokens_consumed
        self.release(answer)
        if not answer.pending_bytes and self.can_rewind and not answer.finished:
            self._keep_context(self._settle(answer.tokens_consumed))
        return True

    def release(self, answer: stream_pb2.DecodeStreamResponse) -> None:
        is_text = answer.WhichOneof("content") == "text"
        output: str | bytes = answer.text if is_text else answer.data
        repeated = max(0, self._delivered - self._output)
        self._output += len(output)
        self._output_bytes += len(output.encode() if isinstance(output, str) else output)
        self._delivered = max(self._delivered, self._output)
        if repeated and isinstance(output, str):
            answer.text = output[repeated:]
        elif repeated and isinstance(output, bytes):
            answer.data = output[repeated:]

    def _keep_context(self, ids: list[int]) -> None:
        self._newer += ids
        self._newer_output += self._output_bytes
        self._delivered -= self._output
        self._output = self._output_bytes = 0
        if len(self._newer) < MIN_CONTEXT_IDS:
            return
        if not self._drops:
            if len(self._newer) > MAX_KEPT_REQUESTS * self.max_request:
                self._keep_no_more()
        else:
            self._dropped_output += self._older_output
            self._older, self._older_output = self._newer, self._newer_output
            self._newer, self._newer_output = [], 0

    def rewind(self, first: Any) -> None:
        super().rewind(first)
        self._answered = -1
        self._output = self._output_bytes = 0
        self._byte_base = self._dropped_output
        del self._config.prefill_ids[:]
        self._config.prefill_ids.extend(self._older + self._newer)

    def _pin(self, first: stream_pb2.DecodeStreamResponse) -> None:
        self._config.encoding = first.encoding
        self._config.expected_fingerprint = first.fingerprint

    def correct(self, failure: TokenizerError) -> None:
        if isinstance(failure, UnknownTokenId):
            _shift(failure, "index", self._base)
        elif isinstance(failure, InvalidUtf8):
            _shift(failure, "byte_offset", self._byte_base)


class TextBuffer(SendBuffer[bytearray]):
    """Text on its way to EncodeStream, CountStream or SplitStream, as UTF-8 cut anywhere."""

    def __init__(self, config: TextConfig, request: TextRequest, max_request_bytes: int) -> None:
        """Hold nothing but the configuration.

        Args:
            config: For the first request.
            request: The type of all requests.
            max_request_bytes: Of text in one, at least 1.
        """
        super().__init__(max_request_bytes, bytearray)
        self._settles = request is stream_pb2.EncodeStreamRequest
        self._config = config
        self._type: Any = request
        # How many ids go before a text, and how many of them are still to be left out because
        # they were given before.
        self._template_size: int | None = None
        self._repeated = 0
        self._preceding = b""  # the last settled character

    def parts(self, item: object) -> Iterator[bytearray]:
        step = self.max_request
        if isinstance(item, str):
            for start in range(0, len(item), step):
                characters = item[start : start + step]
                try:
                    data = characters.encode()
                except UnicodeEncodeError as error:
                    raise lone_surrogate(characters, error.start, self._given) from None
                self._given += len(data)
                yield from _slices(data, step)
        elif isinstance(item, bytes | bytearray | memoryview):
            data = bytes(item)
            self._given += len(data)
            yield from _slices(data, step)
        else:
            raise TypeError(f"piece must be str or bytes, not {type(item).__name__}")

    @property
    def _config_goes_alone(self) -> bool:
        # The answer then holds the ids that go before a text, and no others.
        return self._settles and self._config.add_special_tokens

    def _request(self, part: bytearray, *, with_config: bool) -> Message:
        request: Message = self._type(
            config=self._config if with_config else None, data=bytes(part) if part else None
        )
        return request

    def read(self, answer: Any) -> bool:
        if not self._settles:
            return True
        answer.bytes_consumed += self._base
        if self._template_size is None:
            self._template_size = len(answer.ids) if self._config_goes_alone else 0
        elif self._repeated:
            del answer.ids[: self._repeated]
            self._repeated = 0
        if not answer.finished and self.can_rewind:
            self._preceding = (
                _last_character(self._settle(answer.bytes_consumed)) or self._preceding
            )
        return True

    def rewind(self, first: Any) -> None:
        super().rewind(first)
        if isinstance(self._config, stream_pb2.EncodeStreamConfig):
            self._config.preceding_text = self._preceding.decode()
        # Before the first character is settled, the other connection gives the template again.
        self._repeated = 0 if self._preceding else self._template_size or 0

    def _pin(self, first: stream_pb2.EncodeStreamResponse) -> None:
        self._config.encoding = first.encoding
        self._config.expected_fingerprint = first.fingerprint

    def correct(self, failure: TokenizerError) -> None:
        if isinstance(failure, InvalidUtf8 | SpecialTokenInText):
            _shift(failure, "byte_offset", self._base)


def _shift(failure: TokenizerError, name: str, by: int) -> None:
    """Add to a position that an error names, in its facts and in its message."""
    value = failure.metadata.get(name, "")
    if by and value.isdecimal():
        failure.metadata[name] = str(int(value) + by)
        failure.message = failure.message.replace(value, failure.metadata[name], 1)


def _last_character(data: bytearray) -> bytes:
    """The last character of UTF-8 that is not cut off; b"" for no text."""
    start = len(data) - 1
    while start > 0 and data[start] & 0xC0 == 0x80:
        start -= 1
    return bytes(data[start:])


def _slices(data: bytes, step: int) -> Iterator[bytearray]:
    for start in range(0, len(data), step):
        yield bytearray(data[start : start + step])


def _flat(item: object) -> Iterator[int]:
    try:
        yield index(item)  # type: ignore[arg-type]  # TypeError says whether it can
        return
    except TypeError:
        if not isinstance(item, Iterable):
            raise
    for element in item:
        if isinstance(element, list | tuple):
            yield from map(index, element)
        else:
            yield index(element)


def _numbers(item: object, given: int) -> tuple[list[int], Exception | None]:
    """The ids in `item` before the first fault, and that fault.

    Args:
        item: An id, or an iterable of ids and lists of ids.
        given: How many ids came before.
    """
    numbers: list[int] = []
    try:
        for token_id in _flat(item):
            if not 0 <= token_id <= MAX_TOKEN_ID:
                return numbers, unknown_id(token_id, given + len(numbers))
            numbers.append(token_id)
    except TypeError:
        return numbers, TypeError("ids: integers, or lists of integers")
    return numbers, None
