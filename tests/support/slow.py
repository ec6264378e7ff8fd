"""Calls that last until the test ends them, however slow the machine is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from typing import Any, Final

from bytepair.v1 import tokenizer_pb2

from support import serving
from support.serving import START_SECONDS, RunningServer

#: Arguments of `serve` for a server without the core.
SLOW_FLAGS: Final = ("--builtin-encodings", "cl100k_base")
WITHOUT_CORE: Final = {"PYTHONPATH": serving.WITHOUT_CORE}
#: A single pre-token, for which the reference needs many minutes: its time is quadratic in the
#: length of one. It can be cancelled after each merge.
ENDLESS: Final = "a" * 100_000
#: A message that is not read before its call is admitted.
_LARGE: Final = tokenizer_pb2.CountRequest(
    encoding="cl100k_base", text="a b " * 50_000
).SerializeToString()


@contextmanager
def endless_count(server: RunningServer) -> Iterator[Any]:
    """Let a server without the core and other calls compute one during the block, unless the test
    cancels it before."""
    request = tokenizer_pb2.CountRequest(encoding="cl100k_base", text=ENDLESS)
    running = server.stub.Count.future(request)
    server.wait_for_metric("bytepair_in_flight", 1)
    yield running
    running.cancel()


@contextmanager
def unfinished_count(server: RunningServer) -> Iterator[HTTPConnection]:
    """Start a call with the first bytes of its message. It is in flight until `finish`."""
    with closing(HTTPConnection(server.target, timeout=START_SECONDS)) as connection:
        connection.putrequest("POST", "/bytepair.v1.TokenizerService/Count")
        connection.putheader("content-type", "application/proto")
        connection.putheader("content-length", str(len(_LARGE)))
        connection.endheaders(_LARGE[:9])
        yield connection


def finish(connection: HTTPConnection) -> int:
    """Send the rest of the message. Returns the HTTP status."""
    connection.send(_LARGE[9:])
    return connection.getresponse().status
