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

from bytepair_server import catalog
from bytepair_server.auth import callers, tls
from bytepair_server.auth.policy import Policy
from bytepair_server.config.loader import Configuration, ConfigurationError
from bytepair_server.config.settings import Settings
from bytepair_server.config.types import NO_ADDRESS
from bytepair_server.observability import logs
from bytepair_server.observability.http import Pages, listen, serve_on_loop, shown_address
from bytepair_server.observability.metrics import Metrics
from bytepair_server.observability.startup_log import log_start
from bytepair_server.playground import playground
from bytepair_server.transport.ports import CAN_SHARE, SharedPort
from bytepair_server.workers import cores, worker
from bytepair_server.workers.shared_metrics import Block
from bytepair_server.workers.shared_quotas import QuotaStore
from bytepair_server.workers.worker import LoopFactory

#: Exit status where no worker ever came to serve.
EXIT_WORKERS: Final = 3
#: How many may die before the first one serves.
MOST_EARLY_DEATHS: Final = 3
#: A worker that served for so long was well: its death is not one of a row.
STEADY_SECONDS: Final = 10.0
#: The wait before the second replacement of a row; each one doubles it.
FIRST_WAIT_SECONDS: Final = 0.1
LONGEST_WAIT_SECONDS: Final = 10.0
#: The event loop of a worker that does not answer for so long is stuck.
ANSWER_SECONDS: Final = 2.0
#: What a worker gets beyond the time that its calls have to finish.
STOP_SECONDS: Final = 5.0


