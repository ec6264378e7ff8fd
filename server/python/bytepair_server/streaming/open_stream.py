"""The state of one open stream, for the handler."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Final, TypeVar

from bytepair_server.admission.limiter import Limiter

T = TypeVar("T")


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
        "_task",
        "_timer",
        "active_at",
        "idle",
    )

    def __init__(self, limiter: Limiter, idle_seconds: float) -> None:
        """Track the current task; `close` must follow.

        Args:
            limiter: Counts the bytes of all streams, and may cancel this one.
            idle_seconds: The task is cancelled after this time without a message; 0: never.
        """
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

    async def working(self, work: Awaitable[T]) -> T:
        """Await work of the server, during which the stream is not idle."""
        self._is_working = True
        try:
            return await work
        finally:
            self._is_working = False
            self.active_at = self._loop.time()

    def hold(self, size: int) -> None:
        """Set the number of bytes that the stream holds."""
        self._limiter.hold(size - self._held)
        self._held = size

    def take_in(self, size: int) -> None:
        """Call `hold` before a large message is computed.

        Raises:
            Overloaded: All streams together hold the maximum.
        """
        self.hold(size)
        self._limiter.check_held()

    def close(self) -> None:
        """Release the held bytes and stop the timer."""
        self._limiter.untrack(self._task)
        self.hold(0)
        if self._timer is not None:
            self._timer.cancel()

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
