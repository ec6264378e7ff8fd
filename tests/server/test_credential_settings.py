"""The checks of settings about keys and certificates when the server starts."""

from __future__ import annotations

import codecs
import datetime
from pathlib import Path

import pytest
from bytepair_server.auth import callers, tls
from bytepair_server.config import loader
from bytepair_server.config.loader import ConfigurationError
from cryptography.hazmat.primitives.asymmetric import ec
from support.pki import Authority
from support.serving import write_config

#: Not relative to the time of the test: parallel processes must give the cases the same ids.
EXPIRED = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
ENCRYPTED = ["tls_cert_file = 'server.pem'", "tls_key_file = 'key.pem'"]
#: A certificate and its key, made by `openssl x509 -req` without extensions.
VERSION_1 = """\
-----BEGIN CERTIFICATE-----
MIIBJTCBywIUQyz4Q1hkMZo+Xc3LdbAsq8uhqc8wCgYIKoZIzj0EAwIwFDESMBAG
A1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyNTE0MDgyMloYDzI4NDgwNDA5MTQwODIy
WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC
AATSnluoGa4m0JN8xRDrE65d0YJ85ncD5NkQaPc37HiBE7yc/gI8c1MtImltnCmg
uuZwL8VhZ6RpRiVrLx+GwpsYMAoGCCqGSM49BAMCA0kAMEYCIQDtqCx9B3xt4+YF
UrxBhiKBthuspedDUSqJ4GYheLnLTwIhALymuSJ2svnB35d6Vrj0rNwHG0XWVo6g
Uqt43a/HuwIh
-----END CERTIFICATE-----
-----BEGIN EC PRIVATE KEY-----
MHcCAQEEIPaQe2RdAaOwbhJeKU0TnRMxW41XgNQhgjUspLSO7Z+FoAoGCCqGSM49
AwEHoUQDQgAE0p5bqBmuJtCTfMUQ6xOuXdGCfOZ3A+TZEGj3N+x4gRO8nP4CPHNT
LSJpbZwpoLrmcC/FYWekaUYlay8fhsKbGA==
-----END EC PRIVATE KEY-----
"""
KNOWN = ["[callers.a]", "certificates = ['dns:a.example']"]
MUTUAL = "\n".join([*ENCRYPTED, "tls_client_ca_file = 'ca.pem'", *KNOWN])


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


def check(config: str) -> None:
    read = loader.load(["--config", config], {})
    callers.load(read.settings, read.base_dir)
    if (files := tls.paths(read.settings, read.base_dir)) is not None:
        files.read()


def test_a_caller_without_a_key_remains_a_known_caller(tmp_path: Path) -> None:
    """Otherwise the settings that name it would prevent the next start."""
    (tmp_path / "keys.toml").write_text("chat = []")
    check(
        write_config(
            tmp_path, "api_keys_file = 'keys.toml'\n[quotas.chat]\nrequests_per_second = 1"
        )
    )


def test_comments_in_pem_files_need_not_be_ascii(tmp_path: Path, authority: Authority) -> None:
    authority.server().write(tmp_path)
    (tmp_path / "ca.pem").write_bytes("# Behörde\n".encode() + authority.pem)
    check(write_config(tmp_path, MUTUAL))


def test_a_byte_order_mark_is_skipped(tmp_path: Path, authority: Authority) -> None:
    authority.server().write(tmp_path)
    (tmp_path / "ca.pem").write_bytes(authority.pem)
    names = ("server.pem", "key.pem", "ca.pem")
    files = tls.TlsPaths(*(tmp_path / name for name in names))
    read = files.read()
    for name in names:
        (tmp_path / name).write_bytes(codecs.BOM_UTF8 + (tmp_path / name).read_bytes())
    assert files.read() == read


