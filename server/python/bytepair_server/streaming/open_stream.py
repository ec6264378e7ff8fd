"""The state of one open stream, for the handler."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Final, TypeVar

from bytepair_server.admission.limiter import Limiter

T = TypeVar("T")


class OpenStream:
    """One open stream: when something last came through it, and what it holds.

    Attributes:
        active_at: The event loop's time of the last message. The reader sets it: the
            look at the clock is all that a message costs here.
        idle: It is being cancelled for having been idle.
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
        """Watch over the current task; `close` must follow.

        Args:
            limiter: Counts what all streams hold, and may cut this one off.
            idle_seconds: The task is cancelled when no message came for so long; 0: never.
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
            self._timer = self._loop.call_later(idle_seconds, self._look)

    async def working(self, work: Awaitable[T]) -> T:
        """Await what the server does for the stream, which is not idle meanwhile."""
        self._is_working = True
        try:
            return await work
        finally:
            self._is_working = False
            self.active_at = self._loop.time()

    def hold(self, size: int) -> None:
        """Say how many bytes the stream holds now."""
        self._limiter.hold(size - self._held)
        self._held = size

    def take_in(self, size: int) -> None:
        """As `hold`, before a large message is computed.

        Raises:
            Overloaded: All streams together hold as much as they may.
        """
        self.hold(size)
        self._limiter.check_held()

    def close(self) -> None:
        """Give back what is held, and look no more."""
        self._limiter.untrack(self._task)
        self.hold(0)
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        # One timer that is set again when it fires. Setting it at each message would cost more
        # than decoding the message.
        now = self._loop.time()
        left = self._idle_seconds if self._is_working else self.active_at + self._idle_seconds - now
        if left > 0:
            self._timer = self._loop.call_later(left, self._look)
            return
        self.idle = True
        self._task.cancel()
