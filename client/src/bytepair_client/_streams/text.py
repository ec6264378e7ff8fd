"""The send buffer and the calls of EncodeStream, CountStream and SplitStream."""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic

from bytepair.v1 import context_pb2, stream_pb2
from google.protobuf.message import Message

from bytepair_client._call import Method, Plain, Response, StreamCall
from bytepair_client._errors import InvalidUtf8, SpecialTokenInText, TokenizerError
from bytepair_client._options import Defaults
from bytepair_client._streams.buffer import SendBuffer, shift
from bytepair_client._text import lone_surrogate

TextConfig = (
    stream_pb2.EncodeStreamConfig | stream_pb2.CountStreamConfig | context_pb2.SplitStreamConfig
)
TextRequest = (
    type[stream_pb2.EncodeStreamRequest]
    | type[stream_pb2.CountStreamRequest]
    | type[context_pb2.SplitStreamRequest]
)


Pieces = Iterable[str | bytes] | AsyncIterable[str | bytes]

#: For one request of a stream: large enough that the overhead of a message is negligible.
MAX_PIECE_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class TextStream(Generic[Response, Plain]):
    """An RPC that takes a text in pieces; its fields are those of StreamCall."""

    method: Method[Response]
    request: TextRequest
    plain: Callable[[Response], Plain]
    response_per_request: bool = True
    gives_lists: bool = False
    restarts: bool = False  # whether sending the text again repeats no output

    def call(
        self, defaults: Defaults, config: Any, pieces: Pieces | str | bytes, timeout: float | None
    ) -> StreamCall[Response, Plain]:
        """The call for a text or its pieces, with this configuration."""
        is_one = isinstance(pieces, str | bytes | bytearray | memoryview)
        source: Any = (pieces,) if is_one else pieces
        # An iterator returns itself, and cannot be read again.
        can_read_again = (
            self.restarts and isinstance(source, Iterable) and iter(source) is not source
        )
        piece_bytes = min(MAX_PIECE_BYTES, defaults.max_unary_bytes)
        return StreamCall(
            self.method,
            TextBuffer(config, self.request, piece_bytes),
            source,
            timeout,
            self.plain,
            self.response_per_request,
            (lambda: source) if can_read_again else None,
            self.gives_lists,
        )


class TextBuffer(SendBuffer[bytearray]):
    """The send buffer for text, as UTF-8 cut anywhere."""

    def __init__(self, config: TextConfig, request: TextRequest, max_request_bytes: int) -> None:
        """Hold only the configuration. A request has at most `max_request_bytes` of text."""
        super().__init__(max_request_bytes, bytearray)
        self._settles = request is stream_pb2.EncodeStreamRequest
        self._config = config
        self._type: Any = request
        # The number of ids that the template puts before the text, and how many of them the next
        # response repeats.
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
            raise TypeError(f"pieces must be str or bytes, not {type(item).__name__}")

    @property
    def _config_goes_alone(self) -> bool:
        # The first response then holds exactly the template's ids before the text.
        return self._settles and self._config.add_special_tokens

    def _request(self, part: bytearray, *, with_config: bool) -> Message:
        request: Message = self._type(
            config=self._config if with_config else None, data=bytes(part) if part else None
        )
        return request

    def read(self, response: Any) -> bool:
        if not self._settles:
            return True
        response.bytes_consumed += self._base
        if self._template_size is None:
            self._template_size = len(response.ids) if self._config_goes_alone else 0
        elif self._repeated:
            del response.ids[: self._repeated]
            self._repeated = 0
        if not response.finished and self.can_rewind:
            self._preceding = (
                _last_character(self._settle(response.bytes_consumed)) or self._preceding
            )
        return True

    def rewind(self, first: Any) -> None:
        super().rewind(first)
        if isinstance(self._config, stream_pb2.EncodeStreamConfig):
            self._config.preceding_text = self._preceding.decode()
        # The next connection repeats the template if no character was settled before.
        self._repeated = 0 if self._preceding else self._template_size or 0

    def _pin(self, first: stream_pb2.EncodeStreamResponse) -> None:
        self._config.encoding = first.encoding
        self._config.expected_fingerprint = first.fingerprint

    def correct(self, failure: TokenizerError) -> None:
        if isinstance(failure, InvalidUtf8 | SpecialTokenInText):
            shift(failure, "byte_offset", self._base)


def _last_character(data: bytearray) -> bytes:
    """The last character of UTF-8 that ends at a boundary; b"" for no text."""
    start = len(data) - 1
    while start > 0 and data[start] & 0xC0 == 0x80:
        start -= 1
    return bytes(data[start:])


def _slices(data: bytes, step: int) -> Iterator[bytearray]:
    for start in range(0, len(data), step):
        yield bytearray(data[start : start + step])
