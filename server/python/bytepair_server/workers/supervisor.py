"""The parent of several workers: starts them, replaces those that die, and drains them.

It answers no calls. Encodings are loaded before the first fork, and shared; it never starts a
thread, nor anything of gRPC, because neither survives a fork.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from bytepair_server import cores
from bytepair_server.config.loader import Configuration, ConfigurationError
from bytepair_server.config.settings import Settings
from bytepair_server.config.types import NO_ADDRESS
from bytepair_server.observability import logs
from bytepair_server.observability.http import Pages, listen, serve, shown_address
from bytepair_server.observability.metrics import Metrics
from bytepair_server.server import Inherited, verify
from bytepair_server.shared.memory import Block
from bytepair_server.shared.quotas import QuotaStore
from bytepair_server.startup import Served, log_start
from bytepair_server.system_limits import limit_reached
from bytepair_server.transport.ports import CAN_SHARE, reserve, with_port
from bytepair_server.workers import worker
from bytepair_server.workers.signals import stop_signals, stopping_signals

#: Exit status if no worker could start.
EXIT_WORKERS: Final = 3
#: Deaths of workers, before any has served, after which the server ends.
MAX_EARLY_DEATHS: Final = 3
#: Failed starts of one worker, before any has served, after which the server ends.
MAX_FAILED_STARTS: Final = 6
#: The death of a worker that lived longer does not count as a consecutive one.
STABLE_SECONDS: Final = 10.0
#: The wait before the second consecutive restart; each further one doubles it.
MIN_BACKOFF_SECONDS: Final = 0.1
MAX_BACKOFF_SECONDS: Final = 10.0
#: A worker whose event loop does not answer within this time is unhealthy.
CHECK_SECONDS: Final = 2.0
#: The time between two checks of all workers.
WATCH_SECONDS: Final = 5.0
#: A worker that is unhealthy for this time is killed, and replaced.
UNHEALTHY_SECONDS: Final = 20.0
#: A worker that does not serve within this time is unhealthy, and killed at once. It loads no
#: encodings: on an idle core it serves after a tenth of a second.
START_SECONDS: Final = 30.0
#: Time to stop, beyond the grace of calls and streams; then a worker is killed.
STOP_SECONDS: Final = 5.0


def worker_count(settings: Settings) -> int:
    """The number of workers to start.

    Raises:
        ConfigurationError: Several workers are configured, but cannot share a port.
    """
    can_share = CAN_SHARE and not settings.grpc_address.startswith("unix:")
    if settings.workers > 1 and not can_share:
        where = "a Unix socket" if CAN_SHARE else "a port of this platform"
        raise ConfigurationError(
            f"workers {settings.workers}: {where} cannot be shared between processes; set 1, or "
            "a grpc_address of the form host:port on Linux"
        )
    return settings.workers or (cores.usable_cores() if can_share else 1)


class _Worker:
    """A worker by its number, and the process that runs it now."""

    def __init__(self, number: int, block: Block) -> None:
        self.number: Final = number
        self.block: Final = block
        self.pid = 0  # no process
        self.control: socket.socket | None = None
        self.started = 0.0
        self.serving = False
        self.answered = asyncio.Event()
        self.unhealthy_since: float | None = None
        self.consecutive_deaths = 0

    def send(self, message: bytes) -> None:
        """Send the process a control message, if it still runs."""
        if self.control is not None:
            worker.send(self.control, message)

    def restart_delay(self) -> float:
        """Count a death; the seconds to wait before the next process starts."""
        earlier = self.consecutive_deaths
        self.consecutive_deaths += 1
        if not earlier:
            return 0.0
        return min(MAX_BACKOFF_SECONDS, MIN_BACKOFF_SECONDS * 2.0 ** min(earlier - 1, 30))


class Supervisor:
    """The parent of several workers."""

    def __init__(self, configuration: Configuration, count: int) -> None:
        """Hold the port for `count` workers, and load the encodings.

        Raises:
            ConfigurationError, SelfTestFailed: No server could start with this configuration.
        """
        settings = configuration.settings
        self._configuration: Final = configuration
        self._log: Final = logs.configure(settings.log_format, settings.log_level)
        self._port: Final = reserve(settings.grpc_address)
        self._address: Final = with_port(settings.grpc_address, self._port)
        self._http = None if settings.http_address == NO_ADDRESS else listen(settings.http_address)
        verified = verify(settings, configuration.base_dir)
        self._callers, self._loaded, self._expiries = verified
        own, *blocks = (Block() for _ in range(count + 1))
        self._workers: Final = [_Worker(number, block) for number, block in enumerate(blocks)]
        self._metrics: Final = Metrics((own, *blocks))
        logs.count_lost_lines(self._metrics.lost_log_lines.inc)
        self._metrics.processes.ids = lambda: (os.getpid(), *self._pids())
        self._quota_store: Final = QuotaStore(count)
        self._cores: Final = cores.own_cores(count) if settings.pin_workers else None
        self._stopping: Final = asyncio.Event()
        self._ended: Final = asyncio.Event()
        self._status = 0
        self._has_logged_start = False
        self._has_served = False
        self._checking: asyncio.Task[None] | None = None

    async def run(self) -> int:
        """Keep the workers running until a signal starts a drain.

        Returns:
            The exit status.
        """
        loop = asyncio.get_running_loop()
        # Handle a pending SIGTERM first: if a signal reached every process, workers that drain by
        # themselves are not counted as lost.
        loop.add_signal_handler(signal.SIGCHLD, loop.call_soon, self._reap)
        server = None
        if self._http is not None:
            registry = self._metrics.registry
            server = serve(
                self._http, Pages(registry, self._is_healthy, self._is_ready, self._check)
            )
        # The garbage collector writes to the objects that it visits, which would copy their
        # pages into every worker.
        gc.collect()
        gc.freeze()
        with stop_signals(self._stopping, self._log, self._end_grace):
            for child in self._workers:
                self._start(child)
            watch = asyncio.create_task(self._watch())
            await self._stopping.wait()
            watch.cancel()
            await self._drain()
            if server is not None:
                server.cancel()
            self._port.close()
            self._log.info("stopped")
            return self._status

    # Starting and restarting

    def _start(self, child: _Worker) -> None:
        if self._stopping.is_set():
            return
        try:
            self._fork(child)
        except OSError as error:
            # Out of processes, descriptors or memory.
            wait = child.restart_delay()
            asyncio.get_running_loop().call_later(wait, self._start, child)
            self._log.error(
                "a worker cannot be started",
                worker=child.number,
                error=error.strerror,
                remedy=limit_reached(error),
                retry_in_seconds=wait,
            )
            if not self._has_served and not self._pids():
                self._give_up_after(child.consecutive_deaths, MAX_FAILED_STARTS)

    def _fork(self, child: _Worker) -> None:
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.setblocking(False)
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError):
                stream.flush()  # or the worker would write it again
        # A signal between the fork and the worker's own handlers would run the supervisor's.
        blocked = (*stopping_signals(), signal.SIGCHLD)
        before = signal.pthread_sigmask(signal.SIG_BLOCK, blocked)
        try:
            loop.add_reader(ours, self._on_message, child)
            pid = os.fork()
        except OSError:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            loop.remove_reader(ours)
            ours.close()
            theirs.close()
            raise
        if pid == 0:
            try:
                asyncio._set_running_loop(None)
                ours.close()
                inherited = Inherited(
                    self._address,
                    self._loaded,
                    Metrics((child.block,)),
                    self._quota_store,
                    max(1, cores.usable_cores() // len(self._workers)),
                    serving=lambda: worker.send(theirs, worker.SERVING),
                )
                worker.run(
                    self._configuration,
                    inherited,
                    number=child.number,
                    core=self._cores[child.number] if self._cores else None,
                    control=theirs,
                )
            finally:
                os._exit(1)  # the rest of this stack belongs to the supervisor
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()
        child.pid, child.control, child.started = pid, ours, loop.time()

    def _on_message(self, child: _Worker) -> None:
        assert child.control is not None  # it became readable
        try:
            received = child.control.recv(64)
        except BlockingIOError:
            return
        except OSError:
            received = b""
        if not received:
            # It has closed its end; `_reap` collects the process.
            asyncio.get_running_loop().remove_reader(child.control)
        if worker.PING in received:
            child.answered.set()
        if worker.SERVING in received:
            child.serving = self._has_served = True
            if self._has_logged_start:
                self._log.info("a worker serves again", worker=child.number, pid=child.pid)
            elif all(each.serving for each in self._workers):
                self._log_start()

    def _reap(self) -> None:
        for child in self._workers:
            if child.pid:
                pid, status = os.waitpid(child.pid, os.WNOHANG)
                if pid:
                    self._on_exit(child, os.waitstatus_to_exitcode(status))
        if self._stopping.is_set() and not self._pids():
            self._ended.set()

    def _on_exit(self, child: _Worker, status: int) -> None:
        loop, served, pid = asyncio.get_running_loop(), child.serving, child.pid
        assert child.control is not None  # it had a process
        loop.remove_reader(child.control)
        child.control.close()
        child.pid, child.control, child.serving = 0, None, False
        child.answered.set()
        child.unhealthy_since = None
        self._metrics.forget(child.block)
        self._quota_store.forget(child.number)
        if self._stopping.is_set():
            return
        self._metrics.workers_lost.inc()
        if served and loop.time() - child.started > STABLE_SECONDS:
            child.consecutive_deaths = 0
        wait = child.restart_delay()
        # First, because writing a log line may take time.
        loop.call_later(wait, self._start, child)
        self._log.error(
            "a worker ended", worker=child.number, pid=pid, status=status, replaced_in_seconds=wait
        )
        if not self._has_served:
            deaths = sum(each.consecutive_deaths for each in self._workers)
            if status == worker.EXIT_CONFIGURATION:
                self._give_up(status)
                return
            self._give_up_after(deaths, MAX_EARLY_DEATHS)

    def _give_up_after(self, deaths: int, limit: int) -> None:
        if deaths >= limit:
            self._log.critical("no worker could start: the server ends", deaths=deaths)
            self._give_up(EXIT_WORKERS)

    def _give_up(self, status: int) -> None:
        self._status = status
        for pid in self._pids():
            os.kill(pid, signal.SIGKILL)
        self._stopping.set()

    # Stopping

    async def _drain(self) -> None:
        """Let the workers finish, and kill those that take too long."""
        self._broadcast(worker.DRAIN)
        settings = self._configuration.settings
        grace = max(settings.grace_seconds, settings.stream_grace_seconds)
        asyncio.get_running_loop().call_later(grace + STOP_SECONDS, self._kill)
        if self._pids():
            await self._ended.wait()

    def _end_grace(self) -> None:
        self._broadcast(worker.STOP)
        asyncio.get_running_loop().call_later(STOP_SECONDS, self._kill)

    def _kill(self) -> None:
        for child in self._workers:
            if child.pid:
                self._log.warning("killed a worker that did not stop", worker=child.number)
                os.kill(child.pid, signal.SIGKILL)

    # Health

    async def _check(self) -> None:
        """Ping all workers. Concurrent callers share one round."""
        if self._checking is None or self._checking.done():
            self._checking = asyncio.create_task(self._ping_all())
        await asyncio.shield(self._checking)

    async def _watch(self) -> None:
        """Check the workers regularly, and kill those that stay unhealthy: their connections would
        wait forever."""
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            await self._check()
            now = asyncio.get_running_loop().time()
            for child in self._workers:
                since = child.unhealthy_since
                if since is not None and now - since >= UNHEALTHY_SECONDS:
                    self._log.error(
                        "killed a worker that does not answer",
                        worker=child.number,
                        pid=child.pid,
                        seconds=round(now - since, 1),
                    )
                    os.kill(child.pid, signal.SIGKILL)

    async def _ping_all(self) -> None:
        loop = asyncio.get_running_loop()
        pinged = [child for child in self._workers if child.serving]
        for child in pinged:
            child.answered.clear()
            child.send(worker.PING)
        if pinged:
            waits = [asyncio.create_task(child.answered.wait()) for child in pinged]
            _, late = await asyncio.wait(waits, timeout=CHECK_SECONDS)
            for task in late:
                task.cancel()
            for child in pinged:
                if child.answered.is_set():
                    child.unhealthy_since = None
                elif child.unhealthy_since is None:
                    child.unhealthy_since = loop.time()
        for child in self._workers:
            is_starting = child.pid != 0 and not child.serving
            if is_starting and loop.time() - child.started >= START_SECONDS:
                child.unhealthy_since = child.started

    def _is_healthy(self) -> tuple[bool, str]:
        stuck = [child.number for child in self._workers if child.unhealthy_since is not None]
        if stuck:
            return False, f"these workers do not answer: {stuck}"
        return True, "healthy"

    def _is_ready(self) -> tuple[bool, str]:
        if self._stopping.is_set():
            return False, "draining"
        takes_calls = any(each.serving and each.unhealthy_since is None for each in self._workers)
        return (True, self._loaded.readiness) if takes_calls else (False, "no worker takes calls")

    # Helpers

    def _log_start(self) -> None:
        self._has_logged_start = True
        served = Served(
            self._configuration, self._callers, self._loaded, self._expiries, self._address
        )
        log_start(
            self._log,
            served,
            http_address="" if self._http is None else shown_address(self._http),
            workers=len(self._workers),
        )

    def _broadcast(self, message: bytes) -> None:
        for child in self._workers:
            child.send(message)

    def _pids(self) -> Sequence[int]:
        return [child.pid for child in self._workers if child.pid]
