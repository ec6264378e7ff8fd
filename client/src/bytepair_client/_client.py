"""The clients: the methods of both, and their I/O, which blocks or awaits."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
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
from bytepair_client._errors import Cancelled
from bytepair_client._operations import chats, context, decoding, describing, encoding
from bytepair_client._stream import AsyncStream, Stream, is_being_cancelled


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
    _event: ClassVar = threading.Event

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

    async def _send(self, method: Method[Any, Any], payload: bytes, seconds: float | None) -> Any:
        return self._start(method, payload, seconds)

    async def _wait_for(self, event: threading.Event, seconds: float) -> None:
        event.wait(seconds)

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


# The same for asyncio.


def async_plain(
    operation: Callable[Concatenate[Defaults, P], Prepared[Any, Plain]],
) -> Callable[Concatenate[AsyncTokenizerClient, P], Coroutine[Any, Any, Plain]]:
    return method_of(operation, lambda client, call: call.value(client), waits=True)


def async_raw(
    operation: Callable[Concatenate[Defaults, P], Prepared[Response, Any]],
) -> Callable[Concatenate[AsyncRawResponses, P], Coroutine[Any, Any, Response]]:
    return method_of(operation, lambda raw, call: call.response(raw._client), waits=True)


def async_stream(
    operation: Callable[Concatenate[Defaults, P], StreamCall[Response, Plain]],
) -> Callable[Concatenate[AsyncTokenizerClient, P], AsyncStream[Response, Plain]]:
    return method_of(operation, AsyncStream)


def async_raw_stream(
    operation: Callable[Concatenate[Defaults, P], StreamCall[Response, Any]],
) -> Callable[Concatenate[AsyncRawResponses, P], AsyncStream[Response, Response]]:
    return method_of(operation, lambda raw, call: AsyncStream(raw._client, call.with_messages()))


class AsyncTokenizerClient(BaseClient):
    """An asyncio client of the tokenizer service, for the event loop that runs its first call.

        async with AsyncTokenizerClient("localhost:50051", encoding="o200k_base") as client:
            ids = await client.encode("Hello, world")

    Its methods are those of TokenizerClient, and are awaited, except for `decode_stream`,
    `encode_stream` and `split_stream`, which return an asynchronous iterator. A stream may read an
    asynchronous iterable.
    """

    _grpc: ClassVar = grpc.aio
    _event: ClassVar = asyncio.Event
    _loop: asyncio.AbstractEventLoop | None = None  # of the first call

    encode = async_plain(encoding.encode)
    encode_with_offsets = async_plain(encoding.encode_with_offsets)
    encode_batch = async_plain(encoding.encode_batch)
    encode_stream = async_stream(encoding.encode_stream)
    decode = async_plain(decoding.decode)
    decode_bytes = async_plain(decoding.decode_bytes)
    decode_batch = async_plain(decoding.decode_batch)
    decode_stream = async_stream(decoding.decode_stream)
    count = async_plain(encoding.count)
    count_batch = async_plain(encoding.count_batch)
    count_stream = async_plain(encoding.count_stream)
    count_chat = async_plain(chats.count_chat)
    count_chat_batch = async_plain(chats.count_chat_batch)
    encode_chat = async_plain(chats.encode_chat)
    fit_chat = async_plain(chats.fit_chat)
    list_chat_formats = async_plain(describing.list_chat_formats)
    get_chat_format = async_plain(describing.get_chat_format)
    truncate = async_plain(context.truncate)
    truncate_batch = async_plain(context.truncate_batch)
    split = async_plain(context.split)
    split_stream = async_stream(context.split_stream)
    inspect = async_plain(context.inspect)
    list_encodings = async_plain(describing.list_encodings)
    get_encoding = async_plain(describing.get_encoding)
    get_token = async_plain(describing.get_token)
    health = async_plain(describing.health)

    @property
    def with_raw_response(self) -> AsyncRawResponses:
        """As that of TokenizerClient; its methods are awaited."""
        return AsyncRawResponses(self)

    async def close(self) -> None:
        """Close the connections. Running calls raise Cancelled, later ones ClientClosed."""
        channel = self._take_channel()
        if channel is not None:
            await channel.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    def _start(self, method: Method[Any, Any], request: object, seconds: float | None) -> Any:
        loop = asyncio.get_running_loop()
        if self._loop not in (None, loop):
            raise RuntimeError(f"{self} belongs to another event loop: make one client per loop")
        self._loop = loop
        return super()._start(method, request, seconds)

    async def _send(self, method: Method[Any, Any], payload: bytes, seconds: float | None) -> Any:
        return await self._wait(self._start(method, payload, seconds))

    async def _wait(self, response: Awaitable[R]) -> R:
        """Wait for a response. Raises gRPC's errors, and Cancelled if the client is closed."""
        try:
            return await response
        except asyncio.CancelledError as error:
            if self._closed and not is_being_cancelled():
                # close() cancelled the call, not this task.
                message = f"{self.target}: the client was closed during the call"
                raise Cancelled(message, code=grpc.StatusCode.CANCELLED.name) from error
            raise

    async def _wait_for(self, event: asyncio.Event, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(event.wait(), seconds)

    async def _collect(self, stream: StreamCall[Any, Any]) -> list[Any]:
        async with AsyncStream(self, stream) as responses:
            return [response async for response in responses]

    async def _run_all(
        self, function: Work[R], arguments: Iterable[Any], take: Callable[[R], None]
    ) -> None:
        under_way: deque[asyncio.Task[R]] = deque()

        async def take_first() -> None:
            result = await under_way[0]
            under_way.popleft()
            take(result)

        try:
            for argument in arguments:
                if len(under_way) == MAX_UNDER_WAY:
                    await take_first()
                under_way.append(asyncio.create_task(function(argument)))
            while under_way:
                await take_first()
        finally:
            for task in under_way:
                task.cancel()
            await asyncio.gather(*under_way, return_exceptions=True)

    async def _find_fault(self) -> str | None:
        return await asyncio.to_thread(run, super()._find_fault())


class AsyncRawResponses:
    """The methods of an AsyncTokenizerClient, returning messages of `bytepair.v1`."""

    def __init__(self, client: AsyncTokenizerClient) -> None:
        self._client = client
        self._defaults = client._defaults

    encode = async_raw(encoding.encode)
    encode_with_offsets = async_raw(encoding.encode_with_offsets)
    encode_batch = async_raw(encoding.encode_batch)
    encode_stream = async_raw_stream(encoding.encode_stream)
    decode = async_raw(decoding.decode)
    decode_bytes = async_raw(decoding.decode_bytes)
    decode_batch = async_raw(decoding.decode_batch)
    decode_stream = async_raw_stream(decoding.decode_stream)
    count = async_raw(encoding.count)
    count_batch = async_raw(encoding.count_batch)
    count_stream = async_raw(encoding.count_stream)
    count_chat = async_raw(chats.count_chat)
    count_chat_batch = async_raw(chats.count_chat_batch)
    encode_chat = async_raw(chats.encode_chat)
    fit_chat = async_raw(chats.fit_chat)
    list_chat_formats = async_raw(describing.list_chat_formats)
    get_chat_format = async_raw(describing.get_chat_format)
    truncate = async_raw(context.truncate)
    truncate_batch = async_raw(context.truncate_batch)
    split = async_raw(context.split)
    split_stream = async_raw_stream(context.split_stream)
    inspect = async_raw(context.inspect)
    list_encodings = async_raw(describing.list_encodings)
    get_encoding = async_raw(describing.get_encoding)
    get_token = async_raw(describing.get_token)
