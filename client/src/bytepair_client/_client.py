"""The client for ordinary, threaded programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, cast

import grpc
from google.protobuf.message import Message

from bytepair_client import operations
from bytepair_client._base import BaseClient
from bytepair_client._call import Call, Method, StreamCall, Whole
from bytepair_client.coalescer import Coalescer
from bytepair_client._errors import InputTooLarge
from bytepair_client._status import FailedCall
from bytepair_client.joint import key_of
from bytepair_client.lanes import Lanes
from bytepair_client._options import Defaults
from bytepair_client._stream import Stream

P = ParamSpec("P")
Response = TypeVar("Response", bound=Message)
Plain = TypeVar("Plain")


def _plain(
    operation: Callable[Concatenate[Defaults, P], Call[Response, Plain]],
) -> Callable[Concatenate[TokenizerClient, P], Plain]:
    """The method that runs `operation` and returns the plain value of its answer."""

    @wraps(operation)
    def run(self: TokenizerClient, /, *args: P.args, **kwargs: P.kwargs) -> Plain:
        call = operation(self._defaults, *args, **kwargs)
        return call.plain(self._run(call))

    return run


def _full(
    operation: Callable[Concatenate[Defaults, P], Call[Response, Any]],
) -> Callable[Concatenate[FullResponses, P], Response]:
    """The method that runs `operation` and returns its whole answer."""

    @wraps(operation)
    def run(self: FullResponses, /, *args: P.args, **kwargs: P.kwargs) -> Response:
        return self._client._run(operation(self._client._defaults, *args, **kwargs))

    return run


def _pieces(
    operation: Callable[Concatenate[Defaults, P], StreamCall[Response, Plain]],
) -> Callable[Concatenate[TokenizerClient, P], Stream[Response, Plain]]:
    """The method that streams `operation` and gives the plain value of each answer."""

    @wraps(operation)
    def run(self: TokenizerClient, /, *args: P.args, **kwargs: P.kwargs) -> Stream[Response, Plain]:
        return self._stream(operation(self._defaults, *args, **kwargs))

    return run


def _answers(
    operation: Callable[Concatenate[Defaults, P], StreamCall[Response, Any]],
) -> Callable[Concatenate[FullResponses, P], Stream[Response, Response]]:
    """The method that streams `operation` and gives its answers."""

    @wraps(operation)
    def run(
        self: FullResponses, /, *args: P.args, **kwargs: P.kwargs
    ) -> Stream[Response, Response]:
        call = operation(self._client._defaults, *args, **kwargs)
        return self._client._stream(call.whole_answers())

    return run


class FullResponses:
    """The methods of a TokenizerClient, answering with the messages of `bytepair.v1`."""

    def __init__(self, client: TokenizerClient) -> None:
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


class TokenizerClient(BaseClient):
    """A client of the tokenizer service, usable from many threads at once.

    Every method returns the plain value: ids, a text, a number. The method of the same name
    on `full` takes the same arguments and returns the whole answer: the message of
    `bytepair.v1`, with the canonical encoding, its fingerprint, and each error of a batch in
    its place.

        with TokenizerClient("localhost:50051", encoding="o200k_base") as client:
            ids = client.encode("Hello, world")

    Those whose names end in `_stream` send what an iterable gives, as it gives it;
    `decode_stream` and `encode_stream` return an iterator.
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
    def full(self) -> FullResponses:
        """The same methods, answering with whole messages."""
        return FullResponses(self)

    def close(self) -> None:
        """Close the connections. Calls that still run are Cancelled, later ones ClientClosed."""
        for channel in self._take_channels():
            channel.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _open(self, arguments: Sequence[tuple[str, str | int]]) -> grpc.Channel:
        if self._credentials is None:
            return grpc.insecure_channel(self.target, arguments)
        return grpc.secure_channel(self.target, self._credentials, arguments)

    def _run(self, call: Call[Response, Any]) -> Response:
        if call.whole is not None and call.is_large:
            return self._run_stream(call.whole(None))
        try:
            return self._run_unary(call)
        except InputTooLarge as refusal:
            if call.whole is None or refusal.field not in ("text", "ids"):
                raise
            limit = refusal.limit
        return self._run_stream(call.whole(limit))

    def _run_stream(self, whole: Whole[Response]) -> Response:
        with self._stream(whole.stream) as answers:
            return self._joined(whole, list(answers))

    def _run_unary(self, call: Call[Response, Any]) -> Response:
        kept_by = self._counts.key(call)
        if kept_by is None:
            return self._run_sent(call)
        if self._closed:
            raise self._closed_error()
        answer: Any = self._counts.get(kept_by)
        if answer is None:
            answer = self._run_sent(call)
            self._counts.put(kept_by, answer)
        return cast(Response, answer)

    def _run_sent(self, call: Call[Response, Any]) -> Response:
        key = None if self._coalescer is None else key_of(call)
        if key is None:
            return self._run_alone(call, call.timeout)
        if self._closed:
            raise self._closed_error()
        response: Response = self._coalescer.run(call, key)
        return response

    def _run_alone(self, call: Call[Response, Any], seconds: float | None) -> Response:
        payload = self._payload(call.request)
        try:
            response: Response = self._send(call.method, payload, seconds)
        except grpc.RpcError as error:
            raise self._error(cast(FailedCall, error), call.timeout) from error
        return response

    def _joining(self, lanes: Lanes) -> Coalescer:
        return Coalescer(lanes, self.target, send=self._run_alone, start=self._start)

    def _start(self, method: Method[Any], request: Message, seconds: float | None) -> Any:
        rpc: Any = self._rpc(method)
        return self._begin(rpc.future, self._payload(request), seconds)

    def _stream(self, call: StreamCall[Response, Plain]) -> Stream[Response, Plain]:
        method, timeout = call.method, call.timeout  # and not the source, which may end before
        return Stream(
            call,
            self._attempts(timeout),
            lambda requests, seconds: self._send(method, requests, seconds),
            lambda failed: self._error(failed, timeout),
        )

    def _send(self, method: Method[Any], request: object, timeout: float | None) -> Any:
        return self._begin(self._rpc(method), request, timeout)

    def _begin(self, rpc: Callable[..., Any], request: object, timeout: float | None) -> Any:
        try:
            return rpc(request, timeout=timeout, metadata=self._metadata)
        except ValueError as error:
            if self._closed:  # by another thread, after _rpc
                raise self._closed_error() from error
            raise
