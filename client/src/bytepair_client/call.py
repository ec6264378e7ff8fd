"""One call, ready to be sent: what the operations prepare and the two clients carry out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from google.protobuf.message import Message

from bytepair_client.options import SERVICE

Response = TypeVar("Response", bound=Message)
Plain = TypeVar("Plain")


@dataclass(frozen=True, slots=True)
class Method(Generic[Response]):
    """One RPC.

    Attributes:
        path: As HTTP/2 carries it: "/package.Service/Method".
        parse: From the bytes of an answer to the message.
    """

    path: str
    parse: Callable[[bytes], Response]


@dataclass(frozen=True, slots=True)
class Call(Generic[Response, Plain]):
    """One call and what its caller wants of the answer.

    Attributes:
        method: Which RPC.
        request: The request's message.
        timeout: Seconds; None for no deadline.
        plain: From the answer to the plain value: ids, a text, a number. May raise the error
            of an item.
    """

    method: Method[Response]
    request: Message
    timeout: float | None
    plain: Callable[[Response], Plain]


def method(response: type[Response], name: str) -> Method[Response]:
    """The RPC `name` of the service, which answers with `response`."""
    return Method(f"/{SERVICE}/{name}", response.FromString)
