"""Where a request is computed: at once on the event loop, or on a thread.

A small request costs less than the way to a thread and back. A large one would hold up every other
call, so it goes to a thread as a whole: to parse and serialize it takes milliseconds too. The
engine's compiled core works without the interpreter's lock. The reference backend holds it, and is
slow, so with that every request goes to a thread.

Requests wait in a queue that is fair between callers. One whose caller has given up is removed; one
that is being computed is cancelled.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeVar

from bytepair_engine import CancelScope

from bytepair_server.admission.queue import FairQueue

T = TypeVar("T")

#: Threads give way to the event loop where they share a core with it: 1 KB beside 1 MiB texts had a
#: 99th percentile three times as high without (`make bench-service PARTS=beside`).
NICE: Final = 10
#: Requests handed to the threads beyond those that are computed: so a thread finds its next one
#: without waiting for the event loop.
_AHEAD: Final = 1
#: Time for cancelled requests to end.
CLOSE_SECONDS: Final = 0.25


class Executor:
    """The threads for large requests. For one event loop.

    Attributes:
        inline_max_bytes: Requests up to this size are computed on the event loop at once.
    """

    def __init__(self, threads: int, inline_max_bytes: int) -> None:
        """Start no thread yet.

        Args:
            threads: How many.
            inline_max_bytes: Requests up to this size stay on the event loop.
        """
        self.inline_max_bytes = inline_max_bytes
        self._count: Final = threads
        self._queue: Final[FairQueue[_Job]] = FairQueue()
        self._given: Final[set[_Job]] = set()
        self._pool: Final = ThreadPoolExecutor(threads, "compute", _lower_priority)

    def start(self) -> None:
        """Start the threads.

        Raises:
            RuntimeError: The system has none to give.
        """
        ready = threading.Barrier(self._count + 1)
        try:
            for _ in range(self._count):
                self._pool.submit(ready.wait)
            ready.wait()
        except RuntimeError:
            ready.abort()  # those that were started
            raise

    def always_on_threads(self) -> None:
        """Compute nothing on the event loop: an encoding is slow."""
        self.inline_max_bytes = -1

    def is_inline(self, size: int) -> bool:
        """Whether a request of this many bytes is computed on the event loop."""
        return size <= self.inline_max_bytes

    @property
    def queued(self) -> int:
        """Requests that wait for a thread."""
        return len(self._queue) + sum(not job.began for job in self._given)

    async def run(self, caller: str, size: int, function: Callable[..., T], *args: object) -> T:
        """Call a function on a thread.

        Callers take turns, by the bytes of their requests. If the task that awaits is cancelled, a
        function that waits is never called, and what the engine does for one that runs is
        cancelled.

        Args:
            caller: Whose request it is.
            size: Bytes of the request.
            function: What to call.
            args: Its arguments.
        Returns:
            What it returns.
        Raises:
            Exception: What it raises.
        """
        job = _Job(partial(function, *args))
        self._queue.put(caller, max(1, size), job)
        self._advance()
        try:
            result: T = await job.result
            return result
        except asyncio.CancelledError:
            job.scope.cancel()
            self._queue.discard(caller, job)
            raise

    def close(self) -> bool:
        """Start nothing more, and cancel what is computed.

        Returns:
            Whether no thread works any more.
        """
        for job in self._given:
            job.scope.cancel()
        self._pool.shutdown(wait=False, cancel_futures=True)
        return not any(not job.ended.wait(CLOSE_SECONDS) for job in self._given if job.began)

    def _advance(self) -> None:
        while len(self._queue) and len(self._given) < self._count + _AHEAD:
            job = self._queue.pop()
            self._given.add(job)
            running = asyncio.get_running_loop().run_in_executor(self._pool, job.run)
            running.add_done_callback(partial(self._done, job))

    def _done(self, job: _Job, running: asyncio.Future[tuple[Any, BaseException | None]]) -> None:
        self._given.discard(job)
        if running.cancelled():  # the server stops
            job.result.cancel()
            return
        self._advance()
        result, error = running.result()
        if job.result.done():
            return
        if error is None:
            job.result.set_result(result)
        else:
            job.result.set_exception(error)


class _Job:
    """A function that waits for a thread, or runs."""

    __slots__ = ("_function", "began", "ended", "result", "scope")

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function: Callable[[], Any] | None = function
        self.scope: Final = CancelScope()
        self.result: Final[asyncio.Future[Any]] = asyncio.get_running_loop().create_future()
        self.began = False
        self.ended: Final = threading.Event()

    def run(self) -> tuple[Any, BaseException | None]:
        """Call the function, on a thread: what it returns, and what it raises."""
        self.began = True
        function, self._function = self._function, None  # its request goes when it is done
        try:
            if function is None or self.scope.cancelled:
                return None, asyncio.CancelledError()
            with self.scope:
                return function(), None
        except StopIteration as error:
            return None, RuntimeError(str(error))  # no future takes it as it is
        except BaseException as error:
            return None, error
        finally:
            self.ended.set()


def _lower_priority() -> None:
    if sys.platform == "linux":  # elsewhere this would slow down the whole process
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
