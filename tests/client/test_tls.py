"""TLS: certificates of server and client, and errors that name what is wrong with them."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import grpc
import pytest
import trustme
from bytepair_client import InvalidOption, Tls, Unavailable, _options
from support.clients import Clients
from support.scripted import ScriptedServer
from support.serving import START_SECONDS

#: With these a call ends only if its failure is not retried.
ENDLESS: Any = {"timeout": None, "max_attempts": 1_000_000}


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def server_credentials(
    authority: trustme.CA, *, ask: bool = False, until: datetime | None = None
) -> grpc.ServerCredentials:
    issued = authority.issue_cert("tokens.example", not_after=until)
    pair = (issued.private_key_pem.bytes(), issued.cert_chain_pems[0].bytes())
    return grpc.ssl_server_credentials([pair], authority.cert_pem.bytes(), ask)


def test_tls_trusts_the_roots_it_is_given(
    clients: Clients, authority: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_options, "_PROBE_S", START_SECONDS)
    roots = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(roots))
    with ScriptedServer(credentials=server_credentials(authority)) as server:
        for source in (roots, str(roots), roots.read_bytes()):
            tls = Tls(root_certificates=source, server_name="tokens.example")
            assert clients(server.target, encoding="e", tls=tls).count("text") == 7
        untrusted = trustme.CA().cert_pem.bytes()
        for other, fault in (
            (True, "is not trusted"),
            (Tls(root_certificates=untrusted, server_name="tokens.example"), "is not trusted"),
            (Tls(root_certificates=roots, server_name="other.example"), "is for another name"),
            (False, "uses TLS on this port: give tls=True"),
        ):
            # Whose other address, ::1, refuses connections.
            client = clients(f"localhost:{server.port}", encoding="e", tls=other, **ENDLESS)
            with pytest.raises(Unavailable, match=fault):
                client.count("text")
            with pytest.raises(Unavailable, match=fault):
                next(client.decode_stream([1]))
    assert len(server.calls) == 3


def test_tls_to_a_server_whose_certificate_has_expired(
    clients: Clients, authority: trustme.CA, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_options, "_PROBE_S", START_SECONDS)
    expired = server_credentials(authority, until=datetime(2020, 1, 1, tzinfo=UTC))
    tls = Tls(root_certificates=authority.cert_pem.bytes(), server_name="tokens.example")
    with ScriptedServer(credentials=expired) as server:
        client = clients(f"localhost:{server.port}", encoding="e", tls=tls, **ENDLESS)
        with pytest.raises(Unavailable, match="certificate has expired"):
            client.count("text")


def test_tls_to_a_server_without_tls(
    clients: Clients, authority: trustme.CA, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_options, "_PROBE_S", START_SECONDS)
    with ScriptedServer() as server:
        tls = Tls(root_certificates=authority.cert_pem.bytes())
        client = clients(f"localhost:{server.port}", encoding="e", tls=tls, **ENDLESS)
        with pytest.raises(Unavailable, match="does not use TLS on this port"):
            client.count("text")


@pytest.mark.slow
def test_a_failed_handshake_writes_nothing(authority: trustme.CA) -> None:
    call = """if True:
    import sys
    from bytepair_client import TokenizerClient, Unavailable
    for tls in (False, True):
        try:
            TokenizerClient(sys.argv[1], encoding="e", tls=tls).count("text")
        except Unavailable:
            pass
    """
    with ScriptedServer(credentials=server_credentials(authority)) as server:
        ran = subprocess.run(
            [sys.executable, "-c", call, server.target], stderr=subprocess.PIPE, check=True
        )
    assert ran.stderr == b""


def test_tls_shows_a_client_certificate(
    clients: Clients, authority: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_options, "_PROBE_S", START_SECONDS)
    own = authority.issue_cert("client.example")
    forged = trustme.CA().issue_cert("client.example")
    chain, key = tmp_path / "chain.pem", tmp_path / "key.pem"
    forged.cert_chain_pems[0].write_to_path(str(chain))
    forged.private_key_pem.write_to_path(str(key))
    roots = authority.cert_pem.bytes()
    with ScriptedServer(credentials=server_credentials(authority, ask=True)) as server:
        tls = Tls(
            root_certificates=roots,
            client_certificate=own.cert_chain_pems[0].bytes(),
            client_key=own.private_key_pem.bytes(),
            server_name="tokens.example",
        )
        assert clients(server.target, encoding="e", tls=tls).count("text") == 7
        for rejected, is_known in (
            (Tls(roots, server_name="tokens.example"), True),
            (Tls(roots, chain, key, "tokens.example"), True),
            # What is not in files cannot be tried again.
            (Tls(roots, chain.read_bytes(), key.read_bytes(), "tokens.example"), False),
        ):
            attempts = ENDLESS if is_known else {"max_attempts": 1}
            with pytest.raises(Unavailable) as caught:
                clients(server.target, encoding="e", tls=rejected, **attempts).count("text")
            assert ("requires a client certificate" in str(caught.value)) == is_known


def test_tls_files_are_read_at_once(clients: Clients, tmp_path: Path) -> None:
    with pytest.raises(InvalidOption, match=r"nowhere\.pem: No such file"):
        clients(tls=Tls(root_certificates=tmp_path / "nowhere.pem"))
    with pytest.raises(InvalidOption, match="holds no certificates in PEM"):
        clients(tls=Tls(root_certificates=b"no certificate"))
    with pytest.raises(InvalidOption, match="must be given together"):
        clients(tls=Tls(client_key=b"key"))
    authority, paths = trustme.CA(), (tmp_path / "chain.pem", tmp_path / "key.pem")
    authority.issue_cert("a.example").cert_chain_pems[0].write_to_path(str(paths[0]))
    authority.issue_cert("b.example").private_key_pem.write_to_path(str(paths[1]))
    with pytest.raises(InvalidOption, match="not a certificate chain and its key"):
        clients(tls=Tls(client_certificate=paths[0], client_key=paths[1]))
