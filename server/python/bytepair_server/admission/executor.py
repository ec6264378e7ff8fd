"""The executor: computes a request on the event loop or on a thread.

A small request costs less than the hand-over to a thread. A large one would block all other calls,
so a thread parses, computes and serializes it. The engine's compiled core releases the
interpreter's lock. The reference backend holds it and is slow, so all its requests go to threads.

Requests wait in a queue that is fair between callers. One that has run for long waits in it again,
because a few kilobytes of text can take seconds to split. If a caller cancels, its waiting request
is removed and its running one is cancelled.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from time import monotonic
from typing import Any, Final, TypeVar

from bytepair_engine import CancelScope

from bytepair_server.admission.queue import FairQueue

T = TypeVar("T")

#: Threads yield to the event loop if they share its core. At 10, a thread runs a full time slice
#: (2.6 ms) often enough to raise the 99th percentile of 1 KB calls beside 1 MB texts (`make
#: bench-service PARTS=beside`). Large texts are computed as fast at 15.
NICE: Final = 15
#: Medium requests have up to this many times `inline_max_bytes`: 128 KiB. On the event loop a Count
#: of 100 KB, or of 64 texts of 1 KB, takes a fifth less CPU (`make bench-service
#: PARTS="Count BatchCount"`). The native transport reads them before admission, while
#: they hold less than `UNADMITTED_BYTES` (server/src).
_MEDIUM: Final = 8
#: Time limit of a medium count on the event loop, after which it goes to a thread: hard texts take
#: milliseconds (`make bench-worst-case`), and small calls wait meanwhile.
TRIED_SECONDS: Final = 0.001
#: No medium count is tried there this soon after a small request, because further small ones may
#: follow: otherwise the median of 1 KB calls beside 100 KB texts doubles (`make bench-service
#: PARTS=beside`).
QUIET_SECONDS: Final = 0.002
#: After a try exceeds `TRIED_SECONDS`, the caller's costly requests go straight to threads for this
#: long, so that a burst does not delay small calls.
UNTRIED_SECONDS: Final = 0.02
#: Maximum number of callers whose last such try is remembered.
MAX_REMEMBERED: Final = 1024
#: Time after which a running request lets waiting ones run, at its next check for cancellation.
TIME_SLICE_SECONDS: Final = 0.02
#: Queue cost of a time slice, in bytes like request sizes; the first of a smaller request costs its
#: size.
TIME_SLICE_BYTES: Final = 1 << 20
#: Maximum paused requests. Each keeps its thread and its partial result.
MAX_PAUSED: Final = 16
#: Time for cancelled requests to end.
CLOSE_SECONDS: Final = 0.25


class Executor:
    """The threads for large requests, for one event loop.

    Attributes:
        inline_max_bytes: Maximum size of a request that the event loop computes.
        last_small: Time of the last such request, by `perf_counter`.
    """

    def __init__(self, threads: int, inline_max_bytes: int) -> None:
        """Make the executor; `start` starts this number of threads."""
        self.inline_max_bytes = inline_max_bytes
        self.last_small = 0.0
        self._count: Final = threads
        self._long_tries: Final[dict[str, float]] = {}
        self._queue: Final[FairQueue[_Job]] = FairQueue()
        self._given: Final[set[_Job]] = set()
        self._paused: Final[set[_Job]] = set()
        #: Jobs for the threads; None ends one.
        self._handed: Final[SimpleQueue[_Job | None]] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._alive = 0  # those that have not been told to end

    def start(self) -> None:
        """Start the threads.

        Raises:
            RuntimeError: The system cannot start this many threads.
        """
        for _ in range(self._count):
            self._start_thread()

    def always_on_threads(self) -> None:
        """Compute nothing on the event loop, because an encoding is slow."""
        self.inline_max_bytes = -1

    @property
    def tried_max_bytes(self) -> int:
        """Maximum size of a count that is tried on the event loop."""
        return self.inline_max_bytes * (_MEDIUM if self._count == 1 else 1)

    def may_try(self, size: int, now: float) -> bool:
        """Whether to try a count on the event loop for `TRIED_SECONDS`; `now` by `perf_counter`."""
        return size <= self.tried_max_bytes and now - self.last_small > QUIET_SECONDS

    def may_try_costly(self, caller: str, now: float) -> bool:
        """Whether to try a caller's costly request there."""
        return now - self._long_tries.get(caller, 0.0) > UNTRIED_SECONDS

    def remember_long_try(self, caller: str, now: float) -> None:
        """Try no costly request of a caller for a while: one took longer than `TRIED_SECONDS`."""
        if len(self._long_tries) == MAX_REMEMBERED:
            self._long_tries.clear()
        self._long_tries[caller] = now

    @property
    def queued(self) -> int:
        """Number of requests that wait for a thread."""
        return len(self._queue) + sum(not job.began for job in self._given)

    async def run(self, caller: str, size: int, function: Callable[..., T], *args: object) -> T:
        """Call `function` on a thread, fairly between callers: by the `size` of small requests in
        bytes, by the time of large ones. Returns its result and raises what it raises.

        If the awaiting task is cancelled, a waiting function is never called, and the engine's work
        for a running one is cancelled.
        """
        result = asyncio.get_running_loop().create_future()
        job = _Job(partial(function, *args), caller, result, self._yield_thread)
        self._queue.put(caller, min(max(1, size), TIME_SLICE_BYTES), job)
        self._advance()
        try:
            answer: T = await result
            return answer
        except asyncio.CancelledError:
            job.cancel()
            self._queue.discard(caller, job)
            raise

    def close(self) -> bool:
        """Start no more requests, and cancel running ones.

        Returns:
            Whether no thread works any more.
        """
        for job in self._given | self._paused:
            job.cancel()
        for _ in self._threads:
            self._handed.put(None)
        until = monotonic() + CLOSE_SECONDS
        for thread in self._threads:
            thread.join(max(0.0, until - monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def _start_thread(self) -> None:
        name = f"compute_{len(self._threads)}"
        thread = threading.Thread(target=self._work, name=name, daemon=True)
        thread.start()
        self._alive += 1
        self._threads = [*filter(threading.Thread.is_alive, self._threads), thread]

    def _advance(self) -> None:
        while len(self._queue) and len(self._given) < self._count:
            job = self._queue.pop()
            self._given.add(job)
            if job in self._paused:
                self._paused.discard(job)
                job.resumed.set()
            else:
                self._handed.put(job)

    def _work(self) -> None:
        """Run requests on a thread."""
        _lower_priority()
        while (job := self._handed.get()) is not None:
            pass_on = job.run()
            with suppress(RuntimeError):  # the event loop is closed
                job.result.get_loop().call_soon_threadsafe(self._done, job, pass_on)
            del job, pass_on  # frees its result once that is sent

    def _done(self, job: _Job, pass_on: Callable[[], None]) -> None:
        self._given.discard(job)
        self._paused.discard(job)  # it was cancelled meanwhile
        self._advance()
        while self._alive > self._count + len(self._paused):
            self._alive -= 1
            self._handed.put(None)
        if not job.result.done():
            pass_on()

    def _yield_thread(self, job: _Job) -> None:
        """Let requests of others run, on the thread of one that has run for long."""
        if len(self._queue):
            job.resumed.clear()
            if job.cancelled:  # just before that
                return
            with suppress(RuntimeError):  # the event loop is closed
                job.result.get_loop().call_soon_threadsafe(self._pause, job)
                job.resumed.wait()

    def _pause(self, job: _Job) -> None:
        """Pause a request, unless the next one would need one thread too many."""
        following = self._queue.first()
        is_alone = job.cancelled or following is None
        if is_alone or not (following in self._paused or self._has_free_thread()):
            job.resumed.set()
            return
        self._given.discard(job)
        self._paused.add(job)
        self._queue.put(job.caller, TIME_SLICE_BYTES, job)
        self._advance()

    def _has_free_thread(self) -> bool:
        """Whether a thread is free, or has been started."""
        if self._alive == self._count + len(self._paused):
            if len(self._paused) >= MAX_PAUSED:
                return False
            try:
                self._start_thread()
            except RuntimeError:  # the system has no more
                return False
        return True


class _Job(CancelScope):
    """A waiting or running function. While it runs, a check for cancellation may wait for its next
    time slice.

    Attributes:
        began: Whether it is running or has run.
        resumed: Set when its next time slice begins.
    """

    def __init__(
        self,
        function: Callable[[], Any],
        caller: str,
        result: asyncio.Future[Any],
        yield_thread: Callable[[_Job], None],
    ) -> None:
        super().__init__()
        self.caller: Final = caller
        self.result: Final = result
        self.began = False
        self.resumed: Final = threading.Event()
        self._slice_ends = 0.0
        self._yield_thread: Final = yield_thread
        self._function: Callable[[], Any] | None = function

    def cancel(self) -> None:
        super().cancel()
        self.resumed.set()

    def check(self) -> None:
        super().check()
        if monotonic() >= self._slice_ends:
            self._yield_thread(self)
            self._slice_ends = monotonic() + TIME_SLICE_SECONDS
            super().check()

    def run(self) -> Callable[[], None]:
        """Call the function on a thread. Returns what passes its outcome to `result`."""
        self.began = True
        self._slice_ends = monotonic() + TIME_SLICE_SECONDS
        function, self._function = self._function, None  # frees its request once it is done
        # An error is no local variable, or its traceback would keep this function, and the request.
        try:
            if function is None or self.cancelled:
                raise asyncio.CancelledError
            with self:
                return partial(self.result.set_result, function())
        except StopIteration as error:
            # A future rejects StopIteration.
            return partial(self.result.set_exception, RuntimeError(str(error)))
        except BaseException as error:
            return partial(self.result.set_exception, error)


def _lower_priority() -> None:
    if sys.platform == "linux":  # elsewhere this would slow down the whole process
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
