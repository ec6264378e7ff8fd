"""Streaming calls in tests: messages in, answers and error out."""

from __future__ import annotations

from collections.abc import Iterable
from queue import SimpleQueue
from typing import Any

import grpc
from bytepair.v1 import stream_pb2

from support.failures import Failed, read

DecodeRequest = stream_pb2.DecodeStreamRequest
EncodeRequest = stream_pb2.EncodeStreamRequest
CountRequest = stream_pb2.CountStreamRequest


def decode_config(encoding: str = "cl100k_base", **options: Any) -> DecodeRequest:
    """Return the first message of a DecodeStream."""
    return DecodeRequest(config=stream_pb2.DecodeStreamConfig(encoding=encoding, **options))


def encode_config(encoding: str = "cl100k_base", **options: Any) -> EncodeRequest:
    """Return the first message of an EncodeStream."""
    return EncodeRequest(config=stream_pb2.EncodeStreamConfig(encoding=encoding, **options))


def count_config(encoding: str = "cl100k_base", **options: Any) -> CountRequest:
    """Return the first message of a CountStream."""
    return CountRequest(config=stream_pb2.CountStreamConfig(encoding=encoding, **options))


def answers_of(call: Any, messages: Iterable[Any]) -> tuple[list[Any], Failed | None]:
    """Make a bidirectional call to its end.

    Returns:
        All answers, and the error; None if the call succeeded.
    """
    answers: list[Any] = []
    try:
        answers.extend(call(iter(messages)))
    except grpc.RpcError as error:
        return answers, read(error)
    return answers, None


class Talk:
    """A bidirectional call, message by message.

    Attributes:
        call: The call of gRPC.
    """

    def __init__(self, method: Any) -> None:
        """Start the call."""
        self._messages: SimpleQueue[Any] = SimpleQueue()
        self.call = method(iter(self._messages.get, None))

    def say(self, message: Any) -> Any:
        """Send a message, and return the answer."""
        self._messages.put(message)
        return next(self.call)

    def last(self, message: Any) -> tuple[list[Any], Failed | None]:
        """Send a message that ends the call, and return the same as `rest`."""
        self._messages.put(message)
        return self.rest()

    def rest(self) -> tuple[list[Any], Failed | None]:
        """Read until the server ends the call. Returns the unread answers, and the error."""
        try:
            return answers_of(lambda _: self.call, ())
        finally:
            self._messages.put(None)  # ends gRPC's thread, which waits for messages

    def close(self) -> tuple[list[Any], Failed | None]:
        """Close the sending side, and return the same as `rest`."""
        self._messages.put(None)
        return self.rest()

    def cancel(self) -> None:
        """Cancel the call."""
        self.call.cancel()
        self._messages.put(None)
