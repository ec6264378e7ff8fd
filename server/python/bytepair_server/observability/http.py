"""The HTTP port: `/metrics` for Prometheus, `/healthz` and `/readyz` for probes.

It is served on the event loop of the supervisor, or of a single process.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from io import BytesIO
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest

from bytepair_server.config.loader import ConfigurationError
from bytepair_server.config.types import split_address
from bytepair_server.system_limits import OUT_OF_DESCRIPTORS

#: Time for a client to send its request, and again to read the page.
SOCKET_TIMEOUT_SECONDS: Final = 5.0
#: Maximum connections at once; a further one replaces the oldest.
MAX_CONNECTIONS: Final = 64
#: The wait after a failed accept: the process is out of descriptors.
ACCEPT_AGAIN_SECONDS: Final = 0.1
#: Maximum bytes of a request line and headers.
MAX_REQUEST_BYTES: Final = 64 * 1024
#: Prometheus' text format, which every scraper reads.
METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

#: Whether a check passes, and one line about it.
Probe = Callable[[], tuple[bool, str]]


@dataclass(frozen=True)
class Pages:
    """The pages of the HTTP port.

    Attributes:
        registry: The metrics of `/metrics`.
        healthy: The check behind `/healthz`: 200 or 503.
        ready: The check behind `/readyz`: 200 or 503.
        refresh: Awaited before each page, apart from `/readyz`; None for nothing.
    """

    registry: CollectorRegistry
    healthy: Probe
    ready: Probe
    refresh: Callable[[], Awaitable[object]] | None = None

    def get(self, path: str) -> tuple[int, str, bytes]:
        """Status, content type and body of a page."""
        if path == "/metrics":
            return 200, METRICS_TYPE, generate_latest(self.registry)
        if path in ("/healthz", "/readyz"):
            holds, line = (self.healthy if path == "/healthz" else self.ready)()
            return 200 if holds else 503, "text/plain", f"{line}\n".encode()
        return 404, "text/plain", b"try /metrics, /healthz or /readyz\n"


def listen(address: str) -> socket.socket:
    """Listen at the setting `http_address`.

    Raises:
        ConfigurationError: The port cannot be bound.
    """
    host, port = split_address(address)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except (OSError, TypeError) as error:  # TypeError: the host cannot be encoded
        if getattr(error, "errno", None) in OUT_OF_DESCRIPTORS:
            raise  # another address would not help
        # The standard library adds the address to the reason.
        reason = str(getattr(error, "strerror", None) or error).partition(" (while ")[0]
        raise ConfigurationError(
            f"http_address {address}: cannot listen: {reason}; set another address, or none, by "
            "--http-address"
        ) from None


def shown_address(listener: socket.socket) -> str:
    """The address of a listening socket, as "host:port"."""
    host, port = listener.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class _Handler(BaseHTTPRequestHandler):
    """The standard library's handler, from the bytes of a request to those of its answer."""

    server_version = "bytepair"
    sys_version = ""
    error_content_type = "text/plain"
    error_message_format = "%(message)s\n"

    def __init__(self, request: bytes, pages: Pages) -> None:
        self.rfile, self.answer = BytesIO(request), BytesIO()
        self.wfile = self.answer
        self._pages: Final = pages
        self.handle()

    def do_GET(self) -> None:
        status, content_type, body = self._pages.get(self.path.partition("?")[0])
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(b"" if self.command == "HEAD" else body)

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:
        self.send_error(
            501, "This port has only /metrics, /healthz, /readyz: call RPCs at grpc_address"
        )

    def log_message(self, *_: object) -> None:
        """Log nothing: probes and scrapes arrive every few seconds."""


def serve(listener: socket.socket, pages: Pages) -> asyncio.Task[None]:
    """Serve on the running event loop. The returned task closes the port when it is cancelled."""
    listener.setblocking(False)
    task = asyncio.create_task(_serve(listener, pages))
    task.add_done_callback(lambda _: listener.close())
    return task


async def _serve(listener: socket.socket, pages: Pages) -> None:
    connections: dict[asyncio.Task[None], None] = {}  # the oldest first
    try:
        while True:
            try:
                client, _ = await asyncio.get_running_loop().sock_accept(listener)
            except OSError:
                # asyncio's server would log a thousand lines a second.
                await asyncio.sleep(ACCEPT_AGAIN_SECONDS)
                continue
            # Close the oldest connection: slow clients displace each other. An honest client was
            # answered at once.
            if len(connections) >= MAX_CONNECTIONS:
                oldest = next(iter(connections))
                del connections[oldest]
                oldest.cancel()
            task = asyncio.create_task(_answer(client, pages))
            connections[task] = None
            task.add_done_callback(lambda ended: connections.pop(ended, None))
            # Let the task start: one that is cancelled before would leave its socket open.
            await asyncio.sleep(0)
    finally:
        for task in connections:
            task.cancel()


async def _answer(client: socket.socket, pages: Pages) -> None:
    reader, writer = await asyncio.open_connection(sock=client, limit=MAX_REQUEST_BYTES)
    try:
        # A client that leaves, is slow or sends too much is not an error.
        with suppress(
            OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError
        ):
            async with asyncio.timeout(SOCKET_TIMEOUT_SECONDS):
                request = await reader.readuntil(b"\r\n\r\n")
            # A prober of `/readyz` may wait for a second only, which is less than a refresh takes
            # if a worker does not answer. The supervisor refreshes regularly.
            is_probe = b" /readyz" in request.partition(b"\r\n")[0]
            if pages.refresh is not None and not is_probe:
                await pages.refresh()
            response = _Handler(request, pages).answer.getvalue()
            async with asyncio.timeout(SOCKET_TIMEOUT_SECONDS):
                writer.write(response)
                writer.close()
                await writer.wait_closed()
    finally:
        # A plain close waits for a client that never reads its page.
        writer.transport.abort()
