"""What the sessions of all streaming RPCs share. It knows neither gRPC nor threads."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Final

from bytepair_server.errors import InConfig, InvalidField
from bytepair_server.rpc.call import Call
from bytepair_server.rpc.options import Options
from bytepair_server.rpc.status import failure_of

#: Most configurations are shorter. A longer one may name many special tokens or stop
#: strings that compiling them takes milliseconds.
_CONFIG_INLINE_MAX_BYTES: Final = 1024


class Session(ABC):
    """One stream: messages in, answers out. Used by one thread at a time.

    Attributes:
        call: Which; it collects the encoding, the bytes of text and the number of ids.
        held: How many bytes of text wait for more.
        over: The stream has ended: after the answer at hand nothing is read any more.
        fault: Why it has; None where it ended well.
        inline_max_bytes: The largest next message that is cheap enough for the event loop.
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
        """Wait for the first message.

        Args:
            options: Reads the configuration.
            call: Which it is.
            inline_max_bytes: The largest message that the server computes on the event loop.
        """
        self.call: Final = call
        self._options: Final = options
        self._inline_max_bytes: Final = inline_max_bytes
        self.held = 0
        self.over = False
        self.fault: Exception | None = None
        self.inline_max_bytes = min(inline_max_bytes, _CONFIG_INLINE_MAX_BYTES)

    @abstractmethod
    def take(self, raw: bytes) -> bytes | None:
        """Take a message.

        Returns:
            The answer to it; None for none. If there is a fault then, it comes after the
            answer.
        Raises:
            Exception: What is wrong, where there is nothing to answer.
        """

    @abstractmethod
    def end(self) -> bytes | None:
        """Record that no message follows. As `take`."""

    def abandon(self) -> bytes | None:
        """Record that the stream is cut off.

        Returns:
            An answer with what is certain now; None for nothing.
        """
        self.over = True
        return None


def timed(session_class: type[Session]) -> type[Session]:
    """The same sessions, which note in their call when and how long messages are computed."""

    class Timed(session_class):  # type: ignore[misc, valid-type]
        __slots__ = ()

        def take(self, raw: bytes) -> bytes | None:
            with _noted(self.call):
                answer: bytes | None = super().take(raw)
                return answer

        def end(self) -> bytes | None:
            with _noted(self.call):
                answer: bytes | None = super().end()
                return answer

    return Timed


@contextmanager
def _noted(call: Call) -> Iterator[None]:
    started = perf_counter()
    try:
        yield
    finally:
        call.computed = perf_counter()
        call.stream_seconds = (call.stream_seconds or 0.0) + call.computed - started


def check_config(has_config: bool, is_first: bool) -> None:
    """Raises InvalidField unless the first message, and no other one, has a configuration."""
    if is_first and not has_config:
        raise InvalidField("config", "the first message must set it")
    if has_config and not is_first:
        raise InvalidField("config", "only the first message may set it")


@contextmanager
def in_config() -> Iterator[None]:
    """Where fields of `config` are read: errors name them by their path."""
    try:
        yield
    except InConfig:
        raise
    except Exception as error:
        if failure_of(error) is None:
            raise
        raise InConfig(error) from None
