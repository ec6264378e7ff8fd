"""One call, ready to be sent: what the operations prepare and the two clients carry out."""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from google.protobuf.message import Message

from bytepair_client._options import SERVICE
from bytepair_client._send_buffer import Outbox

Response = TypeVar("Response", bound=Message)
Plain = TypeVar("Plain")


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
        outbox: Makes the requests; nothing was put in yet.
        source: Gives what is to be put in.
        timeout: Seconds for the whole stream; None for no deadline.
        plain: From an answer to the plain value. Empty ones are no pieces.
        consumed: From the last answer to how much it was made of, in the unit of the outbox;
            None if it is that of less on purpose.
        answers_each: Whether there is an answer to each request, or only one at the end.
    """

    method: Method[Response]
    outbox: Outbox[Any]
    source: Iterable[Any] | AsyncIterable[Any]
    timeout: float | None
    plain: Callable[[Response], Plain]
    consumed: Callable[[Response], int | None]
    answers_each: bool = True

    def whole_answers(self) -> StreamCall[Response, Response]:
        """The same call, of which the answers themselves are wanted. It takes this one's place."""
        return StreamCall(
            self.method,
            self.outbox,
            self.source,
            self.timeout,
            lambda answer: answer,
            self.consumed,
            self.answers_each,
        )


@dataclass(frozen=True, slots=True)
class Whole(Generic[Response]):
    """A stream that is wanted as one answer.

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
        plain: From the answer to the plain value: ids, a text, a number. May raise the error
            of an item.
        whole: Makes the stream that gives the same answer, for what is too large for one
            request; None if there is none. Its argument is the server's limit, if it is known:
            in bytes or ids, as the input is.
        is_large: Whether to stream at once. `request` is not complete then.
    """

    method: Method[Response]
    request: Message
    timeout: float | None
    plain: Callable[[Response], Plain]
    whole: Callable[[int | None], Whole[Response]] | None = None
    is_large: bool = False


def method(response: type[Response], name: str, *, streamed: bool = False) -> Method[Response]:
    """The RPC `name` of the service, which answers with `response`."""
    return Method(f"/{SERVICE}/{name}", response.FromString, streamed)
