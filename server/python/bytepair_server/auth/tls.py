"""The server's certificate, and the authorities of client certificates."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bytepair_server.config.loader import ConfigurationError, contents
from bytepair_server.config.settings import Settings
from bytepair_server.transport.interface import TlsFiles

if TYPE_CHECKING:
    from cryptography import x509


@dataclass(frozen=True, slots=True)
class TlsPaths:
    """Where the material is. A key and its certificate are two files, which cannot be replaced
    in one step: what is read here fits together, or is refused."""

    certificates: Path
    key: Path
    client_ca: Path | None

    def read(self) -> TlsFiles:
        """Read and check the files.

        Raises:
            ConfigurationError: One cannot be read or is not what it must be, the key is not that
                of the certificate, the certificate or every authority is not valid today, or a
                file was being replaced.
        """
        material = self._read()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            # Without a password of its own, OpenSSL would ask for one at the terminal.
            context.load_cert_chain(self.certificates, self.key, password=lambda: "")
        except (ssl.SSLError, OSError) as error:
            raise ConfigurationError(
                f"tls_cert_file {self.certificates} and tls_key_file {self.key} are not a "
                "certificate chain and its key, in PEM and without a password: "
                f"{_problem(error)}"
            ) from None
        _check(f"tls_cert_file {self.certificates}", material.certificate)
        if material.client_authorities:
            try:
                context.load_verify_locations(
                    cadata=material.client_authorities.decode("ascii", "ignore")
                )
            except (ssl.SSLError, ValueError) as error:
                raise ConfigurationError(
                    f"tls_client_ca_file {self.client_ca}: holds no certificates in PEM: "
                    f"{_problem(error)}"
                ) from None
            _check_authorities(f"tls_client_ca_file {self.client_ca}", material.client_authorities)
        if self._read() != material:
            raise ConfigurationError(f"{self.certificates}: was replaced while it was read")
        return material

    def _read(self) -> TlsFiles:
        ca = self.client_ca
        return TlsFiles(
            _pem("tls_cert_file", self.certificates),
            _pem("tls_key_file", self.key),
            b"" if ca is None else _pem("tls_client_ca_file", ca),
            client_certificate_required=ca is not None,
        )


class Tls:
    """The material in use. Handshakes that begin after `replace` use the new one; connections
    that are open stay as they are.

    Attributes:
        material: What is in use.
        on_replace: Called with each replacement.
    """

    def __init__(self, paths: TlsPaths) -> None:
        """Read the files. Raises ConfigurationError; see `TlsPaths.read`."""
        self.paths: Final = paths
        self.material = paths.read()
        self.on_replace: Callable[[TlsFiles], None] | None = None

    def replace(self, material: TlsFiles) -> None:
        """Use other material from now on."""
        self.material = material
        if self.on_replace is not None:
            self.on_replace(material)


def load(settings: Settings, base_dir: Path) -> Tls | None:
    """Read what the settings name.

    Args:
        settings: The three settings `tls_…_file`.
        base_dir: What relative paths are relative to.
    Returns:
        None where TLS is not used.
    Raises:
        ConfigurationError: One is set without another that it needs, or see `TlsPaths.read`.
    """
    certificates, key = settings.tls_cert_file, settings.tls_key_file
    ca = settings.tls_client_ca_file
    if certificates is None and key is None and ca is None:
        return None
    if certificates is None or key is None:
        raise ConfigurationError("tls_cert_file and tls_key_file: set both, or neither")
    return Tls(
        TlsPaths(base_dir / certificates, base_dir / key, None if ca is None else base_dir / ca)
    )


def _pem(setting: str, path: Path) -> bytes:
    return contents(f"{setting} {path}", path)


def _check(place: str, chain: bytes) -> None:
    """Raises ConfigurationError for a certificate that gRPC does not take, without a word, or with
    which every client would hang up."""
    from cryptography import x509  # takes megabytes, needed with TLS alone
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

    try:
        own = x509.load_pem_x509_certificate(chain)
        key = own.public_key()
    except ValueError:
        raise ConfigurationError(f"{place}: holds no certificate that can be read") from None
    curves = (ec.SECP256R1, ec.SECP384R1, ec.SECP521R1)
    if not isinstance(key, rsa.RSAPublicKey | ed25519.Ed25519PublicKey) and not (
        isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, curves)
    ):
        raise ConfigurationError(
            f"{place}: gRPC does not support this key; make one for RSA, or EC with P-256 or P-384"
        )
    now = datetime.now(UTC)
    if not _is_valid(own, now):
        raise ConfigurationError(f"{place}: {_validity(own, now)}: every client would reject it")


def _check_authorities(place: str, bundle: bytes) -> None:
    """Raises ConfigurationError if no certificate of the bundle is valid now: gRPC would close the
    connections of all clients without a message. Some may have expired, as while they are
    replaced."""
    from cryptography import x509  # as above

    try:
        found = x509.load_pem_x509_certificates(bundle)
    except ValueError:
        return  # OpenSSL has read what is there, and is less strict
    now = datetime.now(UTC)
    if not any(_is_valid(each, now) for each in found):
        raise ConfigurationError(
            f"{place}: {_validity(found[0], now)}: every client certificate would be rejected"
        )


def _is_valid(certificate: x509.Certificate, now: datetime) -> bool:
    return certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc


def _validity(certificate: x509.Certificate, now: datetime) -> str:
    begins, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    return (
        f"is valid from {begins:%Y-%m-%d %H:%M} to {ends:%Y-%m-%d %H:%M} UTC, and by this "
        f"machine's clock it is {now:%Y-%m-%d %H:%M}"
    )


def _problem(error: Exception) -> str:
    """OpenSSL's own words, which quote nothing of a file."""
    reason = getattr(error, "reason", None)
    return reason.lower().replace("_", " ") if reason else type(error).__name__
