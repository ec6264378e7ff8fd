"""DecodeStream: token ids to text. Text is sent once it is certain."""

from __future__ import annotations

from typing import Any, Final

from bytepair.v1 import stream_pb2
from bytepair_engine import BytepairError, StreamDecoder, UnknownTokenId
from bytepair_engine.backends.text_length import text_length

from bytepair_server.catalog import Entry
from bytepair_server.errors import InConfig, InvalidField, NoTokenWithId
from bytepair_server.rpc import limits
from bytepair_server.streaming.session import Session

#: Maximum size of a message with stop strings on the event loop: the search is in Python, and the
#: text may have 64 times the size of the message.
_STOP_INLINE_MAX_BYTES: Final = 256

_Request: Final = stream_pb2.DecodeStreamRequest
_Response: Final = stream_pb2.DecodeStreamResponse

# protobuf takes a microsecond to read one id and to write a short text, the most frequent messages.
# `read_one_id` and `write_text` take a quarter of it, for the same bytes.
_VARINT, _LENGTH_DELIMITED = 0, 2
_IDS: Final = _Request.IDS_FIELD_NUMBER << 3 | _LENGTH_DELIMITED
_TEXT: Final = _Response.TEXT_FIELD_NUMBER << 3 | _LENGTH_DELIMITED
_CONSUMED: Final = _Response.TOKENS_CONSUMED_FIELD_NUMBER << 3 | _VARINT

#: Text and tokens_consumed, the latter in one, two and three bytes.
_ANSWER: Final = tuple(b"%c%%c%%b%c" % (_TEXT, _CONSUMED) + b"%c" * length for length in (1, 2, 3))


class DecodeSession(Session):
    """One DecodeStream."""

    _REQUEST = _Request
    _RESPONSE = _Response
    _is_plain = True  # text, and no stop strings

    def take(self, raw: bytes) -> bytes | None:
        decoder = self._stream
        token_id = None if decoder is None else read_one_id(raw)
        if token_id is None:
            return super().take(raw)
        delta = decoder.feed((token_id,))
        if not self._is_plain or decoder.pending_bytes or decoder.fault is not None:
            return self._answer(delta, flush=False)
        return (
            write_text(delta, decoder.tokens_consumed) or self._response(delta).SerializeToString()
        )

    def _process(self, request: stream_pb2.DecodeStreamRequest) -> bytes:
        ids = request.ids[:]
        limits.check("ids", len(ids), self._options.settings.max_ids, "ids")
        return self._answer(self._stream.feed(ids), flush=request.flush)

    def _finish(self) -> bytes:
        return self._answer(self._stream.feed(()), flush=True)

    def abandon(self) -> bytes | None:
        self.over = True
        if self._stream is None:
            return None
        delta = self._stream.abandon()
        return self._response(delta).SerializeToString() if delta else None

    def record(self) -> None:
        if self._stream is not None:
            self.call.tokens = self._stream.tokens_consumed

    def _configure(self, config: stream_pb2.DecodeStreamConfig) -> Entry:
        settings = self._options.settings
        entry, errors = self._options.decode(config, self.call)
        limits.check("prefill_ids", len(config.prefill_ids), settings.max_ids, "ids")
        stop = list(config.stop)
        limits.check("stop", len(stop), settings.max_stop_strings, "strings")
        size = sum(text_length(each, "byte") for each in stop)
        limits.check("stop", size, settings.max_stop_bytes, "bytes")
        if "" in stop:
            raise InvalidField("stop", "must not contain an empty string")
        self._is_plain = not stop and errors is not None
        try:
            self._stream = StreamDecoder(
                entry.encoding,
                prefill_ids=config.prefill_ids,
                skip_special_tokens=config.skip_special_tokens,
                stop=stop,
                include_stop=config.include_stop,
                **({"as_bytes": True} if errors is None else {"errors": errors}),
            )
        except UnknownTokenId as error:
            unknown = NoTokenWithId(entry.name, error.token_id, error.index)
            raise InConfig(unknown, "prefill_ids") from None
        self.inline_max_bytes = self._inline_max_bytes
        if stop:
            self.inline_max_bytes = min(self.inline_max_bytes, _STOP_INLINE_MAX_BYTES)
        return entry

    def _answer(self, delta: Any, *, flush: bool) -> bytes:
        """The answer with `delta`, marked as the last one if it is."""
        decoder = self._stream
        stopped = decoder.stop_matched is not None
        if flush and not stopped and decoder.fault is None:
            try:
                delta += decoder.finish()
            except BytepairError:
                delta += decoder.undelivered
            stopped = decoder.stop_matched is not None
        answer = self._response(delta)
        self.fault = fault = decoder.fault
        if isinstance(fault, UnknownTokenId):
            self.fault = NoTokenWithId(self.call.encoding, fault.token_id, fault.index)
        if self.fault is not None or flush or stopped:
            self.over = True
            answer.finished = self.fault is None
        if decoder.stop_matched is not None:
            answer.stop_matched = decoder.stop_matched
        return answer.SerializeToString()

    def _response(self, delta: str | bytes) -> stream_pb2.DecodeStreamResponse:
        decoder = self._stream
        answer = _Response(
            tokens_consumed=decoder.tokens_consumed, pending_bytes=decoder.pending_bytes
        )
        if isinstance(delta, str):
            answer.text = delta
        else:
            answer.data = delta
        return answer


def read_one_id(raw: bytes) -> int | None:
    """The id of a request that holds only one id of at most three bytes; else None."""
    size = len(raw)
    if size == 5:
        key, length, low, middle, high = raw
        if key == _IDS and length == 3 and low > 127 and middle > 127 and high < 128:
            return low & 127 | (middle & 127) << 7 | high << 14
    elif size == 4:
        key, length, low, high = raw
        if key == _IDS and length == 2 and low > 127 and high < 128:
            return low & 127 | high << 7
    elif size == 3:
        key, length, low = raw
        if key == _IDS and length == 1 and low < 128:
            return low
    return None


def write_text(text: str, consumed: int) -> bytes | None:
    """Serialise an answer with `text` and `tokens_consumed`, at least 1; None if it is not
    short."""
    data = text.encode()
    size = len(data)
    if size > 127:
        return None
    if consumed < 1 << 7:
        return _ANSWER[0] % (size, data, consumed)
    if consumed < 1 << 14:
        return _ANSWER[1] % (size, data, consumed & 127 | 128, consumed >> 7)
    if consumed < 1 << 21:
        middle = consumed >> 7 & 127 | 128
        return _ANSWER[2] % (size, data, consumed & 127 | 128, middle, consumed >> 14)
    return None
