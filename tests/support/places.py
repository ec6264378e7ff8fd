"""Places for calls, and callers who come for one and go."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from bytepair_server.admission.queue import Line

from support.calls import call_of

#: More than a test takes.
LONG = 60.0


def run(scene: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a scene, which must come to its end."""
    asyncio.run(asyncio.wait_for(scene(), LONG))


class Places:
    """What a gate is to its line, and callers who come and go one by one."""

    def __init__(self, places: int = 1, *, most: int = 8, seconds: float = LONG) -> None:
        self.free = places
        self.line = Line(lambda: self.free, most, seconds)
        self.order: list[str] = []

    def call(
        self, caller: str, time_left: float | None = None, connection: str = ""
    ) -> asyncio.Task[None]:
        """A call that comes in if it may."""
        return asyncio.create_task(self._come(caller, time_left, connection))

    async def _come(self, caller: str, time_left: float | None, connection: str) -> None:
        call = call_of(caller, connection)
        try:
            if not self.line.passes(call):
                await self.line.turn(call, time_left)
        except BaseException:
            self.line.leave(call)
            raise
        self.line.read(call)
        self.free -= 1
        self.order.append(connection or caller)

    def leave(self) -> None:
        """One of those inside goes out."""
        self.free += 1
        self.line.advance()

    async def waits(self, number: int) -> None:
        """Until so many wait."""
        while self.line.waiting != number:
            await asyncio.sleep(0)
