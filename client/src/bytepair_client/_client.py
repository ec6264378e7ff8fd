"""The synchronous client."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain
from typing import Any, ClassVar, Concatenate, Self

import grpc

from bytepair_client._arguments import Defaults
from bytepair_client._base import BaseClient
from bytepair_client._call import (
    MAX_UNDER_WAY,
    Method,
    P,
    Plain,
    Prepared,
    R,
    Response,
    StreamCall,
    Work,
    method_of,
    run,
)
from bytepair_client._operations import chats, context, decoding, describing, encoding
from bytepair_client._stream import Stream


def plain(
    operation: Callable[Concatenate[Defaults, P], Prepared[Any, Plain]],
) -> Callable[Concatenate[TokenizerClient, P], Plain]:
    """A method that returns the plain value of the response."""
    return method_of(operation, lambda client, call: run(call.value(client)))


def raw(
    operation: Callable[Concatenate[Defaults, P], Prepared[Response, Any]],
) -> Callable[Concatenate[RawResponses, P], Response]:
    """A method that returns the response message."""
    return method_of(operation, lambda raw, call: run(call.response(raw._client)))


def stream(
    operation: Callable[Concatenate[Defaults, P], StreamCall[Response, Plain]],
) -> Callable[Concatenate[TokenizerClient, P], Stream[Response, Plain]]:
    """A method that returns an iterator of plain values."""
    return method_of(operation, Stream)


def raw_stream(
    operation: Callable[Concatenate[Defaults, P], StreamCall[Response, Any]],
) -> Callable[Concatenate[RawResponses, P], Stream[Response, Response]]:
    """A method that returns an iterator of response messages."""
    return method_of(operation, lambda raw, call: Stream(raw._client, call.with_messages()))


class TokenizerClient(BaseClient):
    """A synchronous client of the tokenizer service, safe for threads.

        with TokenizerClient("localhost:50051", encoding="o200k_base") as client:
            ids = client.encode("Hello, world")

    Methods return plain values: ids, text or a number. Methods named `…_stream` read an iterable
    and send each item when it arrives; `decode_stream`, `encode_stream` and `split_stream` return
    an iterator. Every error is a TokenizerError; each method documents its own types.
    """

    _grpc: ClassVar = grpc

    encode = plain(encoding.encode)
    encode_with_offsets = plain(encoding.encode_with_offsets)
    encode_batch = plain(encoding.encode_batch)
    encode_stream = stream(encoding.encode_stream)
    decode = plain(decoding.decode)
    decode_bytes = plain(decoding.decode_bytes)
    decode_batch = plain(decoding.decode_batch)
    decode_stream = stream(decoding.decode_stream)
    count = plain(encoding.count)
    count_batch = plain(encoding.count_batch)
    count_stream = plain(encoding.count_stream)
    count_chat = plain(chats.count_chat)
    count_chat_batch = plain(chats.count_chat_batch)
    encode_chat = plain(chats.encode_chat)
    fit_chat = plain(chats.fit_chat)
    list_chat_formats = plain(describing.list_chat_formats)
    get_chat_format = plain(describing.get_chat_format)
    truncate = plain(context.truncate)
    truncate_batch = plain(context.truncate_batch)
    split = plain(context.split)
    split_stream = stream(context.split_stream)
    inspect = plain(context.inspect)
    list_encodings = plain(describing.list_encodings)
    get_encoding = plain(describing.get_encoding)
    get_token = plain(describing.get_token)
    health = plain(describing.health)

    @property
    def with_raw_response(self) -> RawResponses:
        """The same methods, returning messages of `bytepair.v1` instead of plain values.

        These also hold the canonical encoding, its fingerprint, and the error of each batch item.
        """
        return RawResponses(self)

    def close(self) -> None:
        """Close the connections. Running calls raise Cancelled, later ones ClientClosed."""
        channel = self._take_channel()
        if channel is not None:
            channel.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # These coroutines block and never suspend, as `run` requires.

    async def _send(
        self, method: Method[Response], payload: bytes, seconds: float | None, timeout: float | None
    ) -> Response:
        try:
            response: Response = self._start(method, payload, seconds)
        except grpc.RpcError as error:
            raise self._error(error, timeout) from error
        return response

    def _start(self, method: Method[Any], request: object, seconds: float | None) -> Any:
        """Start an RPC. Returns the response of a unary one, the call of a stream."""
        rpc = self._rpc(method)
        try:
            return rpc(request, timeout=seconds, metadata=self._metadata)
        except ValueError as error:
            if self._closed.is_set():  # by another thread, after _rpc
                raise self._closed_error() from error
            raise

    async def _sleep(self, seconds: float) -> None:
        if self._closed.wait(seconds):
            raise self._closed_error()

    async def _collect(self, stream: StreamCall[Any, Any]) -> list[Any]:
        with Stream(self, stream) as responses:
            return list(responses)

    async def _run_all(
        self, function: Work[R], arguments: Iterable[Any], take: Callable[[R], None]
    ) -> None:
        arguments = iter(arguments)
        first, second = next(arguments), next(arguments, None)
        if second is None:  # a single argument needs no threads
            take(await function(first))
            return
        under_way: deque[Future[R]] = deque()
        threads = ThreadPoolExecutor(MAX_UNDER_WAY, thread_name_prefix="bytepair-batch")
        try:
            for argument in chain((first, second), arguments):
                if len(under_way) == MAX_UNDER_WAY:
                    take(under_way.popleft().result())
                under_way.append(threads.submit(lambda each: run(function(each)), argument))
            while under_way:
                take(under_way.popleft().result())
        finally:
            threads.shutdown(wait=False, cancel_futures=True)


class RawResponses:
    """The methods of a TokenizerClient, returning messages of `bytepair.v1`."""

    def __init__(self, client: TokenizerClient) -> None:
        self._client = client
        self._defaults = client._defaults

    encode = raw(encoding.encode)
    encode_with_offsets = raw(encoding.encode_with_offsets)
    encode_batch = raw(encoding.encode_batch)
    encode_stream = raw_stream(encoding.encode_stream)
    decode = raw(decoding.decode)
    decode_bytes = raw(decoding.decode_bytes)
    decode_batch = raw(decoding.decode_batch)
    decode_stream = raw_stream(decoding.decode_stream)
    count = raw(encoding.count)
    count_batch = raw(encoding.count_batch)
    count_stream = raw(encoding.count_stream)
    count_chat = raw(chats.count_chat)
    count_chat_batch = raw(chats.count_chat_batch)
    encode_chat = raw(chats.encode_chat)
    fit_chat = raw(chats.fit_chat)
    list_chat_formats = raw(describing.list_chat_formats)
    get_chat_format = raw(describing.get_chat_format)
    truncate = raw(context.truncate)
    truncate_batch = raw(context.truncate_batch)
    split = raw(context.split)
    split_stream = raw_stream(context.split_stream)
    inspect = raw(context.inspect)
    list_encodings = raw(describing.list_encodings)
    get_encoding = raw(describing.get_encoding)
    get_token = raw(describing.get_token)
