"""One call, one stream or one batch, prepared by an operation and run by a client."""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from inspect import Parameter, signature
from typing import Any, Final, Generic, TypeVar

from bytepair.v1 import tokenizer_pb2
from google.protobuf.message import Message

from bytepair_client._send_buffer import SendBuffer

SERVICE: Final[str] = tokenizer_pb2.DESCRIPTOR.services_by_name["TokenizerService"].full_name

Response = TypeVar("Response", bound=Message)
Plain = TypeVar("Plain")
Prepared = TypeVar("Prepared")


@dataclass(frozen=True, slots=True)
class Method(Generic[Response]):
    """One RPC.

    Attributes:
        path: As HTTP/2 carries it: "/package.Service/Method".
        parse: From the bytes of an answer to the message.
        streamed: Whether many requests may be sent, and many answers come.
    """

    path: str
    parse: Callable[[bytes], Response]
    streamed: bool = False


@dataclass(frozen=True, slots=True)
class StreamCall(Generic[Response, Plain]):
    """One call that sends as its source gives. It can be carried out once.

    Attributes:
        method: Which RPC.
        buffer: Makes the requests; empty so far.
        source: Gives what is to be sent.
        timeout: Seconds for the whole stream; None for no deadline.
        plain: From an answer to the plain value. Empty ones are not given to the caller.
        answers_each: Whether there is an answer to each request, or only one at the end.
        read_again: The source from its start, where that is possible.
        gives_lists: Whether plain values are lists whose elements the caller gets one by one.
    """

    method: Method[Response]
    buffer: SendBuffer[Any]
    source: Iterable[Any] | AsyncIterable[Any]
    timeout: float | None
    plain: Callable[[Response], Plain]
    answers_each: bool = True
    read_again: Callable[[], Iterable[Any] | AsyncIterable[Any]] | None = None
    gives_lists: bool = False

    def with_messages(self) -> StreamCall[Response, Response]:
        """The same call, which gives the messages themselves. It takes this one's place."""
        call: Any = replace(self, plain=_itself, gives_lists=False)
        messages: StreamCall[Response, Response] = call
        return messages


@dataclass(frozen=True, slots=True)
class Fallback(Generic[Response]):
    """A stream whose answers together are the answer of one call.

    Attributes:
        stream: What is carried out.
        join: From its answers, of which there is at least one, to the one.
    """

    stream: StreamCall[Any, Any]
    join: Callable[[Sequence[Any]], Response]


@dataclass(frozen=True, slots=True)
class Call(Generic[Response, Plain]):
    """One call and what its caller wants of the answer.

    Attributes:
        method: Which RPC.
        request: The request's message.
        timeout: Seconds; None for no deadline.
        plain: From the answer to the plain value: ids, a text, a number.
        fallback: Makes the stream that gives the same answer, for what is too large for one
            request; None if there is none. Its argument is the server's limit in bytes, where
            that is known.
        is_large: Whether to stream at once. `request` is not complete then.
    """

    method: Method[Response]
    request: Message
    timeout: float | None
    plain: Callable[[Response], Plain]
    fallback: Callable[[int | None], Fallback[Response]] | None = None
    is_large: bool = False


def method(
    response: type[Response], name: str, service: str = SERVICE, *, streamed: bool = False
) -> Method[Response]:
    """The RPC `name` of a service, which answers with `response`."""
    return Method(f"/{service}/{name}", response.FromString, streamed)


def _itself(answer: Any) -> Any:
    return answer


def prepared(
    operation: Callable[..., Prepared],
    defaults: object,
    arguments: tuple[Any, ...],
    options: Mapping[str, Any],
) -> Prepared:
    """The call that an operation makes of the arguments of its method.

    Raises:
        TypeError: More positional arguments than the method takes, or others that it does not.
    """
    positional = _positional(operation)
    if len(arguments) > len(positional):
        takes = f"only {' and '.join(positional)}" if positional else "nothing"
        raise TypeError(
            f"{operation.__name__}() takes {takes} without a name: write the others with their "
            'names, such as encoding="o200k_base"'
        )
    return operation(defaults, *arguments, **options)


@cache
def _positional(operation: Callable[..., Any]) -> tuple[str, ...]:
    """The names of a method's positional arguments: those of the operation but `defaults`."""
    return tuple(
        name
        for name, parameter in signature(operation).parameters.items()
        if parameter.kind is Parameter.POSITIONAL_OR_KEYWORD
    )[1:]