def test_authorities_can_be_rotated(tmp_path: Path, authority: Authority) -> None:
    authority.server().write(tmp_path)
    (tmp_path / "ca.pem").write_bytes(authority.until(EXPIRED) + authority.pem)
    check(write_config(tmp_path, MUTUAL))


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["tls_cert_file = 'server.pem'"], "tls_key_file: set both, or no tls setting"),
        (["tls_client_ca_file = 'server.pem'"], "no caller has a certificate"),
        (["tls_client_ca_file = 'ca.pem'", *KNOWN], "tls_key_file: set both, or no tls setting"),
        (
            [*ENCRYPTED, "tls_client_ca_file = 'key.pem'", *KNOWN],
            "key.pem: holds no certificates in PEM",
        ),
        (
            [*ENCRYPTED, "tls_client_ca_file = 'empty.pem'", *KNOWN],
            "empty.pem: holds no certificates in PEM",
        ),
        (
            ["tls_cert_file = 'server.pem'", "tls_key_file = 'none.pem'"],
            "none.pem: cannot be read: No such file",
        ),
        (
            ["tls_cert_file = 'server.pem'", "tls_key_file = 'other.pem'"],
            "are not a certificate chain and its key, in PEM and without a password: "
            "key values mismatch",
        ),
        (
            ["tls_cert_file = 'key.pem'", "tls_key_file = 'server.pem'"],
            "and without a password: their contents are swapped",
        ),
        (
            ["tls_cert_file = 'server.pem'", "tls_key_file = 'locked.pem'"],
            "are not a certificate chain and its key, in PEM and without a password",
        ),
        (
            ["tls_cert_file = 'old.pem'", "tls_key_file = 'old-key.pem'"],
            f"old.pem: is valid from 2000-01-01 00:00 to {EXPIRED:%Y-%m-%d %H:%M} UTC, and by",
        ),
        (
            ["tls_cert_file = 'odd.pem'", "tls_key_file = 'odd-key.pem'"],
            "odd.pem: gRPC does not support this key; use RSA, or EC with P-256",
        ),
        (
            ["tls_cert_file = 'v1.pem'", "tls_key_file = 'v1.pem'"],
            "v1.pem: is of X.509 version 1, which has no subjectAltName",
        ),
        (
            [*ENCRYPTED, "tls_client_ca_file = 'old-ca.pem'", *KNOWN],
            f"to {EXPIRED:%Y-%m-%d %H:%M} UTC, and by",
        ),
        (KNOWN, "callers: certificates need tls_client_ca_file"),
        (["[callers.a]", "certificates = ['a.example']"], "must be 'dns:' and a host name"),
        (["[callers.a]", "certificates = ['dns:*.example']"], "without wildcard"),
        (["[callers.default]"], "'default' is reserved"),
        (['[callers."(other)"]'], "'(other)' is reserved"),
        (['[callers.""]'], "callers: '' is not a printable name"),
        (["[callers.a]", "group = 'g'"], "there is neither [ceiling.g] nor [quotas.g]"),
        (["[callers.a]"], "has neither certificates nor an entry in api_keys_file"),
        (
            ["api_keys_file = 'keys'", "[callers.chatt]"],
            "nor an entry in api_keys_file {folder}/keys, which has chat, search; if its keys were "
            "removed, write 'chatt' = [] there",
        ),
        (
            ["api_keys_file = 'keys'", "[callers.chat]", "group = 'search'"],
            "callers.chat.group: 'search' is also a caller",
        ),
        (["api_keys_file = 'keys'", "[quotas.anonymous]"], "no caller is anonymous"),
        (
            ["api_keys_file = 'keys'", "[quotas.chatt]"],
            "; did you mean 'chat'?; if its keys were removed, write 'chatt' = [] in {folder}/keys",
        ),
        (["api_keys_file = 'keys'", "[quotas.x]"], "known: chat, default, search; if its keys"),
        (["health_needs_caller = true"], "health_needs_caller: no caller is configured"),
        (["[quotas.b]"], "quotas.b: no such caller or group; known: anonymous, default"),
        (["[quotas.default]", "request_burst = 2"], "request_burst needs requests_per_second"),
        (["[quotas.default]", "requests_per_second = 1e-320"], "at least 1e-09, not 1e-320"),
        (["[quotas.default]", "requests = 1"], "quotas.default.requests (from file "),
    ],
)
def test_contradictory_credential_settings_are_refused(
    tmp_path: Path, lines: list[str], said: str, authority: Authority
) -> None:
    authority.server().write(tmp_path)
    authority.client(curve=ec.SECP521R1()).write(tmp_path, "odd.pem", "odd-key.pem")
    (tmp_path / "v1.pem").write_text(VERSION_1)
    (tmp_path / "empty.pem").touch()
    (tmp_path / "keys").write_text("search = []\nchat = []\n")
    authority.server(until=EXPIRED).write(tmp_path, "old.pem", "old-key.pem")
    (tmp_path / "old-ca.pem").write_bytes(authority.until(EXPIRED))
    (tmp_path / "other.pem").write_bytes(authority.server().key)
    (tmp_path / "locked.pem").write_bytes(authority.server().locked_key())
    config = write_config(tmp_path, "\n".join(lines))
    with pytest.raises(ConfigurationError) as caught:
        check(config)
    assert said.format(folder=tmp_path) in str(caught.value)
    assert "Error" not in str(caught.value)
