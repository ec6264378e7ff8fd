"""Clients that break the protocol, one after the other: others are answered, and nothing leaks."""

from __future__ import annotations

import gzip
import socket
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from time import monotonic, sleep

import pytest
from conftest import Serve
from support import hostile, http2
from support.bystander import bystander
from support.serving import START_SECONDS, RunningServer

pytestmark = pytest.mark.slow  # it starts servers for few tests

SECONDS = 0.7
CALLS = 30
GROWTH_BYTES = 128 << 20
#: More calls than any attack has in flight: rejection of too many calls is tested elsewhere.
IN_FLIGHT = 4096


@pytest.fixture(scope="module")
def attacked() -> Iterator[RunningServer]:
    options = ["--builtin-encodings", "cl100k_base", "--log-level", "info"]
    with RunningServer(*options, "--max-in-flight", str(IN_FLIGHT)) as running:
        yield running


@pytest.fixture(autouse=True)
def _from_an_address_of_its_own() -> None:
    """Use a new address, because some attackers are rejected afterwards."""
    http2.come_from(1000)


def descriptors(server: RunningServer) -> int:
    return len(list(Path(f"/proc/{server.pid}/fd").iterdir()))


def looked(server: RunningServer) -> Iterator[int]:
    """Read the number of descriptors repeatedly: some are closed only for a moment."""
    for _ in range(20):
        yield descriptors(server)
        sleep(0.005)


def resident(server: RunningServer) -> int:
    status = Path(f"/proc/{server.pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) * 1024


@pytest.mark.parametrize("name", hostile.ATTACKS)
def test_other_clients_are_answered_and_nothing_leaks(attacked: RunningServer, name: str) -> None:
    with bystander(attacked.target) as count:
        count()
        attacked.get("/healthz")  # the event loop keeps one descriptor from its first connection
        files, memory = max(looked(attacked)), resident(attacked)
        sent: list[int] = []
        hostile.prepare()
        http2.come_from(1 + list(hostile.ATTACKS).index(name))
        attack = hostile.ATTACKS[name]

        def begin() -> None:
            sent.append(attack(attacked.target, hostile.going_for(SECONDS)))

        thread = Thread(target=begin)
        thread.start()
        for _ in range(CALLS):
            count()
        thread.join(60)
        assert sent
        assert sent[0] > 0
        count()
        until = monotonic() + START_SECONDS
        while (held := attacked.metric("bytepair_in_flight")) and monotonic() < until:
            sleep(0.01)
        assert held == 0
        # Read separately, because each scrape of the metrics is a connection.
        while monotonic() < until and (
            descriptors(attacked) > files or resident(attacked) >= memory + GROWTH_BYTES
        ):
            sleep(0.01)
        assert descriptors(attacked) <= files
        assert resident(attacked) < memory + GROWTH_BYTES
    # Except for gRPC's warnings, no attack is logged as an unexpected error.
    assert not [line for line in attacked.log if line["event"] == "unexpected error"]


def test_a_connection_that_breaks_http2_is_counted_and_logged_with_the_reason(serve: Serve) -> None:
    server = serve("--transport", "native")
    internal_error = (0).to_bytes(4, "big") + (2).to_bytes(4, "big")
    goaway = http2.frame(http2.GOAWAY, 0, 0, internal_error)
    for last in (b"", http2.frame(http2.PING, 0, 0, bytes(8))[:-1], goaway):
        with http2.connection(server.target) as ordinary:
            ordinary.sendall(last)
            ordinary.shutdown(socket.SHUT_WR)
            list(http2.frames(ordinary))
    peers = []
    for _ in range(3):
        with http2.connection(server.target) as link:
            peers.append(http2.peer_of(link))
            link.sendall(http2.frame(http2.DATA, 0, 0))
            list(http2.frames(link))
    server.wait_for_metric("bytepair_evicted_connections_total", len(peers))
    # Further ones are only counted, within the same minute.
    (line,) = (line for line in server.log if line["event"] == "closed a connection")
    assert line["peer"] == peers[0]
    assert line["reason"].startswith("HTTP/2 error PROTOCOL_ERROR: ")


def status_of(server: RunningServer, body: bytes, **said: str) -> str:
    """Return the status of a call with this message; "" if its connection or stream is closed."""
    headers = http2.headers("Count", **said)  # type: ignore[arg-type]
    with http2.connection(server.target) as link:
        link.sendall(
            http2.frame(http2.HEADERS, http2.END_HEADERS, 1, headers)
            + http2.frame(http2.DATA, http2.END_STREAM, 1, body)
        )
        return http2.status(link)


@pytest.mark.parametrize("rpc", ["Count", "CountStream"])
def test_a_message_with_an_excessive_length_is_rejected_before_it_arrives(
    attacked: RunningServer, rpc: str
) -> None:
    body = http2.message(http2.count(), length=0xFFFFFFFF)
    with http2.connection(attacked.target) as link:
        link.sendall(
            http2.frame(http2.HEADERS, http2.END_HEADERS, 1, http2.headers(rpc))
            + http2.frame(http2.DATA, 0, 1, body)
        )
        assert http2.status(link) == "3"  # INVALID_ARGUMENT, with INPUT_TOO_LARGE


def test_no_more_of_a_message_is_decompressed_than_the_limit(attacked: RunningServer) -> None:
    """Otherwise its end, which is missing, would be the error."""
    bomb = http2.message(gzip.compress(bytes(1 << 23))[:-8], compressed=True)
    assert status_of(attacked, bomb, encoding="gzip") == "3"  # INVALID_ARGUMENT


def test_a_malformed_request_is_an_invalid_argument(attacked: RunningServer) -> None:
    for body in (b"\xff" * 64, b"\x0a\x0bcl100k_base\x12\x03a\xff\xfe"):
        assert status_of(attacked, http2.message(body)) == "3"


@pytest.mark.parametrize(
    "service",
    ["/\xff/", http2.SERVICE + "\xff", "\xff", "//\n\0/", "/" * 100, "/" + http2.SERVICE],
)
def test_a_path_of_arbitrary_bytes_is_unimplemented(attacked: RunningServer, service: str) -> None:
    """Or the stream is closed, if it is not a path."""
    body = http2.message(http2.count())
    for _ in range(2):
        assert status_of(attacked, body, service=service) in ("12", "")  # UNIMPLEMENTED
    with bystander(attacked.target) as count:
        count()


def test_headers_that_are_not_text_are_not_logged(attacked: RunningServer) -> None:
    """A call can have hundreds by references to one. Logging them would be its largest cost."""
    again = b"\xbe" * 300
    named = http2.headers("Count") + b"\x40\x01x\x01\xff" + again
    before = len(attacked.log)
    with http2.connection(attacked.target) as link:
        link.sendall(
            http2.frame(http2.HEADERS, http2.END_HEADERS, 1, named)
            + http2.frame(http2.DATA, http2.END_STREAM, 1, http2.message(http2.count()))
        )
        assert http2.status(link) == "0"
    # Connections of earlier attacks may be closed late.
    assert {line["event"] for line in attacked.log[before:]} <= {"closed a connection"}
