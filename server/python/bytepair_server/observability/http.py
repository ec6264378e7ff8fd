"""The HTTP port: `/metrics` for Prometheus, `/healthz` and `/readyz` for probes.

`HttpServer` has a thread and an event loop of its own, so that it answers whatever gRPC is
doing. A supervisor, which must have no threads, serves the same pages by `serve_on_loop`.
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
from typing import Any, Final

from prometheus_client import CollectorRegistry, exposition

from bytepair_server.config.loader import ConfigurationError
from bytepair_server.config.types import split_address

#: A client is dropped that takes longer than this to send its whole request, or to read the
#: whole page.
SOCKET_TIMEOUT_SECONDS: Final = 5.0
#: Connections that are open at once; a further one replaces the oldest.
MAX_CONNECTIONS: Final = 64
#: The wait before the next connection, where one could not be taken for want of descriptors.
ACCEPT_AGAIN_SECONDS: Final = 0.1
#: The largest request, line and headers.
MAX_REQUEST_BYTES: Final = 64 * 1024

#: Whether a check passes, and one line about it.
Probe = Callable[[], tuple[bool, str]]


@dataclass(frozen=True)
class Pages:
    """What the HTTP port shows.

    Attributes:
        registry: What `/metrics` shows.
        healthy: What `/healthz` answers: 200 or 503.
        ready: What `/readyz` answers: 200 or 503.
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
    """What writes `/metrics` in the format that a header asks for, and its content type."""
    try:
        return exposition.choose_encoder(accept)
    except Exception:
        # It compares versions as they come, and fails on those that are not numbers.
        return exposition.choose_encoder("")


def listen(address: str) -> socket.socket:
    """A socket that listens at the setting `http_address`.

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
    """Where a socket listens, as "host:port"."""
    host, port = listener.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class _Handler(BaseHTTPRequestHandler):
    server_version = "bytepair"
    sys_version = ""
    pages: Pages

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        status, content_type, body = self.pages.get(path, self.headers.get("Accept", ""))
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing: probes and scrapes come every few seconds."""


class HttpServer:
    """The HTTP port on a thread. Bound at once; serves from `start` to `stop`."""

    def __init__(self, address: str, pages: Pages) -> None:
        """Bind the port.

        Args:
            address: "host:port".
            pages: What it shows.
        Raises:
            ConfigurationError: The port cannot be bound.
        """
        self._listener: Final = listen(address)
        self._pages: Final = pages
        self.address: Final = shown_address(self._listener)
        self._loop: Final = asyncio.new_event_loop()
        # As many as there may be connections: a probe of a loop that is stuck holds one for long.
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
            # On a thread, because a probe may block for as long as gRPC's event loop is stuck.
            return await asyncio.to_thread(_response, request, self._pages)

        serving = asyncio.create_task(_serve(self._listener, respond))
        await self._stopping.wait()
        serving.cancel()


def serve_on_loop(
    listener: socket.socket, pages: Pages, refresh: Callable[[], Awaitable[None]]
) -> asyncio.Task[None]:
    """Serve on the event loop that runs.

    Args:
        listener: See `listen`.
        pages: What is shown.
        refresh: Awaited before each page.
    Returns:
        What serves until it is cancelled, and then closes the port.
    """

    async def respond(request: bytes) -> bytes:
        await refresh()
        return _response(request, pages)

    return asyncio.create_task(_serve(listener, respond))


async def _serve(listener: socket.socket, respond: Callable[[bytes], Awaitable[bytes]]) -> None:
    connections: dict[asyncio.Task[None], None] = {}  # the oldest first
    listener.setblocking(False)
    with listener:
        while True:
            try:
                client, _ = await asyncio.get_running_loop().sock_accept(listener)
            except OSError:
                # asyncio's own server would log a thousand lines a second.
                await asyncio.sleep(ACCEPT_AGAIN_SECONDS)
                continue
            # Close the oldest connection. An honest client sends its request at once and was
            # answered long ago, so slow clients displace each other and never a new scraper.
            if len(connections) >= MAX_CONNECTIONS:
                oldest = next(iter(connections))
                del connections[oldest]
                oldest.cancel()
            task = asyncio.create_task(_answer(client, respond))
            connections[task] = None
            task.add_done_callback(lambda ended: connections.pop(ended, None))
            # Let it begin: what is cancelled before that never closes its socket.
            await asyncio.sleep(0)


async def _answer(client: socket.socket, respond: Callable[[bytes], Awaitable[bytes]]) -> None:
    reader, writer = await asyncio.open_connection(sock=client, limit=MAX_REQUEST_BYTES)
    try:
        # A client that went away, is slow or sends too much is no event.
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
        # Closing alone would wait, for ever, for a client that does not read its page.
        writer.transport.abort()


def _response(request: bytes, pages: Pages) -> bytes:
    """What the standard library's handler answers to a whole request."""
    answer = BytesIO()

    class OnBytes(_Handler):
        def setup(self) -> None:
            self.rfile: Any = BytesIO(request)
            self.wfile: Any = answer

        def finish(self) -> None:
            """Leave the answer open."""

    OnBytes.pages = pages
    OnBytes(None, ("", 0), None)  # type: ignore[arg-type]
    return answer.getvalue()
