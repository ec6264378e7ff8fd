"""The I/O of AsyncTokenizerClient: calls, batches and streams by asyncio."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

import grpc
from google.protobuf.message import Message

from bytepair_client import _call as calls
from bytepair_client._async_stream import AsyncStream, is_being_cancelled
from bytepair_client._base import BaseClient
from bytepair_client._errors import TokenizerError
from bytepair_client._methods import method_of, prepared
from bytepair_client._options import Defaults
from bytepair_client._status import FailedCall, cut_off

P = ParamSpec("P")
Response = TypeVar("Response", bound=Message)
Plain = TypeVar("Plain")
R = TypeVar("R")


class AsyncClientIO(BaseClient):
    """The input and output of an AsyncTokenizerClient."""

    async def close(self) -> None:
        """Close the connections. Running calls are Cancelled, later ones ClientClosed."""
        channel = self._take_channel()
        if channel is not None:
            await channel.close()

    def _open(self, arguments: Sequence[tuple[str, str | int]]) -> grpc.aio.Channel:
        if self._credentials is None:
            return grpc.aio.insecure_channel(self.target, arguments)
        return grpc.aio.secure_channel(self.target, self._credentials, arguments)

    async def _run(self, flow: calls.Flow[R]) -> R:
        """Carry out a flow, step by step."""
        try:
            step = next(flow)
            while True:
                try:
                    came = await self._do(step)
                except TokenizerError as error:
                    step = flow.throw(error)
                else:
                    step = flow.send(came)
        except StopIteration as end:
            result: R = end.value
            return result

    async def _do(self, step: calls.Step) -> Any:
        match step:
            case calls.Send():
                rpc = self._rpc(step.method)
                sent = rpc(step.payload, timeout=step.seconds, metadata=self._metadata)
                return await self._wait(sent, step.timeout)
            case calls.Sleep():
                await asyncio.sleep(step.seconds)
                if self._closed.is_set():
                    raise self._closed_error()
                return None
            case calls.Collect():
                async with AsyncStream(self, step.stream) as answers:
                    return [answer async for answer in answers]
            case calls.RunAll():
                return await self._run_all(step)
            case calls.Probe():
                return await asyncio.to_thread(self._connection_fault)

    async def _run_all(self, step: calls.RunAll) -> None:
        under_way: deque[asyncio.Task[Any]] = deque()

        async def take() -> None:
            came = await under_way[0]
            under_way.popleft()
            step.take(came)

        try:
            for flow in step.flows:
                if len(under_way) == step.most:
                    await take()
                under_way.append(asyncio.create_task(self._run(flow)))
            while under_way:
                await take()
        finally:
            for task in under_way:
                task.cancel()
            await asyncio.gather(*under_way, return_exceptions=True)

    async def _wait(self, answer: Awaitable[Any], timeout: float | None) -> Any:
        try:
            return await answer
        except grpc.aio.AioRpcError as error:
            raise self._error(cast(FailedCall, error), timeout) from error
        except asyncio.CancelledError as error:
            if self._closed.is_set() and not is_being_cancelled():
                # close() cancels the call, but not the task that waits for it.
                raise cut_off(self.target) from error
            raise


class AsyncRawIO:
    """What the methods of `with_raw_response` need: the client."""

    def __init__(self, client: AsyncClientIO) -> None:
        self._client = client


def plain(
    operation: Callable[Concatenate[Defaults, P], calls.Prepared[Response, Plain]],
) -> Callable[Concatenate[AsyncClientIO, P], Coroutine[Any, Any, Plain]]:
    """The method that runs `operation` and returns the plain value of its answer."""

    @method_of(operation)
    async def run(self: AsyncClientIO, /, *args: P.args, **kwargs: P.kwargs) -> Plain:
        return await self._run(prepared(operation, self._defaults, args, kwargs).value(self))

    return run


def raw(
    operation: Callable[Concatenate[Defaults, P], calls.Prepared[Response, Any]],
) -> Callable[Concatenate[AsyncRawIO, P], Coroutine[Any, Any, Response]]:
    """The method that runs `operation` and returns its answer."""

    @method_of(operation)
    async def run(self: AsyncRawIO, /, *args: P.args, **kwargs: P.kwargs) -> Response:
        client = self._client
        call = prepared(operation, client._defaults, args, kwargs)
        return await client._run(call.answer(client))

    return run


def stream(
    operation: Callable[Concatenate[Defaults, P], calls.StreamCall[Response, Plain]],
) -> Callable[Concatenate[AsyncClientIO, P], AsyncStream[Response, Plain]]:
    """The method that streams `operation` and gives the plain value of each answer."""

    @method_of(operation)
    def run(
        self: AsyncClientIO, /, *args: P.args, **kwargs: P.kwargs
    ) -> AsyncStream[Response, Plain]:
        return AsyncStream(self, prepared(operation, self._defaults, args, kwargs))

    return run


def raw_stream(
    operation: Callable[Concatenate[Defaults, P], calls.StreamCall[Response, Any]],
) -> Callable[Concatenate[AsyncRawIO, P], AsyncStream[Response, Response]]:
    """The method that streams `operation` and gives its answers."""

    @method_of(operation)
    def run(
        self: AsyncRawIO, /, *args: P.args, **kwargs: P.kwargs
    ) -> AsyncStream[Response, Response]:
        call = prepared(operation, self._client._defaults, args, kwargs)
        return AsyncStream(self._client, call.with_messages())

    return run
