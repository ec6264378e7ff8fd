"""One worker process, forked by the supervisor.

Supervisor and worker exchange messages of one byte over a pair of sockets. When the supervisor's
end closes, the supervisor has ended, and the worker drains.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
from contextlib import suppress
from typing import Final, NoReturn

import uvloop

from bytepair_server.config.loader import Configuration, ConfigurationError
from bytepair_server.observability import logs
from bytepair_server.observability.metrics import Metrics
from bytepair_server.server import Inherited, Server
from bytepair_server.system_limits import limit_reached

#: From the supervisor: write the gauges to shared memory, and answer with the same message. It
#: shows that the event loop runs.
PING: Final = b"p"
#: From the supervisor: finish running calls, then end.
DRAIN: Final = b"d"
#: From the supervisor: end without waiting for running calls.
STOP: Final = b"x"
#: From the worker: it accepts calls.
SERVING: Final = b"s"

#: Exit status of a server that could not start, as of a wrong command line.
EXIT_CONFIGURATION: Final = 2


def run(
    configuration: Configuration,
    inherited: Inherited,
    *,
    number: int,
    core: int | None,
    control: socket.socket,
) -> NoReturn:
    """Run a worker in a newly forked process, until it has drained.

    Args:
        configuration: The settings and their source.
        inherited: What it gets from the supervisor.
        number: The worker's number, from 0.
        core: The core to pin it to; None for no pinning.
        control: Its end of the pair of sockets.
    """
    status = 1
    try:
        settings = configuration.settings
        log = logs.configure(settings.log_format, settings.log_level, worker=number)
        store = inherited.quota_store
        _leave_supervisor(control.fileno(), *([] if store.lock is None else [store.lock]))
        store.set_process(number)
        if core is not None:
            try:
                os.sched_setaffinity(0, (core,))
            except OSError:  # the cores of a container have changed
                log.warning("the worker cannot be pinned to its core", core=core)
        server = Server(configuration, log, inherited)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_serve(server, log, inherited.metrics, control))
        status = 0
    except ConfigurationError as error:
        log.critical("the worker cannot start", error=str(error))
        status = EXIT_CONFIGURATION
    except BaseException as error:
        # The remedy may be for an error that another one followed, so the frames are logged too.
        remedy = limit_reached(error)
        log.critical("the worker failed", error=logs.frames(error), remedy=remedy)
    finally:
        # The callers on the stack belong to the supervisor and must not run.
        os._exit(status)


def _leave_supervisor(*kept: int) -> None:
    """Drop the supervisor's signal handlers and descriptors, apart from those that are kept."""
    # Finalising objects of its event loop would close descriptors by number, and this process
    # reuses those numbers.
    gc.freeze()
    signal.set_wakeup_fd(-1)
    # Ctrl-C and a closing terminal signal every process; the supervisor decides what to do.
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

    def on_message() -> None:
        try:
            received = control.recv(64)
        except BlockingIOError:
            return
        except OSError:
            received = b""  # the supervisor was killed before it had read all messages
        if not received:
            loop.remove_reader(control)
            if not stopping.is_set():
                log.error("the supervisor ended")
            stopping.set()
        if PING in received:
            metrics.refresh()
            send(control, PING)
        if DRAIN in received:
            stopping.set()
        if STOP in received:
            server.end_grace()

    loop.add_reader(control, on_message)
    # A worker that is ended alone drains, and the supervisor replaces it.
    loop.add_signal_handler(signal.SIGTERM, stopping.set)
    return await server.run(stopping)


def send(control: socket.socket, message: bytes) -> None:
    """Send a message to the other process, unless it has ended or does not read."""
    with suppress(OSError):
        control.send(message)
