"""The base of the sessions of all streaming RPCs. Independent of gRPC and threads."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Final, TypeVar

from bytepair_server.errors import InConfig, InvalidField
from bytepair_server.rpc.call import Call
from bytepair_server.rpc.options import Options
from bytepair_server.rpc.status import failure_of

T = TypeVar("T")

#: Maximum size of a first message that the event loop computes: compiling many special tokens or
#: stop strings takes milliseconds.
_CONFIG_INLINE_MAX_BYTES: Final = 1024


class Session(ABC):
    """One stream: messages in, answers out. Not thread-safe.

    Attributes:
        call: The call, which records the encoding, and after `record` the bytes of text and the
            number of ids.
        held: Bytes of text that are buffered until more arrives.
        over: Whether the stream has ended. The current answer is its last.
        fault: The error that ended it; None if it ended normally.
        inline_max_bytes: Maximum size of a next message that the event loop may compute.
    """

    __slots__ = (
        "_inline_max_bytes",
        "_options",
        "call",
        "fault",
        "held",
        "inline_max_bytes",
        "over",
    )

    def __init__(self, options: Options, call: Call, inline_max_bytes: int) -> None:
        """Start a session, which its first message configures."""
        self.call: Final = call
        self._options: Final = options
        self._inline_max_bytes: Final = inline_max_bytes
        self.held = 0
        self.over = False
        self.fault: Exception | None = None
        self.inline_max_bytes = min(inline_max_bytes, _CONFIG_INLINE_MAX_BYTES)

    @abstractmethod
    def take(self, raw: bytes) -> bytes | None:
        """Process a message.

        Returns:
            Its answer; None if it has none. If `fault` is set, it follows the answer.
        Raises:
            Exception: The message is invalid; `abandon` must follow.
        """

    @abstractmethod
    def end(self) -> bytes | None:
        """Process the end of the messages. Returns and raises like `take`."""

    @abstractmethod
    def record(self) -> None:
        """Record in the call how much was processed, however the stream ended."""

    def abandon(self) -> bytes | None:
        """End the stream early.

        Returns:
            An answer with the output that is already certain; None if there is none.
        """
        self.over = True
        return None


def timed(call: Call, step: Callable[..., T]) -> Callable[..., T]:
    """Wrap a step of a session, to record in the call how long it takes and when it ended."""

    def run(*raw: bytes) -> T:
        started = perf_counter()
        try:
            return step(*raw)
        finally:
            call.computed = perf_counter()
            call.stream_seconds = (call.stream_seconds or 0.0) + call.computed - started

    return run


def check_config(has_config: bool, is_first: bool) -> None:
    """Raise InvalidField unless only the first message has a configuration."""
    if is_first and not has_config:
        raise InvalidField("config", "the first message must set it")
    if has_config and not is_first:
        raise InvalidField("config", "only the first message may set it")


@contextmanager
def in_config() -> Iterator[None]:
    """Let errors name fields of `config` by their path."""
    try:
        yield
    except InConfig:
        raise
    except Exception as error:
        if failure_of(error) is None:
            raise
        raise InConfig(error) from None
