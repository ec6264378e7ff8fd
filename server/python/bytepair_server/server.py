"""The life of a server, in its stages: bind, start, load, serve, drain, stop."""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from grpc_health.v1 import health

from bytepair_server import catalog, cores
from bytepair_server.admission.executor import Executor
from bytepair_server.admission.limiter import Limiter
from bytepair_server.auth import callers, tls
from bytepair_server.auth.callers import Callers
from bytepair_server.auth.policy import Policy
from bytepair_server.auth.quotas import Quotas
from bytepair_server.auth.reload import Reloader
from bytepair_server.catalog import Catalog
from bytepair_server.config.loader import Configuration, ConfigurationError
from bytepair_server.config.settings import Settings
from bytepair_server.config.types import NO_ADDRESS
from bytepair_server.observability import logs, traces
from bytepair_server.observability.http import Pages, listen, serve, shown_address
from bytepair_server.observability.metrics import Metrics
from bytepair_server.playground import playground
from bytepair_server.rpc import reflection
from bytepair_server.rpc.chat_service import SERVICE_NAME as CHAT_SERVICE_NAME
from bytepair_server.rpc.context_service import flagged_tokens
from bytepair_server.rpc.handler import UnaryHandlers
from bytepair_server.rpc.health import Health
from bytepair_server.rpc.outcome import Shared
from bytepair_server.rpc.service import SERVICE_NAME, Service
from bytepair_server.shared.quotas import QuotaStore
from bytepair_server.startup import Served, log_start, warn_of_expiry, warn_of_no_keys
from bytepair_server.streaming.handler import StreamHandlers
from bytepair_server.transport import choice, ports
from bytepair_server.transport.interface import (
    CLOSED,
    DESCRIPTORS,
    HTTP2,
    LIMIT,
    REFUSED,
    Limits,
    Method,
    Setup,
    TlsFiles,
    Transport,
)

_SERVICES: Final = (SERVICE_NAME, CHAT_SERVICE_NAME)


@dataclass(frozen=True)
class Inherited:
    """What a worker gets from its supervisor, which also serves the HTTP port.

    Attributes:
        grpc_address: The address that all workers share.
        catalog: The encodings, loaded once for all workers.
        metrics: The metrics of this worker's block.
        quota_store: The quota use of all callers, shared by all workers.
        work_threads: Number of threads if the setting `work_threads` is 0.
        serving: Called once the server accepts calls.
    """

    grpc_address: str
    catalog: Catalog
    metrics: Metrics
    quota_store: QuotaStore
    work_threads: int
    serving: Callable[[], None]


