"""The I/O of TokenizerClient: calls, batches and streams that block."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

import grpc
from google.protobuf.message import Message

from bytepair_client import _call as calls
from bytepair_client._base import BaseClient
from bytepair_client._errors import TokenizerError
from bytepair_client._methods import method_of, prepared
from bytepair_client._options import Defaults
from bytepair_client._status import FailedCall
from bytepair_client._stream import Stream

P = ParamSpec("P")
Response = TypeVar("Response", bound=Message)
Plain = TypeVar("Plain")
R = TypeVar("R")


class ClientIO(BaseClient):
    """The input and output of a TokenizerClient."""

    def close(self) -> None:
        """Close the connections. Running calls are Cancelled, later ones ClientClosed."""
        channel = self._take_channel()
        if channel is not None:
            channel.close()

    def _open(self, arguments: Sequence[tuple[str, str | int]]) -> grpc.Channel:
        if self._credentials is None:
            return grpc.insecure_channel(self.target, arguments)
        return grpc.secure_channel(self.target, self._credentials, arguments)

    def _run(self, flow: calls.Flow[R]) -> R:
        """Carry out a flow, step by step."""
        try:
            step = next(flow)
            while True:
                try:
                    came = self._do(step)
                except TokenizerError as error:
                    step = flow.throw(error)
                else:
                    step = flow.send(came)
        except StopIteration as end:
            result: R = end.value
            return result

    def _do(self, step: calls.Step) -> Any:
        match step:
            case calls.Send():
                try:
                    return self._send(step.method, step.payload, step.seconds)
                except grpc.RpcError as error:
                    raise self._error(cast(FailedCall, error), step.timeout) from error
            case calls.Sleep():
                if self._closed.wait(step.seconds):
                    raise self._closed_error()
                return None
            case calls.Collect():
                with Stream(self, step.stream) as answers:
                    return list(answers)
            case calls.RunAll():
                return self._run_all(step)
            case calls.Probe():
                return self._connection_fault()

    def _run_all(self, step: calls.RunAll) -> None:
        flows = iter(step.flows)
        first, second = next(flows), next(flows, None)
        if second is None:  # which needs no threads
            step.take(self._run(first))
            return
        under_way: deque[Future[Any]] = deque()
        threads = ThreadPoolExecutor(step.most, thread_name_prefix="bytepair-batch")
        try:
            for flow in chain((first, second), flows):
                if len(under_way) == step.most:
                    step.take(under_way.popleft().result())
                under_way.append(threads.submit(self._run, flow))
            while under_way:
                step.take(under_way.popleft().result())
        finally:
            threads.shutdown(wait=False, cancel_futures=True)

    def _send(self, method: calls.Method[Any], request: object, timeout: float | None) -> Any:
        rpc = self._rpc(method)
        try:
            return rpc(request, timeout=timeout, metadata=self._metadata)
        except ValueError as error:
            if self._closed.is_set():  # by another thread, after _rpc
                raise self._closed_error() from error
            raise


class RawIO:
    """What the methods of `with_raw_response` need: the client."""

    def __init__(self, client: ClientIO) -> None:
        self._client = client


def plain(
    operation: Callable[Concatenate[Defaults, P], calls.Prepared[Response, Plain]],
) -> Callable[Concatenate[ClientIO, P], Plain]:
    """The method that runs `operation` and returns the plain value of its answer."""

    @method_of(operation)
    def run(self: ClientIO, /, *args: P.args, **kwargs: P.kwargs) -> Plain:
        return self._run(prepared(operation, self._defaults, args, kwargs).value(self))

    return run


def raw(
    operation: Callable[Concatenate[Defaults, P], calls.Prepared[Response, Any]],
) -> Callable[Concatenate[RawIO, P], Response]:
    """The method that runs `operation` and returns its answer."""

    @method_of(operation)
    def run(self: RawIO, /, *args: P.args, **kwargs: P.kwargs) -> Response:
        client = self._client
        return client._run(prepared(operation, client._defaults, args, kwargs).answer(client))

    return run


def stream(
    operation: Callable[Concatenate[Defaults, P], calls.StreamCall[Response, Plain]],
) -> Callable[Concatenate[ClientIO, P], Stream[Response, Plain]]:
    """The method that streams `operation` and gives the plain value of each answer."""

    @method_of(operation)
    def run(self: ClientIO, /, *args: P.args, **kwargs: P.kwargs) -> Stream[Response, Plain]:
        return Stream(self, prepared(operation, self._defaults, args, kwargs))

    return run


def raw_stream(
    operation: Callable[Concatenate[Defaults, P], calls.StreamCall[Response, Any]],
) -> Callable[Concatenate[RawIO, P], Stream[Response, Response]]:
    """The method that streams `operation` and gives its answers."""

    @method_of(operation)
    def run(self: RawIO, /, *args: P.args, **kwargs: P.kwargs) -> Stream[Response, Response]:
        call = prepared(operation, self._client._defaults, args, kwargs)
        return Stream(self._client, call.with_messages())

    return run
