"""One worker process, forked by the supervisor.

The two have a pair of sockets, on which each says things of one byte. Where the socket ends
the supervisor has ended, and the worker drains.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
from collections.abc import Callable
from typing import Final, NoReturn

from bytepair_server.catalog import Catalog
from bytepair_server.config.loader import Configuration, ConfigurationError
from bytepair_server.observability import logs
from bytepair_server.observability.metrics import Metrics
from bytepair_server.server import Inherited, Server
from bytepair_server.workers import cores
from bytepair_server.workers.shared_quotas import QuotaStore

#: The supervisor asks whether the event loop answers, and for the gauges of the moment; the
#: worker says the same once they are written down.
ALIVE: Final = b"a"
#: The supervisor ends the worker, and then the time that its calls have to finish.
DRAIN: Final = b"d"
HURRY: Final = b"h"
#: The worker takes calls.
SERVING: Final = b"s"

#: Exit status of a server that could not start, as of a wrong command line.
EXIT_CONFIGURATION: Final = 2

#: Makes an event loop.
LoopFactory = Callable[[], asyncio.AbstractEventLoop]


def run(
    configuration: Configuration,
    loaded: Catalog,
    metrics: Metrics,
    quotas: QuotaStore,
    *,
    number: int,
    grpc_address: str,
    work_threads: int,
    core: int | None,
    control: socket.socket,
    loop_factory: LoopFactory,
) -> NoReturn:
    """Be a worker, in a process that was just forked, until it has drained.

    Args:
        configuration: What was set.
        loaded: The encodings, which nothing writes to.
        metrics: Where this worker counts.
        quotas: The quota use of all callers, shared by all workers.
        number: Which one it is, from 0.
        grpc_address: The port that all workers share.
        work_threads: Its share of the cores.
        core: Where alone it runs; None for wherever the kernel likes.
        control: This end of the pair of sockets.
        loop_factory: Makes the event loop.
    """
    status = 1
    try:
        settings = configuration.settings
        log = logs.configure(settings.log_format, settings.log_level, worker=number)
        _leave_supervisor(control.fileno(), *([] if quotas.lock is None else [quotas.lock]))
        quotas.be(number)
        if core is not None and not cores.pin(core):
            log.warning("the worker cannot be pinned to its core", core=core)
        inherited = Inherited(
            grpc_address, loaded, metrics, quotas, work_threads, lambda: _say(control, SERVING)
        )
        server = Server(configuration, log, inherited)
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            runner.run(_serve(server, log, metrics, control))
        status = 0
    except ConfigurationError as error:
        log.critical("the worker cannot start", error=str(error))
        status = EXIT_CONFIGURATION
    except BaseException as error:
        log.critical("the worker failed", error=logs.frames(error))
    finally:
        # What lies above on the stack is the supervisor's, and must not run.
        os._exit(status)


def _leave_supervisor(*kept: int) -> None:
    """Keep nothing of the supervisor's but its memory, and these descriptors."""
    # Objects of its event loop must not be finalised here: they would close descriptors by
    # their numbers, which are this process's own from now on.
    gc.freeze()
    signal.set_wakeup_fd(-1)
    # Ctrl-C, and a terminal that closes, reach every process; what to do about it the
    # supervisor says.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    starts = (3, *(descriptor + 1 for descriptor in sorted(kept)))
    ends = (*sorted(kept), os.sysconf("SC_OPEN_MAX"))
    for start, end in zip(starts, ends, strict=True):
        os.closerange(start, end)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


async def _serve(server: Server, log: logs.Log, metrics: Metrics, control: socket.socket) -> bool:
    loop, stopping = asyncio.get_running_loop(), asyncio.Event()

    def heard() -> None:
        try:
            said = control.recv(64)
        except BlockingIOError:
            return
        except OSError:
            said = b""  # the supervisor was killed before it had read all that was said to it
        if not said:
            loop.remove_reader(control)
            if not stopping.is_set():
                log.error("the supervisor ended")
            stopping.set()
        if ALIVE in said:
            metrics.refresh()
            _say(control, ALIVE)
        if DRAIN in said:
            stopping.set()
        if HURRY in said:
            server.hurry()

    loop.add_reader(control, heard)
    # A worker that is ended is replaced.
    loop.add_signal_handler(signal.SIGTERM, stopping.set)
    return await server.run(stopping)


def _say(control: socket.socket, what: bytes) -> None:
    try:
        control.send(what)
    except OSError:
        """The supervisor has ended, which `heard` notices."""
