"""Failed TLS handshakes are counted and logged with their reason."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from support import http2
from support.pki import Authority, Pair
from support.serving import START_SECONDS, RunningServer, write_config

pytestmark = pytest.mark.slow  # it starts servers for few tests

METRIC = "bytepair_tls_handshake_failures_total"
#: What a client does with a connection until the server closes it.
Client = Callable[[socket.socket], None]


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture(scope="module")
def folder(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tls")
    authority.server().write(folder)
    (folder / "ca.pem").write_bytes(authority.pem)
    return folder


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[RunningServer]:
    config = """
        tls_cert_file = "server.pem"
        tls_key_file = "key.pem"
        tls_client_ca_file = "ca.pem"
        builtin_encodings = ["cl100k_base"]
        [callers.a]
        certificates = ["dns:a.example"]
    """
    path = write_config(folder, config)
    with RunningServer("--transport", "native", "--config", path) as running:
        yield running


def say(text: bytes) -> Client:
    return lambda link: link.sendall(text)


def client_hello() -> bytes:
    sent = ssl.MemoryBIO()
    handshake = ssl.create_default_context().wrap_bio(
        ssl.MemoryBIO(), sent, server_hostname="localhost"
    )
    with suppress(ssl.SSLWantReadError):
        handshake.do_handshake()
    return sent.read()


def shake_hands(folder: Path, trusted: Authority, shown: Pair | None = None) -> Client:
    """Return a client of TLS that trusts an authority and has a certificate, or none."""
    context = ssl.create_default_context(cadata=trusted.pem.decode())
    if shown is not None:
        shown.write(folder, "client.pem", "client-key.pem")
        context.load_cert_chain(folder / "client.pem", folder / "client-key.pem")

    def client(link: socket.socket) -> None:
        with context.wrap_socket(link.dup(), server_hostname="localhost") as encrypted:
            encrypted.recv(1)

    return client


def fail(server: RunningServer, client: Client) -> str:
    """Connect, wait until the server closes the connection, and return the client's address."""
    with http2.connection(server.target, hello=b"", seconds=START_SECONDS) as link:
        host, port = link.getsockname()
        with suppress(ssl.SSLError, ConnectionError):
            client(link)
        with suppress(ConnectionError):
            link.shutdown(socket.SHUT_WR)
            while link.recv(1 << 12):
                pass
    return f"ipv4:{host}:{port}"


def test_a_failed_handshake_is_counted_and_logged_with_its_reason(
    server: RunningServer, authority: Authority, folder: Path
) -> None:
    other = Authority()
    clients = {
        "not_tls": (say(http2.PREFACE), "the client does not speak TLS"),
        "no_client_certificate": (
            shake_hands(folder, authority),
            "the client has no certificate",
        ),
        "client_certificate": (
            shake_hands(folder, authority, other.client(dns=["a.example"])),
            "the client's certificate is of no authority in tls_client_ca_file",
        ),
        "server_certificate": (
            shake_hands(folder, other),
            "the client does not accept the server's certificate: UnknownCA",
        ),
        "closed": (say(b""), "the client closed the connection"),
        # gRPC's C core does so if it does not accept the server's certificate.
        "aborted": (say(client_hello()), "it may not accept the server's certificate"),
        "protocol": (say(bytes.fromhex("15 0303 0002 02 28")), "alert: HandshakeFailure"),
    }
    for reason, (client, words) in clients.items():
        address = fail(server, client)
        line = server.wait_for_log("a TLS handshake failed", peer=address)
        assert words in line["reason"]
        assert line["level"] == ("debug" if reason == "closed" else "warning")
        assert server.metric(METRIC, reason=reason) == 1
    assert server.metric(METRIC) == len(clients)
    assert server.metric("bytepair_evicted_connections_total") == 0

    # Further ones of a known reason are only counted, within the same minute.
    for _ in range(9):
        fail(server, say(b"GET / HTTP/1.1\r\n\r\n"))
    server.wait_for_metric(METRIC, 10, reason="not_tls")
    lines = [line for line in server.log if line["event"] == "a TLS handshake failed"]
    assert len(lines) < len(clients) + 9


def test_a_handshake_that_takes_too_long_is_counted(folder: Path) -> None:
    files = ("--tls-cert-file", f"{folder}/server.pem", "--tls-key-file", f"{folder}/key.pem")
    flags = ("--transport", "native", "--handshake-seconds", "0.1", *files)
    with (
        RunningServer("--builtin-encodings", "cl100k_base", *flags) as server,
        http2.connection(server.target, hello=b"", seconds=START_SECONDS) as link,
    ):
        assert not link.recv(1)
        line = server.wait_for_log("a TLS handshake failed")
        assert line["reason"] == "it took longer than handshake_seconds"
        assert server.metric(METRIC, reason="timeout") == 1


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_session_is_not_resumed_where_certificates_are_required(
    server: RunningServer, authority: Authority, folder: Path, version: ssl.TLSVersion
) -> None:
    """Its certificate would not be verified again, even once it has expired."""
    authority.client(dns=["a.example"]).write(folder, "client.pem", "client-key.pem")
    context = ssl.create_default_context(cadata=authority.pem.decode())
    context.load_cert_chain(folder / "client.pem", folder / "client-key.pem")
    context.minimum_version = context.maximum_version = version
    session = None
    for _ in range(2):
        with (
            http2.connection(server.target, hello=b"", seconds=START_SECONDS) as link,
            context.wrap_socket(
                link.dup(), server_hostname="localhost", session=session
            ) as encrypted,
        ):
            encrypted.sendall(b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
            assert encrypted.recv(1 << 12)  # with TLS 1.3, tickets come before
            assert not encrypted.session_reused
            session = encrypted.session
