"""Where a request is computed: at once on the event loop, or on a thread.

A small request costs less than the way to a thread and back. A large one would hold up every
other call, so it goes to a thread, as a whole: parsing and serialising it takes milliseconds
too. The engine's compiled core works without the interpreter's lock; the reference holds it,
and is slow, so with that every request goes to a thread. The size of a request on the wire
says which it is: work grows with nothing else. docs/server-shape.md has the figures.

Requests wait for a thread in a fair queue; whoever gives up waiting is taken out of it, and
what runs for somebody who is gone is cancelled.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import Any, Final, TypeVar

from bytepair_engine import CancelScope

from bytepair_server.fair_queue import FairQueue
from bytepair_server.priority import WORK, give_way

T = TypeVar("T")

#: What a function that was cancelled gets to come to its next look at the flag.
CLOSE_SECONDS: Final = 0.25


class Work:
    """The threads for large requests, and who goes there. For one event loop.

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
        self._threads: Final[list[threading.Thread]] = []
        self._changed: Final = threading.Condition()
        self._queue: Final[FairQueue[_Job]] = FairQueue()
        self._waiting = 0
        self._running: Final[set[_Job]] = set()
        self._closed = False
        self.inline_max_bytes = inline_max_bytes

    def always_on_threads(self) -> None:
        """Compute nothing on the event loop: an encoding is slow."""
        self.inline_max_bytes = -1

    def is_inline(self, request_bytes: int) -> bool:
        """Whether a request of this size is computed on the event loop."""
        return request_bytes <= self.inline_max_bytes

    @property
    def queued(self) -> int:
        """How many functions wait for a thread."""
        return self._waiting

    async def on_thread(
        self, caller: str, size: int, function: Callable[..., T], *arguments: object
    ) -> T:
        """Call a function on a thread, when its turn has come.

        Callers take turns, by the bytes that they bring; of one caller, the sizes that differ
        by a factor of four or more. If the task that awaits is cancelled, a function that waits
        is never called, and what the engine does for one that runs is cancelled.

        Args:
            caller: Whose request it is.
            size: How many bytes it has.
            function: What to call.
            arguments: Its arguments.
        Returns:
            What it returns.
        Raises:
            Exception: What it raises.
        """
        loop = asyncio.get_running_loop()
        job = _Job(loop, function, arguments)
        with self._changed:
            self._queue.put((caller, size.bit_length() // 2), size + 1, job)
            self._waiting += 1
            if len(self._threads) < self._count and len(self._running) + self._waiting > len(
                self._threads
            ):
                self._start_thread()
            self._changed.notify()
        try:
            result: T = await job.future
        except asyncio.CancelledError:
            with self._changed:
                if job.forget():
                    self._waiting -= 1
            raise
        return result

    def close(self) -> bool:
        """Take no more work, start none that waits, and cancel what runs.

        Returns:
            Whether everything is done.
        """
        with self._changed:
            self._closed = True
            for job in self._running:
                job.scope.cancel()
            self._changed.notify_all()
        until = monotonic() + CLOSE_SECONDS
        for thread in self._threads:
            thread.join(max(0.0, until - monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def _start_thread(self) -> None:
        # A daemon: the interpreter does not wait at its end for what cannot be stopped.
        name = f"work-{len(self._threads)}"
        thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _run(self) -> None:
        give_way(threading.get_native_id(), WORK)
        while True:
            with self._changed:
                while not (self._queue or self._closed):
                    self._changed.wait()
                if self._closed:
                    return
                job = self._queue.get()
                if not job.begin():
                    continue
                self._waiting -= 1
                self._running.add(job)
            job.run()
            with self._changed:
                self._running.discard(job)
            del job  # it would be kept until the next one comes


class _Job:
    """A function that waits for a thread or runs on one."""

    __slots__ = ("_arguments", "_began", "_function", "_loop", "future", "scope")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        function: Callable[..., Any],
        arguments: tuple[object, ...],
    ) -> None:
        self.future: Final[asyncio.Future[Any]] = loop.create_future()
        self.scope: Final = CancelScope()
        self._loop: Final = loop
        self._function: Final = function
        self._arguments = arguments
        self._began = False

    def begin(self) -> bool:
        """Take note that its turn has come; whether it is still wanted."""
        self._began = not self.scope.cancelled
        return self._began

    def forget(self) -> bool:
        """Take note that nobody waits for it; whether it had not begun."""
        self.scope.cancel()
        if self._began:
            return False
        # Its request may be large: it goes at once, and not when its turn would have come.
        self._arguments = ()
        return True

    def run(self) -> None:
        """Call the function, and tell whoever awaits it."""
        result: object = None
        error: BaseException | None = None
        try:
            with self.scope:
                result = self._function(*self._arguments)
        except StopIteration as caught:
            error = RuntimeError(str(caught))  # no future takes it as it is
        except BaseException as caught:
            error = caught
        with suppress(RuntimeError):  # the loop is closed: nobody awaits
            self._loop.call_soon_threadsafe(_settle, self.future, result, error)


def _settle(future: asyncio.Future[Any], result: object, error: BaseException | None) -> None:
    if future.done():
        return  # given up
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
