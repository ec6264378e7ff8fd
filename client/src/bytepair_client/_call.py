"""Calls, and the methods of a client that are made from operations.

The logic of a call is written once, as coroutines that await the client's I/O. In TokenizerClient
the I/O blocks and never suspends, so `run` completes such a coroutine without an event loop;
AsyncTokenizerClient awaits it.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import AsyncIterable, Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache, wraps
from inspect import Parameter, Signature
from typing import (
    Any,
    Final,
    Generic,
    ParamSpec,
    TypeVar,
    cast,
    get_args,
    get_overloads,
    get_type_hints,
)

from bytepair.v1 import chat_pb2, tokenizer_pb2
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from bytepair_client._arguments import BYTES_PER_ID, NOT_GIVEN, Defaults
from bytepair_client._errors import InputTooLarge, TokenizerError
from bytepair_client._send_buffers import SendBuffer

#: By name.
RPCS: Final[Mapping[str, Any]] = {
    rpc.name: rpc
    for file in (tokenizer_pb2.DESCRIPTOR, chat_pb2.DESCRIPTOR)
    for service in file.services_by_name.values()
    for rpc in service.methods
}

#: Maximum number of concurrent requests of a batch. This bounds its memory, and keeps the server
#: busy while the next request is made.
MAX_UNDER_WAY: Final = 4

P = ParamSpec("P")
R = TypeVar("R")
Response = TypeVar("Response", bound=Message)
Plain = TypeVar("Plain")
Value = TypeVar("Value", covariant=True)

Work = Callable[[Any], Coroutine[Any, Any, R]]


@dataclass(frozen=True, slots=True)
class Method(Generic[Response, Value]):
    """One RPC, and what its responses mean."""

    path: str  # "/package.Service/Method"
    request: type[Any]
    parse: Callable[[bytes], Response]
    #: The plain value of a response, or of a result in that of a batch. For a stream, an iterable
    #: of plain values, which the caller gets one by one, except for empty ones.
    plain: Callable[[Any], Value]
    #: The error that is raised in place of the plain value of such a response or result; else None.
    problem: Callable[[Any], TokenizerError | None] = lambda _: None
    stream: Any = None  # the RPC for texts too large for one request
    streamed: bool = False  # bidirectional
    response_per_request: bool = True  # False: one response, to the last request of a stream
    restarts: bool = False  # whether sending a stream again from its start repeats no output


def method(name: str, plain: Callable[[Any], Plain], **others: Any) -> Method[Any, Plain]:
    """The RPC of this name, such as "Encode"; `others` are fields of Method."""
    rpc = RPCS[name]
    path = f"/{rpc.containing_service.full_name}/{name}"
    request, response = GetMessageClass(rpc.input_type), GetMessageClass(rpc.output_type)
    streamed = rpc.client_streaming
    return Method(path, request, response.FromString, plain, streamed=streamed, **others)


class Prepared(ABC, Generic[Response, Plain]):
    """A call or a batch that is ready to be sent. Nothing has been sent yet."""

    @abstractmethod
    async def response(self, client: Any) -> Response:
        """Run it on a BaseClient. Returns the response message."""

    @abstractmethod
    async def value(self, client: Any) -> Plain:
        """Run it on a BaseClient. Returns the plain value: ids, text or a number."""


@dataclass(frozen=True, slots=True)
class Call(Prepared[Response, Plain]):
    """One unary call."""

    method: Method[Response, Plain]
    request: Message
    timeout: float | None  # seconds; None for no deadline
    #: Gives the response for an input that is too large for one request. The arguments are the
    #: client and its defaults for this server.
    fallback: Callable[[Any, Defaults], Awaitable[Response]] | None = None
    is_large: bool = False  # use `fallback` at once; `request` lacks the input
    no_fallback: str = ""  # why there is no fallback, and a remedy

    async def response(self, client: Any) -> Response:
        """Send one request, or its fallback if the input is too large for one request."""
        served = client._defaults
        if self.fallback is None or not self.is_large:
            try:
                response: Response = await client._unary(self.method, self.request, self.timeout)
                return response
            except InputTooLarge as rejection:
                if self.no_fallback:
                    rejection.message += f"; {self.no_fallback}"
                # `message` is the whole request, of which the text may be a quarter.
                factor = {"text": 1, "ids": BYTES_PER_ID, "message": 0.25}.get(
                    rejection.field or ""
                )
                if self.fallback is None or rejection.code is None or factor is None:
                    raise
                if rejection.limit is not None:
                    limit = max(1, int(rejection.limit * factor))
                    served = replace(served, max_unary_bytes=limit)
        return await self.fallback(client, served)

    async def value(self, client: Any) -> Plain:
        response = await self.response(client)
        if error := self.method.problem(response):
            raise error
        return self.method.plain(response)


@dataclass(frozen=True, slots=True)
class StreamCall(Generic[Response, Plain]):
    """One streaming call. It can be run once."""

    method: Method[Response, Iterable[Plain]]
    buffer: SendBuffer[Any]
    source: Iterable[Any] | AsyncIterable[Any]
    timeout: float | None  # seconds for the whole stream; None for no deadline
    can_read_again: bool = False  # the source, from its start

    def with_messages(self) -> StreamCall[Response, Response]:
        """This call with response messages as values. It replaces this one."""
        method: Any = replace(self.method, plain=lambda response: (response,))
        return cast(StreamCall[Response, Response], replace(self, method=method))


def run(work: Coroutine[Any, Any, R]) -> R:
    """Run a coroutine that never suspends. Returns its result."""
    try:
        work.send(None)
    except StopIteration as end:
        result: R = end.value
        return result
    raise AssertionError("the I/O of TokenizerClient never suspends")


class _Unset:
    """The default that signatures show for an option that the request leaves unset."""

    def __repr__(self) -> str:
        return "..."


_UNSET: Final = _Unset()


def too_many(called: str, *positional: str) -> TypeError:
    """The error for more positional arguments than `called` takes."""
    takes = f"only {' and '.join(positional)}" if positional else "nothing"
    return TypeError(
        f"{called}() takes {takes} as positional arguments: pass the others by keyword, such as "
        'encoding="o200k_base"'
    )


def unexpected(called: str, name: str) -> TypeError:
    """The error for an argument that `called` does not have."""
    return TypeError(f"{called}() got an unexpected keyword argument {name!r}")


def method_of(
    operation: Callable[..., Any], carry_out: Callable[[Any, Any], Any], *, waits: bool = False
) -> Callable[..., Any]:
    """A method of a client, or if it `waits`, a coroutine function, with a signature that names
    every option for `help()`. It makes the call of `operation` and returns what `carry_out` gives
    for its object and the call."""
    signature = _signature(operation)
    parameters = list(signature.parameters.values())[1:]
    positional = [each.name for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD]
    names = frozenset(each.name for each in parameters)

    @wraps(operation)
    def method(self: Any, /, *arguments: Any, **options: Any) -> Any:
        if len(arguments) > len(positional):
            raise too_many(operation.__name__, *positional)
        given = {}
        for name, value in options.items():
            if name not in names:
                raise unexpected(operation.__name__, name)
            if value is not NOT_GIVEN and value is not _UNSET:
                given[name] = value
        return carry_out(self, operation(self._defaults, *arguments, **given))

    @wraps(operation)
    async def coroutine(self: Any, /, *arguments: Any, **options: Any) -> Any:
        return await method(self, *arguments, **options)

    made: Any = coroutine if waits else method
    made.__signature__ = signature
    return cast(Callable[..., Any], made)


@cache
def _signature(operation: Callable[..., Any]) -> Signature:
    """The signature of an operation, or of the most general of its overloads."""
    if inspect.get_annotations(operation).get("options") == "Any":
        operation = get_overloads(operation)[-1]
    first, *parameters = inspect.signature(operation, eval_str=True).parameters.values()
    if parameters[-1].kind is Parameter.VAR_KEYWORD:
        rest = parameters.pop()
        (options,) = get_args(rest.annotation)  # of Unpack
        parameters += (
            Parameter(
                name,
                Parameter.KEYWORD_ONLY,
                default=NOT_GIVEN if name in Defaults.__slots__ else _UNSET,
                annotation=annotation,
            )
            for name, annotation in get_type_hints(options).items()
        )
    return Signature([first.replace(name="self", annotation=Parameter.empty), *parameters])
