"""The state of one open stream, for the handler."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from types import TracebackType
from typing import Final, Self, TypeVar

from bytepair_server.admission.limiter import Limiter
from bytepair_server.errors import InputTooLarge, InvalidField, StreamIdle
from bytepair_server.transport.interface import BrokenStream

T = TypeVar("T")

#: gRPC's status code for a message over the limit.
RESOURCE_EXHAUSTED: Final = 8


class OpenStream:
    """One open stream: the time of its last message, and the bytes that it holds.

    Attributes:
        active_at: The event loop's time of the last message, set by the handler.
        idle: Whether it is being cancelled because it was idle.
    """

    __slots__ = (
        "_held",
        "_idle_seconds",
        "_is_working",
        "_limiter",
        "_loop",
        "_max_message_bytes",
        "_task",
        "_timer",
        "active_at",
        "idle",
    )

    def __init__(self, limiter: Limiter, idle_seconds: float, max_message_bytes: int) -> None:
        """Track the current task, and cancel it after `idle_seconds` without a message; 0: never.
        On exit the reason for its cancellation is raised."""
        self._max_message_bytes: Final = max_message_bytes
        self._limiter: Final = limiter
        self._idle_seconds: Final = idle_seconds
        self._loop: Final = asyncio.get_running_loop()
        self._task: Final = limiter.track(is_stream=True)
        self._held = 0
        self.active_at = self._loop.time()
        self._is_working = self.idle = False
        self._timer: asyncio.TimerHandle | None = None
        if idle_seconds:
            self._timer = self._loop.call_later(idle_seconds, self._check_idle)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._limiter.untrack(self._task)
        self.set_held_bytes(0)
        if self._timer is not None:
            self._timer.cancel()
        if isinstance(error, BrokenStream):
            if error.code == RESOURCE_EXHAUSTED:
                limit = self._max_message_bytes
                raise InputTooLarge("message", None, limit, "bytes") from None
            raise InvalidField("message", str(error)) from None
        if isinstance(error, asyncio.CancelledError) and self.idle:
            raise StreamIdle(self._idle_seconds) from None

    async def working(self, work: Awaitable[T]) -> T:
        """Await work of the server, during which the stream is not idle."""
        self._is_working = True
        try:
            return await work
        finally:
            self._is_working = False
            self.active_at = self._loop.time()

    def set_held_bytes(self, size: int) -> None:
        """Set the number of bytes that the stream holds."""
        self._limiter.add_stream_bytes(size - self._held)
        self._held = size

    def _check_idle(self) -> None:
        # The timer is renewed when it fires, not at each message: that would cost more than
        # decoding the message.
        now = self._loop.time()
        left = self._idle_seconds if self._is_working else self.active_at + self._idle_seconds - now
        if left > 0:
            self._timer = self._loop.call_later(left, self._check_idle)
            return
        self.idle = True
        self._task.cancel()
