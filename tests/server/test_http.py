"""The HTTP port against hostile clients: slow ones, many, and odd headers."""

from __future__ import annotations

import asyncio
import resource
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from http.client import HTTPConnection, HTTPMessage
from pathlib import Path
from time import monotonic, sleep

import pytest
from bytepair_server.observability.http import (
    MAX_CONNECTIONS,
    MAX_REQUEST_BYTES,
    Pages,
    listen,
    serve,
)
from prometheus_client import CollectorRegistry
from support.serving import START_SECONDS, RunningServer

#: With several workers the supervisor serves the HTTP port.
WORKERS = ["1", "2"]
#: Descriptors and threads that a server may open meanwhile for other reasons.
OTHERS = 40


@pytest.fixture(scope="module", params=WORKERS)
def running(request: pytest.FixtureRequest) -> Iterator[RunningServer]:
    with RunningServer("--builtin-encodings", "cl100k_base", "--workers", request.param) as one:
        yield one


def address_of(server: RunningServer) -> tuple[str, int]:
    host, port = server.http.removeprefix("http://").split(":")
    return host, int(port)


@contextmanager
def slow_clients(server: RunningServer, number: int) -> Iterator[list[socket.socket]]:
    """Run clients that send an endless header, one byte at a time, during the block."""
    links: list[socket.socket] = []
    done = threading.Event()

    def dribble() -> None:
        while not done.wait(0.2):
            for link in links:
                with suppress(OSError):
                    link.send(b"x")

    with ExitStack() as stack:
        for _ in range(number):
            link = stack.enter_context(socket.create_connection(address_of(server), START_SECONDS))
            link.sendall(b"GET /healthz HTTP/1.1\r\nx: ")
            links.append(link)
        thread = threading.Thread(target=dribble)
        thread.start()
        try:
            yield links
        finally:
            done.set()
            thread.join()


def is_hung_up(link: socket.socket) -> bool:
    """Wait until the server closes a connection without an answer."""
    try:
        return link.recv(1) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


def count(server: RunningServer, what: str) -> int:
    """Count the entries of a folder of /proc of the process that serves the port."""
    return len(list(Path(f"/proc/{server.pid}/{what}").iterdir()))