class Server:
    """One server, for one event loop.

    Attributes:
        grpc_address: The address of gRPC with the bound port; "" before `start`.
        http_address: The address of HTTP; "" if it is not served.
    """

    def __init__(
        self, configuration: Configuration, log: logs.Log, inherited: Inherited | None = None
    ) -> None:
        """Build the server; `start` binds its ports. `inherited` is None in a single process.

        Raises:
            ConfigurationError: The files of keys or certificates are invalid.
        """
        settings = configuration.settings
        self.grpc_address = ""
        self.http_address = ""
        self._configuration: Final = configuration
        self._settings: Final = settings
        self._log: Final = log
        self._inherited: Final = inherited
        self._ready_line = ""
        self._limiter: Final = Limiter(settings)
        share = cores.usable_cores() if inherited is None else inherited.work_threads
        self._executor: Final = Executor(settings.work_threads or share, settings.inline_max_bytes)
        self._metrics: Final = Metrics() if inherited is None else inherited.metrics
        logs.count_lost_lines(self._metrics.lost_log_lines.inc)
        self._metrics.show_limits(REFUSED)
        self._metrics.in_flight.set_function(lambda: self._limiter.in_flight)
        self._metrics.queued.set_function(lambda: self._limiter.queued)
        self._metrics.waiting_for_thread.set_function(lambda: self._executor.queued)
        self._metrics.open_streams.set_function(lambda: self._limiter.open_streams)
        base_dir = configuration.base_dir
        self._tls: Final = tls.paths(settings, base_dir)
        self._reloaders: Final = self._make_reloaders()
        self._callers: Final = callers.load(settings, base_dir)
        self._metrics.expect(self._callers.names)
        denials = logs.Denials(log) if settings.log_denials else None
        self._health: Final = Health(
            (health.OVERALL_HEALTH, *_SERVICES),
            self._callers if settings.health_needs_caller else None,
            denials,
        )
        self._background: Final[list[asyncio.Task[None]]] = []
        self._tracer: Final = traces.tracer(os.environ, log)
        quota_store = None if inherited is None else inherited.quota_store
        shared = Shared(
            limiter=self._limiter,
            callers=self._callers,
            quotas=Quotas(settings.quotas, self._callers, quota_store),
            executor=self._executor,
            metrics=self._metrics,
            log=log,
            settings=settings,
            tracer=self._tracer,
            denials=denials,
        )
        self._unary: Final = UnaryHandlers(shared)
        self._streams: Final = StreamHandlers(shared)
        self._transport: Transport | None = None
        self._expiries: tls.Expiries = {}
        self._warnings: Final = logs.Occasional()

    async def start(self) -> None:
        """Bind both ports and answer health. Calls wait until `load` is done.

        Raises:
            ConfigurationError: A port cannot be bound.
        """
        settings, inherited = self._settings, self._inherited
        methods = [*self._unary.methods(), *self._streams.methods(), *self._health.methods()]
        if settings.reflection:
            methods += reflection.methods((*_SERVICES, health.SERVICE_NAME))
        address = settings.grpc_address if inherited is None else inherited.grpc_address
        if address.startswith("unix:") and ports.is_served(address):
            # Binding would silently take the socket from the other server.
            raise ports.unavailable(address, "another process does")
        if settings.http_address != NO_ADDRESS and inherited is None:
            listener = listen(settings.http_address)
            self.http_address = shown_address(listener)
            # If it answers, the event loop runs.
            pages = Pages(self._metrics.registry, lambda: (True, "healthy"), self._is_ready)
            self._background.append(serve(listener, pages))
        self._transport = self._make_transport(methods, address)
        try:
            self._executor.start()
        except RuntimeError as error:
            raise ConfigurationError(
                f"work_threads: {error}; set fewer threads or workers, or raise the limit on "
                "processes"
            ) from None
        self.grpc_address = await self._transport.start(
            address,
            shares_port=inherited is not None,
            unix_socket_mode=settings.unix_socket_mode,
        )
        self._background.extend(asyncio.create_task(each.run()) for each in self._reloaders)

    async def load(self) -> Catalog:
        """Load the encodings, then accept calls and report SERVING.

        Raises:
            ConfigurationError, SelfTestFailed: See `catalog.load` and `Policy`.
        """
        settings, inherited = self._settings, self._inherited
        if inherited is None:
            base_dir = self._configuration.base_dir
            loaded = await asyncio.to_thread(catalog.load, settings, base_dir)
        else:
            loaded = inherited.catalog
        floor = settings.disallowed_special_floor
        policy = Policy(settings.ceiling, loaded, self._callers, floor)
        self._unary.service = Service(settings, loaded, policy)
        self._streams.options = self._unary.service.options
        if not loaded.all_native:
            self._executor.always_on_threads()
        self._metrics.show_encodings(loaded)
        self._ready_line = loaded.readiness
        # Exclude the loaded objects, which stay, from garbage collection: a full collection would
        # visit them during some call, for tenths of a second.
        gc.collect()
        gc.freeze()
        if not self._limiter.draining:
            self._limiter.open()
            self._metrics.ready.set(1)
            self._metrics.workers.set(1)
            self._health.set(is_serving=True)
        return loaded

    async def drain(self) -> None:
        """Report NOT_SERVING, reject new connections and calls, and let running ones finish."""
        self._log.info(
            "draining",
            in_flight=self._limiter.in_flight,
            open_streams=self._limiter.open_streams,
            grace_seconds=self._settings.grace_seconds,
            stream_grace_seconds=self._settings.stream_grace_seconds,
        )
        self._metrics.ready.set(0)
        self._metrics.workers.set(0)
        self._health.set(is_serving=False)
        if self._transport is not None:
            self._transport.drain()
        calls, streams = await self._limiter.drain(
            self._settings.grace_seconds, self._settings.stream_grace_seconds
        )
        if calls or streams:
            self._log.warning(
                "ended calls that were still running after the grace time",
                calls=calls,
                streams=streams,
            )

    def end_grace(self) -> None:
        """End the grace time of `drain` now."""
        self._limiter.end_grace()

    async def stop(self) -> bool:
        """Close everything. May be called after any stage.

        Returns:
            Whether all threads have ended.
        """
        for task in self._background:
            task.cancel()
        self._health.end()
        if self._transport is not None:
            await self._transport.stop()
        if self._tracer is not None:
            await asyncio.to_thread(self._tracer.close)
        return self._executor.close()

    async def run(self, stopping: asyncio.Event) -> bool:
        """Run all stages.

        Args:
            stopping: Set it to drain and stop.
        Returns:
            Whether all threads have ended: a thread cannot be interrupted.
        Raises:
            ConfigurationError, SelfTestFailed: The server cannot start.
        """
        try:
            await self.start()
            self._report_serving(await self.load())
            await stopping.wait()
            await self.drain()
        finally:
            idle = await self.stop()
        self._log.info("stopped")
        return idle

    def _make_transport(self, methods: Sequence[Method], address: str) -> Transport:
        settings = self._settings
        make = choice.choose(settings.transport, address)
        material = None if self._tls is None else self._tls.read()
        if material is not None:
            self._expiries = self._measure_expiries(material)
        limits = Limits.of(settings, self._executor.tried_max_bytes)
        files = playground.files() if playground.is_on(settings, self._callers) else ()
        return make(Setup(methods, limits, self._log_fault, self._log_closed, material, files))

    def _make_reloaders(self) -> list[Reloader]:
        settings, base_dir, found = self._settings, self._configuration.base_dir, []
        make = partial(Reloader, metrics=self._metrics, log=self._log)
        if settings.api_keys_file is not None:
            # Check everything, as at the start: a quota may name a caller that was removed.
            read = partial(callers.load, settings, base_dir)
            files = [base_dir / settings.api_keys_file]
            found.append(make("api_keys", files, read, self._replace_keys))
        if self._tls is not None:
            found.append(make("tls", self._tls.files, self._tls.read, self._replace_tls))
        return found

    def _replace_keys(self, reloaded: Callers) -> None:
        self._callers.replace_keys(reloaded)
        self._metrics.expect(self._callers.names)
        warn_of_no_keys(self._log, self._callers)

    def _replace_tls(self, files: TlsFiles) -> None:
        assert self._transport is not None  # files are watched once it is started
        self._transport.replace_tls(files)
        warn_of_expiry(self._log, self._measure_expiries(files))

    def _measure_expiries(self, files: TlsFiles) -> tls.Expiries:
        expiries = tls.expiries(files)
        for setting, time in expiries.items():
            self._metrics.certificate_expiry.labels(setting).set(time.timestamp())
        return expiries

    def _log_fault(self, error: BaseException) -> None:
        self._log.error("unexpected error", error=logs.frames(error))

    def _log_closed(self, peer: str, fault: str, reason: str) -> None:
        if fault in (LIMIT, HTTP2):
            self._metrics.evicted_connections.inc()
            if fault == LIMIT or self._warnings.is_due(fault):
                self._log.warning("closed a connection", peer=peer, reason=reason)
            return
        refused = fault in REFUSED
        metrics = self._metrics
        counter = metrics.refused_connections if refused else metrics.handshake_failures
        counter.labels(fault).inc()
        if self._warnings.is_due(fault):
            # A probe of the port connects and closes.
            write = self._log.debug if fault == CLOSED else self._log.warning
            event = "refused a connection" if refused else "a TLS handshake failed"
            if fault == DESCRIPTORS:
                event = (
                    "connections wait for a file descriptor: raise the limit (ulimit -n, "
                    "LimitNOFILE)"
                )
            write(event, peer=peer, reason=reason)

    def _is_ready(self) -> tuple[bool, str]:
        if self._limiter.draining:
            return False, "draining"
        return (True, self._ready_line) if self._limiter.is_open else (False, "loading encodings")

    def _report_serving(self, loaded: Catalog) -> None:
        if self._inherited is not None:
            self._inherited.serving()
            return
        served = Served(
            self._configuration, self._callers, loaded, self._expiries, self.grpc_address
        )
        log_start(self._log, served, http_address=self.http_address, workers=1)


def verify(settings: Settings, base_dir: Path) -> tuple[Callers, Catalog, tls.Expiries]:
    """Load everything that the settings name, and check it, before ports are bound.

    Returns:
        The callers, the encodings, and when certificates expire, by setting.
    Raises:
        ConfigurationError, SelfTestFailed: No server can start with these settings.
    """
    known = callers.load(settings, base_dir)
    files = tls.paths(settings, base_dir)
    expiries = {} if files is None else tls.expiries(files.read())
    playground.is_on(settings, known)
    loaded = catalog.load(settings, base_dir)
    Policy(settings.ceiling, loaded, known, settings.disallowed_special_floor)
    flagged_tokens(settings, loaded)
    return known, loaded, expiries
