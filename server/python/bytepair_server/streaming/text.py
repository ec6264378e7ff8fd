"""EncodeStream, CountStream and SplitStream: text in pieces to ids, to their count or to chunks."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Final, TypeVar
from weakref import WeakKeyDictionary

from bytepair.v1 import context_pb2, stream_pb2
from bytepair_engine import (
    Encoding,
    InvalidOption,
    InvalidUnicode,
    PieceTooLong,
    StreamCounter,
    StreamEncoder,
    can_stream,
)
from bytepair_engine.context.splitting import Chunk
from bytepair_engine.context.stream import StreamChunker
from bytepair_engine.errors import BudgetTooSmall

from bytepair_server.auth.policy import AS_TEXT, REJECT, SpecialRule
from bytepair_server.catalog import Entry
from bytepair_server.errors import InConfig, InvalidField, InvalidText, NoSplitPoint
from bytepair_server.rpc import wire
from bytepair_server.rpc.context_service import ChunkWriter, split_options
from bytepair_server.rpc.options import limit_of
from bytepair_server.streaming.session import Session

T = TypeVar("T")

#: Bytes or characters that are split at once.
PART: Final = 1 << 14
#: The size of the longest special token in bytes, at least 1.
_LONGEST: Final[WeakKeyDictionary[Encoding, int]] = WeakKeyDictionary()


def _unsplittable(error: PieceTooLong) -> NoSplitPoint:
    return NoSplitPoint(error.limit, "max_pending_bytes")


class TextSession(Session):
    """The base of streams of text. Buffered text is never certain output."""

    _DEFAULT_ACTION: ClassVar[int]
    _FIRST_INLINE_MAX_BYTES = -1  # it may compile a thousand special tokens
    _detector: SpecialTokenDetector | None = None

    @abstractmethod
    def _open(self, entry: Entry, rule: SpecialRule, config: Any) -> Any:
        """Make the engine's stream."""

    @abstractmethod
    def _feed(self, piece: str | bytes) -> bytes | None:
        """The answer to a piece."""

    @abstractmethod
    def _last(self) -> bytes:
        """The last answer."""

    def _process(self, request: Any) -> bytes | None:
        kind = request.WhichOneof("piece")
        piece = "" if kind is None else getattr(request, kind)
        if self._detector is not None and self._detector.finds(piece):
            self.call.policy["as_text"] = None
            self._detector = None
        answer = self._guarded(lambda: self._feed(piece))
        self.held = self._stream.pending_bytes
        # The next message may release the buffered text.
        self.inline_max_bytes = self._inline_max_bytes - self.held
        return answer

    def _finish(self) -> bytes:
        answer = self._guarded(self._last)
        self.held = 0
        self.over = True
        return answer

    def record(self) -> None:
        if self._stream is not None:
            self.call.input_bytes = self._stream.bytes_consumed

    def _configure(self, config: Any) -> Entry:
        entry, rule = self._options.text(config, self.call, self._DEFAULT_ACTION)
        if not can_stream(entry.encoding):
            raise InvalidField(
                "encoding",
                f"text cannot be streamed into {entry.name}: no points are known where its text "
                "can be split; use the RPC without streams",
            )
        self._stream = self._open(entry, rule, config)
        if not rule["disallowed_special"]:
            self._detector = SpecialTokenDetector(entry.encoding, rule["allowed_special"])
        return entry

    def _guarded(self, step: Callable[[], T]) -> T:
        """The answer of a step of the engine, with its errors as errors of the request."""
        try:
            return step()
        except InvalidUnicode as error:
            raise InvalidText("data", error.byte_offset) from None
        except (BudgetTooSmall, InvalidOption) as error:
            raise InConfig(error) from None
        except PieceTooLong as error:
            raise _unsplittable(error) from None


class EncodeSession(TextSession):
    """One EncodeStream."""

    _REQUEST = stream_pb2.EncodeStreamRequest
    _RESPONSE = stream_pb2.EncodeStreamResponse
    _DEFAULT_ACTION = REJECT

    def _open(self, entry: Entry, rule: SpecialRule, config: Any) -> StreamEncoder:
        return StreamEncoder(
            entry.encoding,
            max_pending_bytes=self._options.settings.max_pending_bytes,
            **rule,
            preceding_text=config.preceding_text,
        )

    def _feed(self, piece: str | bytes) -> bytes:
        return self._answer(self._stream.feed_packed(piece))

    def _last(self) -> bytes:
        return self._answer(self._stream.finish_packed(), finished=True)

    def abandon(self) -> bytes | None:
        self.over = True
        packed = None if self._stream is None else self._stream.before_fault
        return self._named(self._answer(packed)) if packed else None

    def _answer(self, packed: bytes, *, finished: bool = False) -> bytes:
        answer = stream_pb2.EncodeStreamResponse(
            bytes_consumed=self._stream.bytes_consumed,
            pending_bytes=self._stream.pending_bytes,
            finished=finished,
        )
        self.call.tokens += wire.number_of(packed)
        return wire.field(wire.IDS, packed) + answer.SerializeToString()


