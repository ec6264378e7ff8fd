"""The HTTP port: `/metrics` for Prometheus, `/healthz` and `/readyz` for probes.

`HttpServer` has its own thread and event loop, so that it answers while gRPC is busy. A
supervisor, which must not start threads, serves the same pages by `serve_on_loop`.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from io import BytesIO
from typing import Final

from prometheus_client import CollectorRegistry, exposition

from bytepair_server.config.loader import ConfigurationError
from bytepair_server.config.types import split_address

#: Time for a client to send its request, and again to read the page.
SOCKET_TIMEOUT_SECONDS: Final = 5.0
#: Maximum connections at once; a further one replaces the oldest.
MAX_CONNECTIONS: Final = 64
#: The wait after a failed accept: the process is out of descriptors.
ACCEPT_AGAIN_SECONDS: Final = 0.1
#: Maximum bytes of a request line and headers.
MAX_REQUEST_BYTES: Final = 64 * 1024

#: Whether a check passes, and one line about it.
Probe = Callable[[], tuple[bool, str]]


@dataclass(frozen=True)
class Pages:
    """The pages of the HTTP port.

    Attributes:
        registry: The metrics of `/metrics`.
        healthy: The check behind `/healthz`: 200 or 503.
        ready: The check behind `/readyz`: 200 or 503.
    """

    registry: CollectorRegistry
    healthy: Probe
    ready: Probe

    def get(self, path: str, accept: str) -> tuple[int, str, bytes]:
        """Status, content type and body of a page."""
        if path == "/metrics":
            encoder, content_type = _format(accept)
            return 200, content_type, encoder(self.registry)
        if path in ("/healthz", "/readyz"):
            holds, line = (self.healthy if path == "/healthz" else self.ready)()
            return 200 if holds else 503, "text/plain", f"{line}\n".encode()
        return 404, "text/plain", b"try /metrics, /healthz or /readyz\n"


def _format(accept: str) -> tuple[Callable[[CollectorRegistry], bytes], str]:
    """The encoder and the content type of `/metrics` for an Accept header."""
    try:
        return exposition.choose_encoder(accept)
    except Exception:
        # It fails on a version that is not a number.
        return exposition.choose_encoder("")


def listen(address: str) -> socket.socket:
    """Listen at the setting `http_address`.

    Raises:
        ConfigurationError: The port cannot be bound.
    """
    host, port = split_address(address)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise ConfigurationError(
            f"http_address {address}: cannot listen: {error.strerror}; set another address, or none"
        ) from None


def shown_address(listener: socket.socket) -> str:
    """The address of a listening socket, as "host:port"."""
    host, port = listener.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class _Handler(BaseHTTPRequestHandler):
    """The standard library's handler, from the bytes of a request to those of its answer."""

    server_version = "bytepair"
    sys_version = ""

    def __init__(self, request: bytes, pages: Pages) -> None:
        self.rfile, self.answer = BytesIO(request), BytesIO()
        self.wfile = self.answer
        self._pages: Final = pages
        self.handle()

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        status, content_type, body = self._pages.get(path, self.headers.get("Accept", ""))
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing: probes and scrapes arrive every few seconds."""


def _answered(request: bytes, pages: Pages) -> bytes:
    return _Handler(request, pages).answer.getvalue()


class HttpServer:
    """The HTTP port on a thread. Bound at once; serves from `start` to `stop`."""

    def __init__(self, address: str, pages: Pages) -> None:
        """Bind the port. Raises like `listen`."""
        self._listener: Final = listen(address)
        self._pages: Final = pages
        self.address: Final = shown_address(self._listener)
        self._loop: Final = asyncio.new_event_loop()
        # One for each connection: a probe of a stuck event loop blocks its thread.
        self._loop.set_default_executor(ThreadPoolExecutor(MAX_CONNECTIONS, "http"))
        self._stopping: Final = asyncio.Event()
        self._thread: Final = threading.Thread(target=self._run, name="http", daemon=True)

    def start(self) -> None:
        """Serve."""
        self._thread.start()

    def stop(self) -> None:
        """Close the port."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stopping.set)
            self._thread.join()
        self._loop.close()
        self._listener.close()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        async def respond(request: bytes) -> bytes:
            # On a thread, because a probe blocks while gRPC's event loop is stuck.
            return await asyncio.to_thread(_answered, request, self._pages)

        serving = asyncio.create_task(_serve(self._listener, respond))
        await self._stopping.wait()
        serving.cancel()


def serve_on_loop(
    listener: socket.socket, pages: Pages, refresh: Callable[[], Awaitable[None]]
) -> asyncio.Task[None]:
    """Serve on the running event loop, and await `refresh` before each page. The returned task
    closes the port when it is cancelled."""

    async def respond(request: bytes) -> bytes:
        await refresh()
        return _answered(request, pages)

    return asyncio.create_task(_serve(listener, respond))


async def _serve(listener: socket.socket, respond: Callable[[bytes], Awaitable[bytes]]) -> None:
    connections: dict[asyncio.Task[None], None] = {}  # the oldest first
    listener.setblocking(False)
    with listener:
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
            task = asyncio.create_task(_answer(client, respond))
            connections[task] = None
            task.add_done_callback(lambda ended: connections.pop(ended, None))
            # Let the task start: one that is cancelled before would leave its socket open.
            await asyncio.sleep(0)


async def _answer(client: socket.socket, respond: Callable[[bytes], Awaitable[bytes]]) -> None:
    reader, writer = await asyncio.open_connection(sock=client, limit=MAX_REQUEST_BYTES)
    try:
        # A client that leaves, is slow or sends too much is not an error.
        with suppress(
            OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError
        ):
            async with asyncio.timeout(SOCKET_TIMEOUT_SECONDS):
                request = await reader.readuntil(b"\r\n\r\n")
            response = await respond(request)
            async with asyncio.timeout(SOCKET_TIMEOUT_SECONDS):
                writer.write(response)
                writer.close()
                await writer.wait_closed()
    finally:
        # A plain close waits for a client that never reads its page.
        writer.transport.abort()
