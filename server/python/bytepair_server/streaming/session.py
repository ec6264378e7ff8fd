"""The base of the sessions of all streaming RPCs. Independent of gRPC and threads."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from time import perf_counter
from typing import Any, ClassVar, Final, TypeVar

from bytepair_engine import Cancelled

from bytepair_server.call import Call
from bytepair_server.catalog import Entry
from bytepair_server.errors import InConfig, InvalidField
from bytepair_server.rpc import wire
from bytepair_server.rpc.options import Options
from bytepair_server.rpc.status import failure_of

T = TypeVar("T")

_NO_CONFIG: Final = "the first message must set it"


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

    _REQUEST: ClassVar[Any]
    _RESPONSE: ClassVar[Any]
    #: Maximum size of a first message that the event loop computes: compiling many special tokens
    #: or stop strings takes milliseconds.
    _FIRST_INLINE_MAX_BYTES: ClassVar = 1024
    #: Times as much as a byte of other streams one costs.
    _COST: ClassVar = 1

    def __init__(self, options: Options, call: Call, inline_max_bytes: int) -> None:
        """Start a session, which its first message configures."""
        self.call: Final = call
        self._options: Final = options
        self._inline_max_bytes: Final = inline_max_bytes // self._COST
        self.held = 0
        self.over = False
        self.fault: Exception | None = None
        self._stream: Any = None  # the engine's; the first message configures it
        self._naming = b""  # the end of the first answer: the encoding's name and fingerprint
        self.inline_max_bytes = min(self._inline_max_bytes, self._FIRST_INLINE_MAX_BYTES)

    def take(self, raw: bytes) -> bytes | None:
        """Process a message.

        Returns:
            Its answer; None if it has none. If `fault` is set, it follows the answer.
        Raises:
            Cancelled: The work was cancelled.
        """
        return self._answered(self._take, raw)

    def end(self) -> bytes | None:
        """Process the end of the messages. Returns and raises like `take`."""
        return self._answered(self._end)

    def _answered(self, step: Callable[..., bytes | None], *raw: bytes) -> bytes | None:
        """The answer of a step; if it fails, one with what is certain, computed here too: it may be
        large."""
        try:
            return self._named(step(*raw))
        except Cancelled:
            raise
        except Exception as error:
            self.fault = error
            return self.abandon()

    def _take(self, raw: bytes) -> bytes | None:
        request = wire.parse(self._REQUEST, raw)
        if self._stream is None:
            if not request.HasField("config"):
                raise InvalidField("config", _NO_CONFIG)
            try:
                entry = self._configure(request.config)
            except Exception as error:
                if isinstance(error, InConfig) or failure_of(error) is None:
                    raise
                raise InConfig(error) from None  # it names fields of `config` by their path
            self._naming = wire.naming(self._RESPONSE, entry)
        elif request.HasField("config"):
            raise InvalidField("config", "only the first message may set it")
        return self._process(request)

    def _end(self) -> bytes | None:
        if self._stream is None:
            raise InvalidField("config", _NO_CONFIG)
        return self._finish()

    def _named(self, answer: bytes | None) -> bytes | None:
        """Let the first answer name the encoding."""
        if answer is None:
            return None
        answer, self._naming = answer + self._naming, b""
        return answer

    @abstractmethod
    def _configure(self, config: Any) -> Entry:
        """Make the engine's stream. Returns the encoding."""

    @abstractmethod
    def _process(self, request: Any) -> bytes | None:
        """The answer to a message, apart from its configuration."""

    @abstractmethod
    def _finish(self) -> bytes:
        """The last answer."""

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
