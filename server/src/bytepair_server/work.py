"""Where a request is computed: at once on the event loop, or on a thread.

A small request costs less than the way to a thread and back. A large one would hold up every
other call, so it goes to a thread, as a whole: parsing and serialising it takes milliseconds
too. The engine's compiled core works without the interpreter's lock; the reference holds it,
and is slow, so with that every request goes to a thread. The size of a request on the wire
says which it is: work grows with nothing else. docs/server-shape.md has the figures.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final, TypeVar

T = TypeVar("T")


class Work:
    """The threads for large requests, and who goes there.

    Attributes:
        inline_max_bytes: Requests up to this size are computed on the event loop.
    """

    def __init__(self, threads: int, inline_max_bytes: int) -> None:
        """Start no thread yet.

        Args:
            threads: How many.
            inline_max_bytes: Requests up to this size stay on the event loop.
        """
        self._count: Final = threads
        self._threads: Final = ThreadPoolExecutor(self._count, thread_name_prefix="work")
        self.inline_max_bytes = inline_max_bytes
        self._running: Final[set[Future[Any]]] = set()

    def always_on_threads(self) -> None:
        """Compute nothing on the event loop: an encoding is slow."""
        self.inline_max_bytes = -1

    def is_inline(self, request_bytes: int) -> bool:
        """Whether a request of this size is computed on the event loop."""
        return request_bytes <= self.inline_max_bytes

    @property
    def queued(self) -> int:
        """How many functions wait for a thread."""
        return max(0, len(self._running) - self._count)

    def on_thread(self, function: Callable[..., T], *arguments: object) -> asyncio.Future[T]:
        """Call a function on a thread, as soon as one is free."""
        running = self._threads.submit(function, *arguments)
        self._running.add(running)
        running.add_done_callback(self._running.discard)
        return asyncio.wrap_future(running)

    def close(self) -> bool:
        """Take no more work and start none that waits.

        Returns:
            Whether everything is done. What runs cannot be stopped.
        """
        self._threads.shutdown(wait=False, cancel_futures=True)
        return not self._running
