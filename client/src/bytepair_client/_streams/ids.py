"""Ids on their way to DecodeStream."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import index
from typing import Any, Final

from bytepair.v1 import stream_pb2, text_pb2

from bytepair_client._errors import InvalidUtf8, TokenizerError, UnknownTokenId
from bytepair_client._streams.buffer import MAX_KEPT_REQUESTS, SendBuffer, shift
from bytepair_client._text import MAX_TOKEN_ID, unknown_id

#: Settled ids that go before a stream that is continued: how some vocabularies write a token
#: depends on the tokens before it.
MIN_CONTEXT_IDS: Final = 256


class IdsBuffer(SendBuffer[list[int]]):
    """Ids, or lists of them, on their way to DecodeStream."""

    def __init__(self, config: stream_pb2.DecodeStreamConfig, max_request_ids: int) -> None:
        """Hold nothing but the configuration. A request has at most `max_request_ids`."""
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
            shift(failure, "index", self._base)
        elif isinstance(failure, InvalidUtf8):
            shift(failure, "byte_offset", self._byte_base)


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
    """The ids in `item`, an id or an iterable of ids and lists of ids, before the first fault, and
    that fault; `given` ids came before."""
    numbers: list[int] = []
    try:
        for token_id in _flat(item):
            if not 0 <= token_id <= MAX_TOKEN_ID:
                return numbers, unknown_id(token_id, given + len(numbers))
            numbers.append(token_id)
    except TypeError:
        return numbers, TypeError("ids: integers, or lists of integers")
    return numbers, None
