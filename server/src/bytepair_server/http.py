"""The HTTP port: `/metrics` for Prometheus, `/healthz` and `/readyz` for probes.

`HttpServer` runs on threads of its own, so that it answers whatever gRPC is doing. A
supervisor, which must have no threads, serves the same pages by `serve_on_loop`.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from typing import Any, Final

from prometheus_client import CollectorRegistry, exposition

from bytepair_server.settings_types import split_address
from bytepair_server.sources import ConfigurationError

#: A client that sends or reads slower than this is dropped.
SOCKET_TIMEOUT_SECONDS: Final = 5.0
#: The largest request, line and headers.
MAX_REQUEST_BYTES: Final = 64 * 1024

#: Whether something holds, and one line about it.
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
            encoder, content_type = exposition.choose_encoder(accept)
            return 200, content_type, encoder(self.registry)
        if path in ("/healthz", "/readyz"):
            holds, line = (self.healthy if path == "/healthz" else self.ready)()
            return 200 if holds else 503, "text/plain", f"{line}\n".encode()
        return 404, "text/plain", b"try /metrics, /healthz or /readyz\n"


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
    timeout = SOCKET_TIMEOUT_SECONDS
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
    """The HTTP port on threads. Bound at once; serves from `start` to `stop`."""

    def __init__(self, address: str, pages: Pages) -> None:
        """Bind the port.

        Args:
            address: "host:port".
            pages: What it shows.
        Raises:
            ConfigurationError: The port cannot be bound.
        """
        listener = listen(address)

        class Server(ThreadingHTTPServer):
            address_family = listener.family
            daemon_threads = True
            block_on_close = False

            def handle_error(self, request: object, client_address: object) -> None:
                """Say nothing: a client that went away is no event."""

        handler = type("Handler", (_Handler,), {"pages": pages})
        self.address: Final = shown_address(listener)
        self._server: Final = Server(listener.getsockname(), handler, bind_and_activate=False)
        self._server.socket.close()
        self._server.socket = listener
        self._thread: Final = threading.Thread(
            target=self._server.serve_forever, name="http", daemon=True
        )

    def start(self) -> None:
        """Serve."""
        self._thread.start()

    def stop(self) -> None:
        """Close the port."""
        if self._thread.is_alive():
            self._server.shutdown()
        self._server.server_close()


async def serve_on_loop(
    listener: socket.socket, pages: Pages, refresh: Callable[[], Awaitable[None]]
) -> asyncio.Server:
    """Serve on the event loop, until what is returned is closed.

    Args:
        listener: See `listen`.
        pages: What is shown.
        refresh: Awaited before each page.
    """

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # A client that went away, is slow or sends too much is no event.
        with suppress(
            OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError
        ):
            async with asyncio.timeout(SOCKET_TIMEOUT_SECONDS):
                request = await reader.readuntil(b"\r\n\r\n")
            await refresh()
            async with asyncio.timeout(SOCKET_TIMEOUT_SECONDS):
                writer.write(_response(request, pages))
                await writer.drain()
        writer.close()

    return await asyncio.start_server(answer, sock=listener, limit=MAX_REQUEST_BYTES)


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
