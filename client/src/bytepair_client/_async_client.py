"""The asyncio client."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any, ClassVar, Concatenate, Self

import grpc

from bytepair_client._arguments import Defaults
from bytepair_client._async_stream import AsyncStream, is_being_cancelled
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
)
from bytepair_client._errors import Cancelled
from bytepair_client._operations import chats, context, decoding, describing, encoding


async def _value(client: AsyncTokenizerClient, call: Prepared[Any, Plain]) -> Plain:
    return await call.value(client)


async def _response(raw: AsyncRawResponses, call: Prepared[Response, Any]) -> Response:
    return await call.response(raw._client)


def plain(
    operation: Callable[Concatenate[Defaults, P], Prepared[Any, Plain]],
) -> Callable[Concatenate[AsyncTokenizerClient, P], Coroutine[Any, Any, Plain]]:
    """A method that returns the plain value of the response."""
    return method_of(operation, _value)


def raw(
    operation: Callable[Concatenate[Defaults, P], Prepared[Response, Any]],
) -> Callable[Concatenate[AsyncRawResponses, P], Coroutine[Any, Any, Response]]:
    """A method that returns the response message."""
    return method_of(operation, _response)


def stream(
    operation: Callable[Concatenate[Defaults, P], StreamCall[Response, Plain]],
) -> Callable[Concatenate[AsyncTokenizerClient, P], AsyncStream[Response, Plain]]:
    """A method that returns an iterator of plain values."""
    return method_of(operation, AsyncStream)


def raw_stream(
    operation: Callable[Concatenate[Defaults, P], StreamCall[Response, Any]],
) -> Callable[Concatenate[AsyncRawResponses, P], AsyncStream[Response, Response]]:
    """A method that returns an iterator of response messages."""
    return method_of(operation, lambda raw, call: AsyncStream(raw._client, call.with_messages()))


class AsyncTokenizerClient(BaseClient):
    """An asyncio client of the tokenizer service.

    It belongs to the event loop that runs its first call.

        async with AsyncTokenizerClient("localhost:50051", encoding="o200k_base") as client:
            ids = await client.encode("Hello, world")

    Methods return plain values: ids, text or a number. Methods named `…_stream` read an iterable,
    asynchronous or not, and send each item when it arrives; `decode_stream`, `encode_stream` and
    `split_stream` are not awaited: they return an asynchronous iterator. Every error is a
    TokenizerError; each method documents its own types.
    """

    _grpc: ClassVar = grpc.aio

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
    def with_raw_response(self) -> AsyncRawResponses:
        """The same methods, returning messages of `bytepair.v1` instead of plain values.

        These also hold the canonical encoding, its fingerprint, and the error of each batch item.
        """
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

    async def _send(
        self, method: Method[Response], payload: bytes, seconds: float | None, timeout: float | None
    ) -> Response:
        rpc = self._rpc(method)
        sent = rpc(payload, timeout=seconds, metadata=self._metadata)
        response: Response = await self._wait(sent, timeout)
        return response

    async def _wait(self, response: Awaitable[R], timeout: float | None) -> R:
        """Wait for a response. Raises TokenizerError instead of gRPC's errors."""
        try:
            return await response
        except grpc.aio.AioRpcError as error:
            raise self._error(error, timeout) from error
        except asyncio.CancelledError as error:
            if self._closed.is_set() and not is_being_cancelled():
                # close() cancelled the call, not this task.
                message = f"{self.target}: the client was closed during the call"
                raise Cancelled(message, code=grpc.StatusCode.CANCELLED.name) from error
            raise

    async def _sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        if self._closed.is_set():
            raise self._closed_error()

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
        return await asyncio.to_thread(self._connection_fault)


class AsyncRawResponses:
    """The methods of an AsyncTokenizerClient, returning messages of `bytepair.v1`."""

    def __init__(self, client: AsyncTokenizerClient) -> None:
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
