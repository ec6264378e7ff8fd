"""A gRPC server whose streams go as a test tells them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Self

import grpc
from bytepair.v1 import stream_pb2

#: How one stream goes: from its requests to the bytes of its answers, or to an abort.
StreamAnswer = Callable[[Iterator[bytes], grpc.ServicerContext], Iterator[bytes]]


def text(content: str, consumed: int = 1) -> bytes:
    """An answer of DecodeStream, to this many ids so far."""
    answer = stream_pb2.DecodeStreamResponse(text=content, tokens_consumed=consumed)
    return answer.SerializeToString()


def echo(requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
    """Answer each request with its ids, written as numbers."""
    consumed = 0
    for request in requests:
        ids = stream_pb2.DecodeStreamRequest.FromString(request).ids
        consumed += len(ids)
        yield text("".join(f"{i} " for i in ids), consumed)


def refuse(code: grpc.StatusCode) -> StreamAnswer:
    """A stream that fails before anything is read."""

    def answer(requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        context.abort(code, "not now")
        yield b""

    return answer


class Open:
    """A stream that answers its first request and then holds on; it notes when it is over."""

    def __init__(self) -> None:
        self.over = threading.Event()

    def __call__(self, requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        context.add_callback(self.over.set)
        next(requests)
        yield text("first")
        self.over.wait()


class ScriptedStreams:
    """Lets each stream go by the next answer of its script, then by the last for ever.

    Attributes:
        target: Where it is served.
        metadata: The metadata of each stream so far.
    """

    def __init__(self, *script: StreamAnswer) -> None:
        self._script = script
        self._lock = threading.Lock()
        self.metadata: list[dict[str, str | bytes]] = []
        self._server = grpc.server(ThreadPoolExecutor(max_workers=8))
        self._server.add_generic_rpc_handlers((_Handler(self._answer),))
        self.target = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.stop(grace=None).wait()

    def _answer(self, requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        with self._lock:
            answer = self._script[min(len(self.metadata), len(self._script) - 1)]
            self.metadata.append(dict(context.invocation_metadata()))
        return answer(requests, context)


class _Handler(grpc.GenericRpcHandler):
    def __init__(self, answer: StreamAnswer) -> None:
        self._answer = answer

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[bytes, bytes]:
        return grpc.stream_stream_rpc_method_handler(self._answer)
