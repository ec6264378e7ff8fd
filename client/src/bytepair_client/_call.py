"""From an operation to a method: the call, stream or batch that a client carries out.

What a client does for one of them is written once, as coroutines that await the client's input and
output. That of TokenizerClient blocks and never suspends, so that `run` takes a coroutine to its
end; AsyncTokenizerClient awaits it.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import AsyncIterable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, wraps
from inspect import Parameter, Signature
from typing import Any, Final, Generic, TypeVar, cast, get_args, get_type_hints

from bytepair.v1 import tokenizer_pb2
from google.protobuf.message import Message

from bytepair_client._options import NOT_GIVEN
from bytepair_client._streams.buffer import SendBuffer

SERVICE: Final[str] = tokenizer_pb2.DESCRIPTOR.services_by_name["TokenizerService"].full_name

R = TypeVar("R")
Response = TypeVar("Response", bound=Message)
Plain = TypeVar("Plain")


@dataclass(frozen=True, slots=True)
class Method(Generic[Response]):
    """One RPC."""

    path: str  # as HTTP/2 carries it: "/package.Service/Method"
    parse: Callable[[bytes], Response]
    streamed: bool = False  # whether many requests may be sent, and many answers come


def method(
    response: type[Response], name: str, service: str = SERVICE, *, streamed: bool = False
) -> Method[Response]:
    """The RPC `name` of a service, which answers with `response`."""
    return Method(f"/{service}/{name}", response.FromString, streamed)


class Prepared(ABC, Generic[Response, Plain]):
    """A call or a batch."""

    @abstractmethod
    async def answer(self, client: Any) -> Response:
        """Carry it out by a BaseClient, for its answer."""

    @abstractmethod
    async def value(self, client: Any) -> Plain:
        """Carry it out by a BaseClient, for its plain value: ids, a text, a number."""


@dataclass(frozen=True, slots=True)
class Call(Prepared[Response, Plain]):
    """One call and what its caller wants of the answer."""

    method: Method[Response]
    request: Message
    timeout: float | None  # seconds; None for no deadline
    plain: Callable[[Response], Plain]
    #: Makes what gives the same answer for what is too large for one request. Its argument is the
    #: server's limit in bytes, where that is known.
    fallback: Callable[[int | None], Fallback[Response]] | None = None
    is_large: bool = False  # whether to use it at once; `request` is not complete then

    async def answer(self, client: Any) -> Response:
        answer: Response = await client._answer(self)
        return answer

    async def value(self, client: Any) -> Plain:
        return self.plain(await client._answer(self))


@dataclass(frozen=True, slots=True)
class StreamCall(Generic[Response, Plain]):
    """One call that sends as its source gives. It can be carried out once."""

    method: Method[Response]
    buffer: SendBuffer[Any]  # makes the requests; empty so far
    source: Iterable[Any] | AsyncIterable[Any]
    timeout: float | None  # seconds for the whole stream; None for no deadline
    plain: Callable[[Response], Plain]  # an empty value is not given to the caller
    answers_each: bool = True  # whether each request has an answer, or only the last
    read_again: Callable[[], Iterable[Any] | AsyncIterable[Any]] | None = None  # the source
    gives_lists: bool = False  # whether the caller gets the elements of plain values one by one

    def with_messages(self) -> StreamCall[Response, Response]:
        """The same call, which gives the messages themselves. It takes this one's place."""
        call: Any = replace(self, plain=_itself, gives_lists=False)
        messages: StreamCall[Response, Response] = call
        return messages


@dataclass(frozen=True, slots=True)
class Fallback(Generic[Response]):
    """A stream whose answers together, of which there is at least one, are that of one call; or a
    call with a part of the input, which has one."""

    call: StreamCall[Any, Any] | Call[Any, Any]
    join: Callable[[Sequence[Any]], Response]


def run(work: Coroutine[Any, Any, R]) -> R:
    """The result of a coroutine that never suspends."""
    try:
        work.send(None)
    except StopIteration as end:
        result: R = end.value
        return result
    raise AssertionError("the input and output of TokenizerClient never suspends")


def _itself(answer: Any) -> Any:
    return answer


def method_of(
    operation: Callable[..., Any], carry_out: Callable[[Any, Any], Any]
) -> Callable[..., Any]:
    """The method that makes the call of `operation` and carries it out.

    `help()` shows each option by its name. The method raises TypeError for more positional
    arguments than it takes, or for others than it has.

    Args:
        operation: Makes a call of the client's Defaults and the method's arguments.
        carry_out: Gives the result of the method, for what it is called on and the call. If it is
            a coroutine function, so is the method.
    """
    signature = _signature(operation)
    parameters = list(signature.parameters.values())[1:]
    positional = [each.name for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD]
    names = frozenset(each.name for each in parameters)

    def called(self: Any, arguments: tuple[Any, ...], options: Mapping[str, Any]) -> Any:
        if len(arguments) > len(positional):
            takes = f"only {' and '.join(positional)}" if positional else "nothing"
            raise TypeError(
                f"{operation.__name__}() takes {takes} without a name: write the others with "
                'their names, such as encoding="o200k_base"'
            )
        given = {}
        for name, value in options.items():
            if name not in names:
                raise TypeError(
                    f"{operation.__name__}() got an unexpected keyword argument {name!r}"
                )
            if value is not NOT_GIVEN:
                given[name] = value
        return carry_out(self, operation(self._defaults, *arguments, **given))

    @wraps(operation)
    def method(self: Any, /, *arguments: Any, **options: Any) -> Any:
        return called(self, arguments, options)

    @wraps(operation)
    async def coroutine(self: Any, /, *arguments: Any, **options: Any) -> Any:
        return await called(self, arguments, options)

    made: Any = coroutine if inspect.iscoroutinefunction(carry_out) else method
    made.__signature__ = signature
    return cast(Callable[..., Any], made)


@cache
def _signature(operation: Callable[..., Any]) -> Signature:
    first, *parameters = inspect.signature(operation, eval_str=True).parameters.values()
    if parameters and parameters[-1].kind is Parameter.VAR_KEYWORD:
        rest = parameters.pop()
        (options,) = get_args(rest.annotation)  # of Unpack
        parameters += (
            Parameter(name, Parameter.KEYWORD_ONLY, default=NOT_GIVEN, annotation=annotation)
            for name, annotation in get_type_hints(options).items()
        )
    return Signature([first.replace(name="self", annotation=Parameter.empty), *parameters])
