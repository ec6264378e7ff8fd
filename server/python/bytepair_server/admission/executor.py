"""Where a request is computed: at once on the event loop, in turn on it, or on a thread.

A small request costs less than the way to a thread and back. A large one would hold up every
other call, so it goes to a thread, as a whole: parsing and serialising it takes milliseconds
too. The engine's compiled core works without the interpreter's lock; the reference holds it,
and is slow, so with that every request goes to a thread. The size of a request on the wire
says which it is, and of how many parts it is. docs/server-shape.md has the figures.

Where there is more to do than can be done, the way to a thread is what a request of a middle size
can do without, if the thread has no core to itself. Then the event loop computes it, one in each
of its rounds.

Requests wait in a fair queue, for a thread or for the loop; whoever gives up waiting is taken out
of it, and what runs for somebody who is gone is cancelled.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from time import monotonic, thread_time
from typing import Any, Final, TypeVar

from bytepair_engine import CancelScope

from bytepair_server.admission.fair_queue import FairQueue
from bytepair_server.rpc.call import Call
from bytepair_server.transport.priority import WORK, give_way, let_others_on

T = TypeVar("T")

#: Functions that were given up stand in the queue until they are more than those that wait, and
#: these.
_GIVEN_UP: Final = 64
#: Requests over this size never hold the loop.
MIDDLE_MAX_BYTES: Final = 128 * 1024
#: What held the loop for longer is slow for its size: an encoding that is, or a text made to be.
SLOW_SECONDS: Final = 0.002
#: So many more such requests of its caller go to a thread, before the loop tries one again.
AFTER_SLOW: Final = 64
#: How often a thread is asked for where there is none, and none can be started.
NO_THREAD_SECONDS: Final = 0.1
#: What a function that was cancelled gets to come to its next look at the flag.
CLOSE_SECONDS: Final = 0.25


class Work:
    """The threads for large requests, and who goes there. For one event loop.

    Attributes:
        inline_max_bytes: Requests up to this size are computed on the event loop at once.
    """

    def __init__(self, threads: int, inline_max_bytes: int) -> None:
        """Start no thread yet.

        Args:
            threads: How many. One has no core to itself: the loop is on it.
            inline_max_bytes: Requests up to this size stay on the event loop.
        """
        self._count: Final = threads
        self._threads: Final[list[threading.Thread]] = []
        self._changed: Final = threading.Condition()
        self._queue: Final[FairQueue[_Job]] = FairQueue(_Job.is_wanted)
        self._waiting = 0
        #: How many functions of each flow wait, by the class of their size.
        self._sizes: Final[dict[str, Counter[int]]] = {}
        self._running: Final[set[_Job]] = set()
        self._closed = False
        self._middle_max_bytes = MIDDLE_MAX_BYTES if threads == 1 else -1
        self._round_comes = False
        self._looks_again = False
        #: How many more requests of a caller go to a thread.
        self._slow: Final[dict[str, int]] = {}
        self.inline_max_bytes = inline_max_bytes

    def always_on_threads(self) -> None:
        """Compute nothing on the event loop: an encoding is slow."""
        self.inline_max_bytes = self._middle_max_bytes = -1

    def is_inline(self, request_bytes: int) -> bool:
        """Whether a request of this size is computed on the event loop at once."""
        return request_bytes <= self.inline_max_bytes

    @property
    def queued(self) -> int:
        """How many functions wait for their turn."""
        return self._waiting

    def in_turn(
        self, call: Call, size: int, function: Callable[..., T], *arguments: object
    ) -> Awaitable[T]:
        """As `on_thread`, but the event loop calls the function if `size` says that it is quick,
        and no thread could while the loop does something else.

        It saves the way to the thread, and lets small requests wait for middle ones.
        """
        on_thread = size > self._middle_max_bytes or self._is_slow(call.caller)
        return self._in_turn(_Job(call, size, on_thread, function, arguments))

    def on_thread(
        self, call: Call, size: int, function: Callable[..., T], *arguments: object
    ) -> Awaitable[T]:
        """Call a function on a thread, when its turn has come.

        Flows take turns, by the bytes that they bring; of one flow, the sizes that differ by a
        factor of four or more, which share its turns. If the task that awaits is cancelled, a
        function that waits is never called, and what the engine does for one that runs is
        cancelled.

        Args:
            call: Whose request it is.
            size: How many bytes it has.
            function: What to call.
            arguments: Its arguments.
        Returns:
            What it returns.
        Raises:
            Exception: What it raises.
        """
        return self._in_turn(_Job(call, size, True, function, arguments))

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

    async def _in_turn(self, job: _Job) -> Any:
        with self._changed:
            if len(self._queue) > 2 * self._waiting + _GIVEN_UP:
                self._queue.sweep()
            sizes = self._sizes.setdefault(job.call.flow, Counter())
            sizes[job.size_class] += 1
            self._queue.put((job.call.flow, job.size_class), job.size + 1, job)
            self._waiting += 1
            self._advance()
        try:
            return await job.future
        except asyncio.CancelledError:
            with self._changed:
                if job.forget():
                    self._waits_no_more(job)
                    self._advance()
            raise

    def _advance(self) -> None:
        """See that somebody takes what is next: a thread, or the loop in its next round. For the
        loop, which holds the lock."""
        job = self._queue.first()
        if job is None or self._closed:
            return
        if job.on_thread:
            if len(self._threads) < min(self._count, len(self._running) + self._waiting):
                self._start_thread()
            self._changed.notify()
        elif not (self._round_comes or self._running):
            self._round_comes = True
            asyncio.get_running_loop().call_soon(self._round)

    # On the event loop

    def _round(self) -> None:
        """Compute what is next, unless that is for a thread, or one is at work: then it waits for
        its turn as if it were for a thread too."""
        with self._changed:
            self._round_comes = False
            job = self._queue.first()
            if job is None or job.on_thread or self._running or self._closed:
                return  # whatever changed sees to what is next
            self._begin_next()
        began = thread_time()
        result = job.run()
        if thread_time() - began > SLOW_SECONDS:
            self._slow[job.call.caller] = AFTER_SLOW
        job.settle(*result)
        let_others_on()
        with self._changed:
            self._advance()

    def _is_slow(self, caller: str) -> bool:
        if not self._slow:
            return False
        left = self._slow.pop(caller, 0)
        if left > 1:
            self._slow[caller] = left - 1
        return left > 0

    def _settled(self, job: _Job, result: object, error: BaseException | None) -> None:
        """What a thread had taken is done, or was given up before."""
        job.settle(result, error)
        with self._changed:
            self._advance()

    # On a thread

    def _start_thread(self) -> None:
        # A daemon: the interpreter does not wait at its end for what cannot be stopped.
        name = f"work-{len(self._threads)}"
        thread = threading.Thread(target=self._run, name=name, daemon=True)
        try:
            thread.start()
        except RuntimeError:
            # The system has none to give just now. What waits is for those that there are.
            if not self._threads and not self._looks_again:
                self._looks_again = True
                asyncio.get_running_loop().call_later(NO_THREAD_SECONDS, self._look_again)
            return
        self._threads.append(thread)

    def _look_again(self) -> None:
        with self._changed:
            self._looks_again = False
            self._advance()

    def _run(self) -> None:
        give_way(threading.get_native_id(), WORK)
        while True:
            with self._changed:
                while not (self._is_for_thread() or self._closed):
                    self._changed.wait()
                if self._closed:
                    return
                job = self._begin_next()
                self._running.add(job)
            result = job.run()
            with self._changed:
                self._running.discard(job)
            with suppress(RuntimeError):  # the loop is closed: nobody awaits
                job.loop.call_soon_threadsafe(self._settled, job, *result)
            del job, result  # they would be kept until the next one comes

    def _is_for_thread(self) -> bool:
        job = self._queue.first()
        return job is not None and job.on_thread

    # On either, which holds the lock

    def _begin_next(self) -> _Job:
        job = self._queue.first()
        assert job is not None  # whoever calls this has looked
        # Each class of sizes is a flow of the queue; those of one caller have the share of one.
        self._queue.get(times=len(self._sizes[job.call.flow]))
        job.begin()
        self._waits_no_more(job)
        return job

    def _waits_no_more(self, job: _Job) -> None:
        self._waiting -= 1
        sizes = self._sizes[job.call.flow]
        sizes[job.size_class] -= 1
        if not sizes[job.size_class]:
            del sizes[job.size_class]
        if not sizes:
            del self._sizes[job.call.flow]


class _Job:
    """A function that waits for its turn, or runs."""

    __slots__ = (
        "_arguments",
        "_began",
        "_function",
        "call",
        "future",
        "loop",
        "on_thread",
        "scope",
        "size",
    )

    def __init__(
        self,
        call: Call,
        size: int,
        on_thread: bool,
        function: Callable[..., Any],
        arguments: tuple[object, ...],
    ) -> None:
        self.loop: Final = asyncio.get_running_loop()
        self.future: Final[asyncio.Future[Any]] = self.loop.create_future()
        self.scope: Final = CancelScope()
        self.call: Final = call
        self.size: Final = size
        self.on_thread: Final = on_thread
        self._function = function
        self._arguments = arguments
        self._began = False

    @property
    def size_class(self) -> int:
        """The same for sizes that differ by less than a factor of four."""
        return self.size.bit_length() // 2

    def is_wanted(self) -> bool:
        """Whether somebody still waits for it."""
        return not self.scope.cancelled

    def begin(self) -> None:
        """Take note that its turn has come."""
        self._began = True

    def forget(self) -> bool:
        """Take note that nobody waits for it; whether it had not begun."""
        self.scope.cancel()
        if self._began:
            return False
        # Its request may be large: it goes at once, and not when its turn would have come.
        del self._function, self._arguments
        return True

    def run(self) -> tuple[object, BaseException | None]:
        """Call the function. Returns what it returns, and what it raises."""
        try:
            with self.scope:
                return self._function(*self._arguments), None
        except StopIteration as caught:
            return None, RuntimeError(str(caught))  # no future takes it as it is
        except BaseException as caught:
            return None, caught

    def settle(self, result: object, error: BaseException | None) -> None:
        """Tell whoever awaits it, unless it was given up. On the loop."""
        if self.future.done():
            return
        if error is None:
            self.future.set_result(result)
        else:
            self.future.set_exception(error)
