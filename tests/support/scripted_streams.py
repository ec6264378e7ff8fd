"""A gRPC server whose streams follow a script."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import grpc
from bytepair.v1 import stream_pb2

from support.scripted import Scripted

#: A stream: from its requests to the bytes of its answers, or to an abort.
StreamAnswer = Callable[[Iterator[bytes], grpc.ServicerContext], Iterator[bytes]]


def text(content: str, consumed: int = 1) -> bytes:
    """Return an answer of DecodeStream for `ids` ids so far."""
    answer = stream_pb2.DecodeStreamResponse(text=content, tokens_consumed=consumed)
    return answer.SerializeToString()


def echo(requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
    """Answer each request with its ids, formatted as numbers."""
    consumed = 0
    for request in requests:
        ids = stream_pb2.DecodeStreamRequest.FromString(request).ids
        consumed += len(ids)
        yield text("".join(f"{i} " for i in ids), consumed)


def reject(code: grpc.StatusCode) -> StreamAnswer:
    """A stream that fails before anything is read."""

    def answer(requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        context.abort(code, "not now")
        yield b""

    return answer


class Open:
    """A stream that answers its first request and stays open; it records its end."""

    def __init__(self) -> None:
        self.over = threading.Event()

    def __call__(self, requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        context.add_callback(self.over.set)
        next(requests)
        yield text("first")
        self.over.wait()


class ScriptedStreams(Scripted[StreamAnswer]):
    """Answers streams of any RPC."""

    def __init__(self, *script: StreamAnswer) -> None:
        super().__init__(script)

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[bytes, bytes]:
        return grpc.stream_stream_rpc_method_handler(
            lambda requests, context: self._next(context)(requests, context)
        )
