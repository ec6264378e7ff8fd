"""The send buffer of DecodeStream."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import index
from typing import Any, Final

from bytepair.v1 import stream_pb2, text_pb2

from bytepair_client._errors import InvalidUtf8, TokenizerError, UnknownTokenId
from bytepair_client._streams.buffer import MAX_KEPT_REQUESTS, SendBuffer, shift
from bytepair_client._text import MAX_TOKEN_ID, unknown_id

#: Minimum number of settled ids to send before a resumed stream, because some vocabularies write a
#: token differently after others.
MIN_CONTEXT_IDS: Final = 256


class IdsBuffer(SendBuffer[list[int]]):
    """The send buffer of DecodeStream. Items are ids or lists of ids."""

    def __init__(self, config: stream_pb2.DecodeStreamConfig, max_request_ids: int) -> None:
        """Hold only the configuration. A request has at most `max_request_ids`."""
        super().__init__(max_request_ids, list)
        self._config = config
        # Settled ids before `_kept`, in two parts, the older of which is dropped from time to time.
        # Each starts at a character.
        self._older: list[int] = list(config.prefill_ids)
        self._newer: list[int] = []
        self._older_output = self._newer_output = 0  # UTF-8 bytes of these two
        self._dropped_output = 0  # UTF-8 bytes of the parts that were dropped
        self._byte_base = 0  # the byte offset at which this connection started
        # Byte offsets in errors include the prefill, whose size in bytes is unknown here. So it is
        # never dropped if an error may name an offset.
        is_strict = config.errors == text_pb2.DECODE_ERRORS_STRICT
        self._drops = not (is_strict and config.prefill_ids)
        self._answered = -1
        # Output since the settled position: of this connection, and what the caller has.
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

    def read(self, response: stream_pb2.DecodeStreamResponse) -> bool:
        response.tokens_consumed += self._base
        if response.tokens_consumed == self._answered and not response.finished:
            return False  # the response to a request consumes ids
        self._answered = response.tokens_consumed
        self.release(response)
        if not response.pending_bytes and self.can_rewind and not response.finished:
            self._keep_context(self._settle(response.tokens_consumed))
        return True

    def release(self, response: stream_pb2.DecodeStreamResponse) -> None:
        is_text = response.WhichOneof("content") == "text"
        output: str | bytes = response.text if is_text else response.data
        repeated = max(0, self._delivered - self._output)
        self._output += len(output)
        self._output_bytes += len(output.encode() if isinstance(output, str) else output)
        self._delivered = max(self._delivered, self._output)
        if repeated and isinstance(output, str):
            response.text = output[repeated:]
        elif repeated and isinstance(output, bytes):
            response.data = output[repeated:]

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
    """The ids in `item` before the first invalid one, and the error for that one or None.

    Args:
        item: An id, or an iterable of ids and lists of ids.
        given: The number of ids before `item`.
    """
    numbers: list[int] = []
    try:
        for token_id in _flat(item):
            if not 0 <= token_id <= MAX_TOKEN_ID:
                return numbers, unknown_id(token_id, given + len(numbers))
            numbers.append(token_id)
    except TypeError:
        return numbers, TypeError("ids must be integers or lists of integers")
    return numbers, None
