"""The client for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, cast

import grpc
from google.protobuf.message import Message

from bytepair_client import operations
from bytepair_client.aio_coalescer import AsyncCoalescer
from bytepair_client._async_duplex import Duplex
from bytepair_client._async_stream import AsyncStream, is_being_cancelled
from bytepair_client._base import BaseClient
from bytepair_client._call import Call, Method, StreamCall, Whole
from bytepair_client._errors import InputTooLarge
from bytepair_client._status import FailedCall, cut_off
from bytepair_client.joint import key_of
from bytepair_client.lanes import Lanes
from bytepair_client._options import Defaults

P = ParamSpec("P")
Response = TypeVar("Response", bound=Message)
Plain = TypeVar("Plain")


def _plain(
    operation: Callable[Concatenate[Defaults, P], Call[Response, Plain]],
) -> Callable[Concatenate[AsyncTokenizerClient, P], Coroutine[Any, Any, Plain]]:
    """The method that runs `operation` and returns the plain value of its answer."""

    @wraps(operation)
    async def run(self: AsyncTokenizerClient, /, *args: P.args, **kwargs: P.kwargs) -> Plain:
        call = operation(self._defaults, *args, **kwargs)
        return call.plain(await self._run(call))

    return run


def _full(
    operation: Callable[Concatenate[Defaults, P], Call[Response, Any]],
) -> Callable[Concatenate[AsyncFullResponses, P], Coroutine[Any, Any, Response]]:
    """The method that runs `operation` and returns its whole answer."""

    @wraps(operation)
    async def run(self: AsyncFullResponses, /, *args: P.args, **kwargs: P.kwargs) -> Response:
        return await self._client._run(operation(self._client._defaults, *args, **kwargs))

    return run


def _pieces(
    operation: Callable[Concatenate[Defaults, P], StreamCall[Response, Plain]],
) -> Callable[Concatenate[AsyncTokenizerClient, P], AsyncStream[Response, Plain]]:
    """The method that streams `operation` and gives the plain value of each answer."""

    @wraps(operation)
    def run(
        self: AsyncTokenizerClient, /, *args: P.args, **kwargs: P.kwargs
    ) -> AsyncStream[Response, Plain]:
        return self._stream(operation(self._defaults, *args, **kwargs))

    return run


def _answers(
    operation: Callable[Concatenate[Defaults, P], StreamCall[Response, Any]],
) -> Callable[Concatenate[AsyncFullResponses, P], AsyncStream[Response, Response]]:
    """The method that streams `operation` and gives its answers."""

    @wraps(operation)
    def run(
        self: AsyncFullResponses, /, *args: P.args, **kwargs: P.kwargs
    ) -> AsyncStream[Response, Response]:
        call = operation(self._client._defaults, *args, **kwargs)
        return self._client._stream(call.whole_answers())

    return run


class AsyncFullResponses:
    """The methods of a AsyncTokenizerClient, answering with the messages of `bytepair.v1`."""

    def __init__(self, client: AsyncTokenizerClient) -> None:
        self._client = client

    encode = _full(operations.encode)
    encode_with_offsets = _full(operations.encode_with_offsets)
    encode_batch = _full(operations.encode_batch)
    encode_stream = _answers(operations.encode_stream)
    decode = _full(operations.decode)
    decode_bytes = _full(operations.decode_bytes)
    decode_batch = _full(operations.decode_batch)
    decode_stream = _answers(operations.decode_stream)
    count = _full(operations.count)
    count_batch = _full(operations.count_batch)
    count_stream = _full(operations.count_stream)
    list_encodings = _full(operations.list_encodings)
    get_encoding = _full(operations.get_encoding)


class AsyncTokenizerClient(BaseClient):
    """A client of the tokenizer service, for the many tasks of one event loop.

    It belongs to the loop in which its first call is made.

    Every method returns the plain value: ids, a text, a number. The method of the same name
    on `full` takes the same arguments and returns the whole answer: the message of
    `bytepair.v1`, with the canonical encoding, its fingerprint, and each error of a batch in
    its place.

        async with AsyncTokenizerClient("localhost:50051", encoding="o200k_base") as client:
            ids = await client.encode("Hello, world")

    Those whose names end in `_stream` send what an iterable gives, asynchronous or not, as it
    gives it; `decode_stream` and `encode_stream` return an asynchronous iterator at once.
    """

    encode = _plain(operations.encode)
    encode_with_offsets = _plain(operations.encode_with_offsets)
    encode_batch = _plain(operations.encode_batch)
    encode_stream = _pieces(operations.encode_stream)
    decode = _plain(operations.decode)
    decode_bytes = _plain(operations.decode_bytes)
    decode_batch = _plain(operations.decode_batch)
    decode_stream = _pieces(operations.decode_stream)
    count = _plain(operations.count)
    count_batch = _plain(operations.count_batch)
    count_stream = _plain(operations.count_stream)
    list_encodings = _plain(operations.list_encodings)
    get_encoding = _plain(operations.get_encoding)
    health = _plain(operations.health)

    @property
    def full(self) -> AsyncFullResponses:
        """The same methods, answering with whole messages."""
        return AsyncFullResponses(self)

    async def close(self) -> None:
        """Close the connections. Calls that still run are Cancelled, later ones ClientClosed."""
        for channel in self._take_channels():
            await channel.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    def _open(self, arguments: Sequence[tuple[str, str | int]]) -> grpc.aio.Channel:
        if self._credentials is None:
            return grpc.aio.insecure_channel(self.target, arguments)
        return grpc.aio.secure_channel(self.target, self._credentials, arguments)

    async def _run(self, call: Call[Response, Any]) -> Response:
        if call.whole is not None and call.is_large:
            return await self._run_stream(call.whole(None))
        try:
            return await self._run_unary(call)
        except InputTooLarge as refusal:
            if call.whole is None or refusal.field not in ("text", "ids"):
                raise
            limit = refusal.limit
        return await self._run_stream(call.whole(limit))

    async def _run_stream(self, whole: Whole[Response]) -> Response:
        async with self._stream(whole.stream) as answers:
            return self._joined(whole, [answer async for answer in answers])

    async def _run_unary(self, call: Call[Response, Any]) -> Response:
        kept_by = self._counts.key(call)
        if kept_by is None:
            return await self._run_sent(call)
        if self._closed:
            raise self._closed_error()
        answer: Any = self._counts.get(kept_by)
        if answer is None:
            answer = await self._run_sent(call)
            self._counts.put(kept_by, answer)
        return cast(Response, answer)

    async def _run_sent(self, call: Call[Response, Any]) -> Response:
        key = None if self._coalescer is None else key_of(call)
        if key is None:
            return await self._run_alone(call, call.timeout)
        if self._closed:
            raise self._closed_error()
        response: Response = await self._coalescer.run(call, key)
        return response

    async def _run_alone(self, call: Call[Response, Any], seconds: float | None) -> Response:
        sent = self._start(call.method, call.request, seconds)
        response: Response = await self._wait(sent, call.timeout)
        return response

    def _joining(self, lanes: Lanes) -> AsyncCoalescer:
        return AsyncCoalescer(lanes, self.target, send=self._run_alone, start=self._start)

    def _start(self, method: Method[Any], request: Message, seconds: float | None) -> Any:
        payload, rpc = self._payload(request), self._rpc(method)
        return rpc(payload, timeout=seconds, metadata=self._metadata)

    def _stream(self, call: StreamCall[Response, Plain]) -> AsyncStream[Response, Plain]:
        method, timeout = call.method, call.timeout  # and not the source, which may end before

        def start(seconds: float | None) -> Duplex[Response]:
            rpc = self._rpc(method)
            return Duplex(rpc(timeout=seconds, metadata=self._metadata))

        attempts = self._attempts(timeout)
        return AsyncStream(call, attempts, start, lambda read: self._wait(read, timeout))

    async def _wait(self, answer: Awaitable[Any], timeout: float | None) -> Any:
        try:
            return await answer
        except grpc.aio.AioRpcError as error:
            raise self._error(cast(FailedCall, error), timeout) from error
        except asyncio.CancelledError as error:
            if self._closed and not is_being_cancelled():
                # close() cancels what runs, but nobody cancelled the task that waits for it.
                raise cut_off(self.target) from error
            raise