def worker_count(settings: Settings) -> int:
    """How many workers there are to be.

    Raises:
        ConfigurationError: Several workers are configured where they cannot share a port.
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
    """The place of one worker, and the process that has it now."""

    def __init__(self, number: int, block: Block) -> None:
        self.number: Final = number
        self.block: Final = block
        self.pid = 0  # no process
        self.control: socket.socket | None = None
        self.started = 0.0
        self.serving = False
        self.answered = asyncio.Event()
        self.deaths_in_a_row = 0

    def say(self, what: bytes) -> None:
        """Tell the process something."""
        if self.control is not None:
            try:
                self.control.send(what)
            except OSError:
                """It is gone, or so stuck that its socket is full."""


class Supervisor:
    """The parent of several workers."""

    def __init__(self, configuration: Configuration, count: int, loop_factory: LoopFactory) -> None:
        """Load the encodings and hold the port.

        Args:
            configuration: What was set.
            count: How many workers.
            loop_factory: Makes the event loop of a worker.
        Raises:
            ConfigurationError, SelfTestFailed: No server could start with this configuration.
        """
        settings = configuration.settings
        self._configuration: Final = configuration
        self._loop_factory: Final = loop_factory
        self._log: Final = logs.configure(settings.log_format, settings.log_level)
        self._port: Final = SharedPort(settings.grpc_address)
        self._http = None if settings.http_address == NO_ADDRESS else listen(settings.http_address)
        self._callers: Final = callers.load(settings, configuration.base_dir)
        self._tls: Final = tls.load(settings, configuration.base_dir)
        self._loaded: Final = catalog.load(settings, configuration.base_dir)
        # Refused here, rather than by every worker.
        playground.is_on(settings, self._callers)
        Policy(settings.ceiling, self._loaded, self._callers, settings.disallowed_special_floor)
        own, *blocks = (Block() for _ in range(count + 1))
        self._workers: Final = [_Worker(number, block) for number, block in enumerate(blocks)]
        self._metrics: Final = Metrics((own, *blocks))
        self._metrics.processes.ids = lambda: (os.getpid(), *self._pids())
        self._quota_store: Final = QuotaStore(count)
        self._cores: Final = cores.own_cores(count) if settings.pin_workers else None
        # A server started with nohup is to outlive the terminal.
        outlives = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        hangup = () if outlives else (signal.SIGHUP,)
        self._caught_signals: Final = (signal.SIGTERM, signal.SIGINT, *hangup)
        self._draining = False
        self._log_startd = False
        self._asking: asyncio.Task[None] | None = None
        self._ended: asyncio.Future[int] | None = None

    async def run(self) -> int:
        """Keep the workers going until a signal says otherwise, then drain them.

        Returns:
            The exit status.
        """
        loop = asyncio.get_running_loop()
        self._ended = loop.create_future()
        loop.add_signal_handler(signal.SIGCHLD, self._reap)
        for number in self._caught_signals:
            loop.add_signal_handler(number, self._caught, number)
        server = None
        if self._http is not None:
            pages = Pages(self._metrics.registry, self._is_healthy, self._is_ready)
            server = serve_on_loop(self._http, pages, self._ask)
        # Nothing that is there now is ever looked at by the collector, which would write to
        # it and so make every worker's copy its own.
        gc.collect()
        gc.freeze()
        for place in self._workers:
            self._start(place)
        try:
            return await self._ended
        finally:
            if server is not None:
                server.cancel()
            self._port.close()
            self._log.info("stopped")

    # The life of a worker

    def _start(self, place: _Worker) -> None:
        if self._draining:
            return
        try:
            self._fork(place)
        except OSError as error:
            # There are too few processes, descriptors or memory just now.
            wait = self._next_wait(place)
            asyncio.get_running_loop().call_later(wait, self._start, place)
            self._log.error(
                "a worker cannot be started",
                worker=place.number,
                error=error.strerror,
                retry_in_seconds=wait,
            )

    def _fork(self, place: _Worker) -> None:
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.setblocking(False)
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError):
                stream.flush()  # or the worker would say it again
        # A signal between the fork and the worker's own handlers would run the supervisor's.
        blocked = (*self._caught_signals, signal.SIGCHLD)
        before = signal.pthread_sigmask(signal.SIG_BLOCK, blocked)
        try:
            loop.add_reader(ours, self._heard, place)
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
                worker.run(
                    self._configuration,
                    self._loaded,
                    Metrics((place.block,)),
                    self._quota_store,
                    number=place.number,
                    grpc_address=self._port.address,
                    work_threads=max(1, cores.usable_cores() // len(self._workers)),
                    core=self._cores[place.number] if self._cores else None,
                    control=theirs,
                    loop_factory=self._loop_factory,
                )
            finally:
                os._exit(1)  # nothing of what follows is the worker's
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()
        place.pid, place.control, place.started = pid, ours, loop.time()

    def _heard(self, place: _Worker) -> None:
        assert place.control is not None  # it is what can be read
        try:
            said = place.control.recv(64)
        except BlockingIOError:
            return
        except OSError:
            said = b""
        if not said:
            # It ends, which `_reap` notices.
            asyncio.get_running_loop().remove_reader(place.control)
        if worker.ALIVE in said:
            place.answered.set()
        if worker.SERVING in said:
            place.serving = True
            if not self._log_startd and all(each.serving for each in self._workers):
                self._log_start()

    def _reap(self) -> None:
        for place in self._workers:
            if place.pid:
                pid, status = os.waitpid(place.pid, os.WNOHANG)
                if pid:
                    self._gone(place, os.waitstatus_to_exitcode(status))
        if self._draining and not self._pids():
            self._end(0)

    def _gone(self, place: _Worker, status: int) -> None:
        loop, served, pid = asyncio.get_running_loop(), place.serving, place.pid
        assert place.control is not None  # it had a process
        loop.remove_reader(place.control)
        place.control.close()
        place.pid, place.control, place.serving = 0, None, False
        place.answered.set()
        self._metrics.forget(place.block)
        self._quota_store.forget(place.number)
        if self._draining:
            return
        self._metrics.workers_lost.labels().inc()
        if served and loop.time() - place.started > STEADY_SECONDS:
            place.deaths_in_a_row = 0
        wait = self._next_wait(place)
        # Before it is logged, because writing a line may take time.
        loop.call_later(wait, self._start, place)
        self._log.error(
            "a worker ended", worker=place.number, pid=pid, status=status, replaced_in_seconds=wait
        )
        if not self._log_startd and not any(each.serving for each in self._workers):
            deaths = sum(each.deaths_in_a_row for each in self._workers)
            if status == worker.EXIT_CONFIGURATION:
                self._give_up(status)
                return
            if deaths >= MOST_EARLY_DEATHS:
                self._log.critical("no worker could start: the server ends", deaths=deaths)
                self._give_up(EXIT_WORKERS)

    @staticmethod
    def _next_wait(place: _Worker) -> float:
        """Count another death in a row; seconds until the place may be taken again."""
        place.deaths_in_a_row += 1
        return _wait_seconds(place.deaths_in_a_row - 1)

    def _give_up(self, status: int) -> None:
        self._draining = True
        for pid in self._pids():
            os.kill(pid, signal.SIGKILL)
        self._end(status)

    def _end(self, status: int) -> None:
        assert self._ended is not None  # it runs
        if not self._ended.done():
            self._ended.set_result(status)

    # Draining

    def _caught(self, number: signal.Signals) -> None:
        self._log.info("caught a signal", signal=number.name)
        if self._draining:
            # A terminal that closes may send several SIGHUP, none of which is in a hurry.
            if number != signal.SIGHUP:
                self._say(worker.HURRY)
            return
        self._say(worker.DRAIN)
        self._draining = True
        if not self._pids():
            self._end(0)
        settings = self._configuration.settings
        grace = max(settings.grace_seconds, settings.stream_grace_seconds)
        asyncio.get_running_loop().call_later(grace + STOP_SECONDS, self._kill)

    def _kill(self) -> None:
        for place in self._workers:
            if place.pid:
                self._log.warning("killed a worker that did not stop", worker=place.number)
                os.kill(place.pid, signal.SIGKILL)

    # What the HTTP port shows

    async def _ask(self) -> None:
        """Ask all workers whether they answer; callers that ask meanwhile share the answers."""
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._ask_all())
        await asyncio.shield(self._asking)

    async def _ask_all(self) -> None:
        asked = [place for place in self._workers if place.serving]
        for place in asked:
            place.answered.clear()
            place.say(worker.ALIVE)
        if asked:
            waits = [asyncio.create_task(place.answered.wait()) for place in asked]
            _, late = await asyncio.wait(waits, timeout=ANSWER_SECONDS)
            for task in late:
                task.cancel()

    def _is_healthy(self) -> tuple[bool, str]:
        stuck = [place.number for place in self._workers if not self._answers(place)]
        if stuck:
            return False, f"the event loop of these workers does not answer: {stuck}"
        return True, "healthy"

    @staticmethod
    def _answers(place: _Worker) -> bool:
        return not place.serving or place.answered.is_set()

    def _is_ready(self) -> tuple[bool, str]:
        if self._draining:
            return False, "draining"
        serving = any(place.serving for place in self._workers)
        return (True, self._loaded.readiness) if serving else (False, "no worker serves")

    # Odds and ends

    def _log_start(self) -> None:
        self._log_startd = True
        log_start(
            self._log,
            self._configuration,
            self._callers,
            self._tls,
            self._loaded,
            grpc_address=self._port.address,
            http_address="" if self._http is None else shown_address(self._http),
            workers=len(self._workers),
        )

    def _say(self, what: bytes) -> None:
        for place in self._workers:
            place.say(what)

    def _pids(self) -> Sequence[int]:
        return [place.pid for place in self._workers if place.pid]


def supervise(configuration: Configuration, count: int, loop_factory: LoopFactory) -> int:
    """Run a server of several workers; see `Supervisor`.

    Returns:
        The exit status.
    """
    supervisor = Supervisor(configuration, count, loop_factory)
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        return runner.run(supervisor.run())


def _wait_seconds(deaths_in_a_row: int) -> float:
    """How long a worker's replacement waits, after this many deaths in a row before this one."""
    if not deaths_in_a_row:
        return 0.0
    return min(LONGEST_WAIT_SECONDS, FIRST_WAIT_SECONDS * 2.0 ** min(deaths_in_a_row - 1, 30))
