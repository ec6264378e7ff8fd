"""SplitStream: text in pieces of any size to chunks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bytepair.v1 import context_pb2
from bytepair_engine import PieceTooLong
from bytepair_engine.context.splitting import Chunk
from bytepair_engine.context.stream import StreamChunker
from bytepair_engine.errors import BudgetTooSmall

from bytepair_server.auth.policy import AS_TEXT, SpecialRule
from bytepair_server.catalog import Entry
from bytepair_server.rpc.context_options import ChunkWriter, split_options
from bytepair_server.streaming.text import TextSession, unsplittable


class SplitSession(TextSession):
    """One SplitStream."""

    __slots__ = ("_writer",)

    _REQUEST = context_pb2.SplitStreamRequest
    _DEFAULT_ACTION = AS_TEXT

    def _open(self, entry: Entry, rule: SpecialRule, config: Any) -> StreamChunker:
        self._writer = ChunkWriter(entry, rule, config)
        return StreamChunker(
            entry.encoding,
            split_options(config, rule),
            disallowed_special=rule["disallowed_special"],
            max_pending_bytes=self._options.settings.max_pending_bytes,
        )

    def _feed(self, piece: str | bytes, entry: Entry | None) -> bytes:
        answer = self._answer(lambda: self._stream.feed(piece))
        if entry is not None:
            answer.encoding, answer.fingerprint = entry.name, entry.fingerprint
        return answer.SerializeToString()

    def _finish(self) -> bytes:
        answer = self._answer(self._stream.finish)
        answer.finished = self.fault is None
        return answer.SerializeToString()

    def _answer(self, step: Callable[[], list[Chunk]]) -> context_pb2.SplitStreamResponse:
        """The chunks of a step. An error follows the chunks before it."""
        try:
            chunks = step()
        except (BudgetTooSmall, PieceTooLong) as error:
            chunks = self._stream.before_fault
            if not chunks:
                raise
            self.fault = unsplittable(error) if isinstance(error, PieceTooLong) else error
            self.over = True
        self.call.tokens += sum(chunk.count for chunk in chunks)
        return context_pb2.SplitStreamResponse(
            chunks=map(self._writer.write, chunks),
            bytes_consumed=self._stream.bytes_consumed,
            pending_bytes=self._stream.pending_bytes,
        )