class CountSession(TextSession):
    """One CountStream. Its only answer is the last one."""

    _REQUEST = stream_pb2.CountStreamRequest
    _RESPONSE = stream_pb2.CountStreamResponse
    _DEFAULT_ACTION = AS_TEXT

    def _open(self, entry: Entry, rule: SpecialRule, config: Any) -> StreamCounter:
        return StreamCounter(
            entry.encoding,
            limit=limit_of(config),
            max_pending_bytes=self._options.settings.max_pending_bytes,
            **rule,
        )

    def _feed(self, piece: str | bytes) -> bytes | None:
        self._stream.feed(piece)
        if not self._stream.limit_exceeded:
            return None
        self.over = True
        return self._last()

    def _last(self) -> bytes:
        counter = self._stream
        self.call.tokens = counter.finish()
        return stream_pb2.CountStreamResponse(
            count=self.call.tokens,
            limit_exceeded=counter.limit_exceeded,
            bytes_consumed=counter.bytes_consumed,
        ).SerializeToString()


class SpecialTokenDetector:
    """Detects special tokens in a text that arrives in pieces."""

    __slots__ = ("_allowed", "_encoding", "_kept", "_tail")

    def __init__(self, encoding: Encoding, allowed: frozenset[str]) -> None:
        """Detect the special tokens that are not in `allowed`."""
        self._encoding: Final = encoding
        self._allowed: Final = allowed
        if encoding not in _LONGEST:
            sizes = [len(name.encode()) for name in encoding.special_tokens]
            _LONGEST[encoding] = max(sizes, default=1)
        self._kept: Final = _LONGEST[encoding] - 1
        self._tail = b""

    def finds(self, piece: str | bytes) -> bool:
        """Whether the next piece, cut anywhere, completes a special token."""
        data = self._tail + (piece if isinstance(piece, bytes) else piece.encode())
        self._tail = data[-self._kept :] if self._kept else b""
        return self._encoding.contains_special(data, allowed_special=self._allowed)


class SplitSession(TextSession):
    """One SplitStream."""

    _REQUEST = context_pb2.SplitStreamRequest
    _RESPONSE = context_pb2.SplitStreamResponse
    _DEFAULT_ACTION = AS_TEXT
    _COST = 256  # each byte may become a chunk

    def _open(self, entry: Entry, rule: SpecialRule, config: Any) -> StreamChunker:
        self._parts: list[bytes] = []  # the chunks of a message that were found so far
        self._writer = ChunkWriter(entry, rule, config)
        return StreamChunker(
            entry.encoding,
            split_options(config, rule),
            disallowed_special=rule["disallowed_special"],
            max_pending_bytes=self._options.settings.max_pending_bytes,
        )

    def _feed(self, piece: str | bytes) -> bytes:
        # Part by part, so that few chunks are in memory at once: protobuf merges joined messages.
        for start in range(0, len(piece), PART):
            self._write(self._stream.feed(piece[start : start + PART]))
        return self._answer()

    def _last(self) -> bytes:
        self._write(self._stream.finish())
        return self._answer(finished=True)

    def abandon(self) -> bytes | None:
        self.over = True
        if self._stream is None:
            return None
        self._write(self._stream.before_fault)
        return self._named(self._answer()) if any(self._parts) else None

    def _write(self, chunks: list[Chunk]) -> None:
        self.call.tokens += sum(chunk.count for chunk in chunks)
        part = context_pb2.SplitStreamResponse(chunks=map(self._writer.write, chunks))
        self._parts.append(part.SerializeToString())

    def _answer(self, *, finished: bool = False) -> bytes:
        parts, self._parts = self._parts, []
        rest = context_pb2.SplitStreamResponse(
            bytes_consumed=self._stream.bytes_consumed,
            pending_bytes=self._stream.pending_bytes,
            finished=finished,
        )
        return b"".join((*parts, rest.SerializeToString()))
