"""The HTTP port: `/metrics` for Prometheus, `/healthz` and `/readyz` for probes.

It runs on threads of its own, so that it answers whatever gRPC is doing.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

from prometheus_client import CollectorRegistry, exposition

from bytepair_server.settings_types import split_address

#: A client that sends or reads slower than this is dropped.
SOCKET_TIMEOUT_SECONDS: Final = 5.0

#: Whether something holds, and one line about it.
Probe = Callable[[], tuple[bool, str]]


class HttpServer:
    """The HTTP port. Bound at once; serves from `start` to `stop`."""

    def __init__(
        self, address: str, registry: CollectorRegistry, *, healthy: Probe, ready: Probe
    ) -> None:
        """Bind the port.

        Args:
            address: "host:port".
            registry: What `/metrics` shows.
            healthy: What `/healthz` answers: 200 or 503.
            ready: What `/readyz` answers: 200 or 503.
        Raises:
            OSError: The port cannot be bound.
        """
        host, port = split_address(address)

        class Handler(BaseHTTPRequestHandler):
            timeout = SOCKET_TIMEOUT_SECONDS
            server_version = "bytepair"
            sys_version = ""

            def do_GET(self) -> None:
                path = self.path.partition("?")[0]
                if path == "/metrics":
                    accept = self.headers.get("Accept", "")
                    encoder, content_type = exposition.choose_encoder(accept)
                    self._send(200, content_type, encoder(registry))
                elif path == "/healthz":
                    self._send_probe(healthy)
                elif path == "/readyz":
                    self._send_probe(ready)
                else:
                    self._send(404, "text/plain", b"try /metrics, /healthz or /readyz\n")

            def _send_probe(self, probe: Probe) -> None:
                holds, line = probe()
                self._send(200 if holds else 503, "text/plain", f"{line}\n".encode())

            def _send(self, status: int, content_type: str, body: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Type", content_type)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Log nothing: probes and scrapes come every few seconds."""

        class Server(ThreadingHTTPServer):
            address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
            daemon_threads = True
            block_on_close = False

            def handle_error(self, request: object, client_address: object) -> None:
                """Say nothing: a client that went away is no event."""

        self._server: Final = Server((host, port), Handler)
        self._thread: Final = threading.Thread(
            target=self._server.serve_forever, name="http", daemon=True
        )
        shown = f"[{host}]" if ":" in host else host
        self.address: Final = f"{shown}:{self._server.server_address[1]}"

    def start(self) -> None:
        """Serve."""
        self._thread.start()

    def stop(self) -> None:
        """Close the port."""
        if self._thread.is_alive():
            self._server.shutdown()
        self._server.server_close()
