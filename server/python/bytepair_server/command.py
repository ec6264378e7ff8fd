"""The command `bytepair-server`: check the configuration, or serve."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence

import uvloop

from bytepair_server.catalog import SelfTestFailed
from bytepair_server.config import loader
from bytepair_server.config.loader import Configuration, ConfigurationError
from bytepair_server.observability import logs, traces
from bytepair_server.server import Server, verify
from bytepair_server.startup import Served, warn
from bytepair_server.system_limits import limit_reached, raise_descriptor_limit
from bytepair_server.transport import ports
from bytepair_server.workers.signals import stop_signals
from bytepair_server.workers.supervisor import Supervisor, worker_count
from bytepair_server.workers.worker import EXIT_CONFIGURATION


def run(arguments: Sequence[str]) -> int:
    """Run the command; `arguments` is the command line without the program's name.

    Returns:
        The exit status: 0 after a drain, 2 if the server could not start, 3 if no worker could
        start.
    Raises:
        OSError, RuntimeError: The server failed for a reason that is none of these.
    """
    configuration = None
    try:
        configuration = loader.load(arguments, os.environ)
        raise_descriptor_limit(configuration.settings.needed_descriptors)
        if configuration.check_only:
            _check(configuration)
            sys.stdout.write("configuration is good\n")
            return 0
        count = worker_count(configuration.settings)
        if count > 1:
            return asyncio.run(Supervisor(configuration, count).run())
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            idle = runner.run(_serve(configuration))
    except (ConfigurationError, SelfTestFailed) as error:
        said = str(error) if configuration is None else configuration.with_source(str(error))
        sys.stderr.write(f"bytepair-server: {said}\n")
        return EXIT_CONFIGURATION
    except (OSError, RuntimeError) as error:
        if said := limit_reached(error):
            sys.stderr.write(f"bytepair-server: {said}\n")
            return EXIT_CONFIGURATION
        raise
    if not idle:
        # Do not wait for threads that outlasted the grace time.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)
    return 0


async def _serve(configuration: Configuration) -> bool:
    settings = configuration.settings
    log = logs.configure(settings.log_format, settings.log_level)
    server = Server(configuration, log)
    stopping = asyncio.Event()
    with stop_signals(stopping, log, server.end_grace):
        return await server.run(stopping)


def _check(configuration: Configuration) -> None:
    """Verify what the settings name, and print the warnings of the start."""
    settings = configuration.settings
    worker_count(settings)
    ports.check(settings.grpc_address)
    # A bad encoding is always reported.
    strict = settings.model_copy(update={"serve_without_bad_encodings": False})
    known, loaded, expiries = verify(strict, configuration.base_dir)
    log = logs.configure("console", "warning", sys.stderr)
    warn(log, Served(configuration, known, loaded, expiries, settings.grpc_address))
    if (tracer := traces.tracer(os.environ, log)) is not None:
        tracer.close()