@pytest.mark.slow
def test_an_endless_http_request_is_closed(running: RunningServer) -> None:
    """Each byte arrives in time, so a timeout per read would never expire."""
    with slow_clients(running, MAX_CONNECTIONS // 4) as links:
        assert all(is_hung_up(link) for link in links)
    assert running.get("/healthz") == (200, "healthy\n")


def test_a_large_http_request_is_not_answered(running: RunningServer) -> None:
    large = b"x: ".ljust(MAX_REQUEST_BYTES // 2, b"x") + b"\r\n"
    with socket.create_connection(address_of(running), START_SECONDS) as link:
        link.sendall(b"GET /healthz HTTP/1.1\r\n" + 2 * large)
        with suppress(OSError):
            link.sendall(b"\r\n")
        assert is_hung_up(link)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counted in Linux's /proc")
def test_slow_clients_are_bounded_and_do_not_delay_others(running: RunningServer) -> None:
    running.get("/metrics")
    before = count(running, "fd"), count(running, "task")
    with slow_clients(running, 4 * MAX_CONNECTIONS):
        # Connections are accepted in order, so this answer shows that all of them were.
        assert running.get("/healthz") == (200, "healthy\n")
        assert count(running, "fd") <= before[0] + MAX_CONNECTIONS + OTHERS
        assert count(running, "task") <= before[1] + OTHERS
        assert running.metric("bytepair_ready") == 1
    assert running.get("/readyz") == (200, "ready\n")


@pytest.mark.slow
def test_an_http_client_that_does_not_read_is_disconnected() -> None:
    """The answers exceed the kernel's buffers."""

    def large() -> tuple[bool, str]:
        return True, "x" * 50_000_000

    def call(address: tuple[str, int]) -> None:
        with socket.create_connection(address, START_SECONDS) as link:
            link.sendall(b"GET /healthz HTTP/1.1\r\n\r\n")
            until = monotonic() + START_SECONDS
            with suppress(BrokenPipeError, ConnectionResetError):
                while link.send(b"x"):
                    assert monotonic() < until
                    sleep(0.05)

    async def run() -> None:
        listener = listen("127.0.0.1:0")
        serving = serve(listener, Pages(CollectorRegistry(), large, large))
        await asyncio.to_thread(call, listener.getsockname())
        serving.cancel()

    asyncio.run(run())


def test_readyz_does_not_wait_for_a_refresh() -> None:
    async def run() -> None:
        def check() -> tuple[bool, str]:
            return True, "checked"

        async def get(path: str) -> bytes:
            reader, writer = await asyncio.open_connection(*listener.getsockname())
            with closing(writer):
                writer.write(f"GET {path} HTTP/1.0\r\n\r\n".encode())
                return await reader.read()

        listener, refreshed = listen("127.0.0.1:0"), asyncio.Event()
        pages = Pages(CollectorRegistry(), check, check, refreshed.wait)
        serving = serve(listener, pages)
        waiting = asyncio.create_task(get("/healthz"))
        async with asyncio.timeout(START_SECONDS):
            assert (await get("/readyz?verbose")).endswith(b"checked\n")
        assert not waiting.done()
        refreshed.set()
        assert (await waiting).endswith(b"checked\n")
        serving.cancel()

    asyncio.run(run())


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits of another process are Linux's")
def test_without_descriptors_http_clients_wait_and_nothing_is_logged(
    running: RunningServer,
) -> None:
    """Without descriptors, asyncio's own server logs without limit."""
    running.get("/metrics")
    before = resource.prlimit(running.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(running.pid, resource.RLIMIT_NOFILE, (count(running, "fd"), before[1]))
    try:
        with socket.create_connection(address_of(running), START_SECONDS) as link:
            link.sendall(b"GET /healthz HTTP/1.1\r\n\r\n")
            sleep(1)
            resource.prlimit(running.pid, resource.RLIMIT_NOFILE, before)
            assert link.recv(len(b"HTTP/1.0 200")) == b"HTTP/1.0 200"
    finally:
        resource.prlimit(running.pid, resource.RLIMIT_NOFILE, before)
    assert [line for line in running.log if line["level"] == "error"] == []


def answer_of(
    server: RunningServer, method: str, path: str, **headers: str
) -> tuple[int, HTTPMessage, bytes]:
    with closing(HTTPConnection(*address_of(server), timeout=START_SECONDS)) as client:
        client.request(method, path, headers=headers)
        answer = client.getresponse()
        return answer.status, answer.headers, answer.read()


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/none"])
def test_head_is_answered_as_get_without_a_body(running: RunningServer, path: str) -> None:
    (status, headers, body), head = (answer_of(running, way, path) for way in ("GET", "HEAD"))
    assert (head[0], head[1]["Content-Length"], head[2]) == (status, str(len(body)), b"")
    assert head[1]["Content-Type"] == headers["Content-Type"]


def test_other_methods_are_answered_in_plain_text(running: RunningServer) -> None:
    status, headers, body = answer_of(running, "POST", "/metrics")
    assert (status, headers["Content-Type"]) == (501, "text/plain")
    assert body.endswith(b": call RPCs at grpc_address\n")
    assert answer_of(running, "PUT", "/metrics")[2] == b"Unsupported method ('PUT')\n"


def test_metrics_are_in_the_text_format_of_prometheus(running: RunningServer) -> None:
    wanted = "application/openmetrics-text;version=1.0.0"
    status, headers, body = answer_of(running, "GET", "/metrics", Accept=wanted)
    assert (status, headers["Content-Type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert b"bytepair_ready 1.0\n" in body
