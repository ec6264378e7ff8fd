"""The server's certificate, and the authorities of client certificates."""

from __future__ import annotations

import codecs
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bytepair_server.config.loader import ConfigurationError, contents
from bytepair_server.config.settings import Settings
from bytepair_server.transport.interface import TlsFiles

if TYPE_CHECKING:
    from cryptography import x509

#: Expiry within this time is logged as a warning; the Prometheus alert uses the same time.
_SOON: Final = timedelta(days=14)

#: When certificates expire, by the setting that names their file.
Expiries = Mapping[str, datetime]


@dataclass(frozen=True, slots=True)
class TlsPaths:
    """The paths of the TLS files. A key and its certificate cannot be replaced in one step, so
    `read` rejects files that do not belong together."""

    certificates: Path
    key: Path
    client_ca: Path | None

    @property
    def files(self) -> tuple[Path, ...]:
        """All paths."""
        return tuple(path for path in (self.certificates, self.key, self.client_ca) if path)

    def read(self) -> TlsFiles:
        """Read and check the files.

        Raises:
            ConfigurationError: A file cannot be read or parsed, the key does not belong to the
                certificate, the certificate or every authority is not valid now, or a file
                changed while it was read.
        """
        material = self._read()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            # Without this, OpenSSL would prompt for a password on the terminal.
            context.load_cert_chain(self.certificates, self.key, password=lambda: "")
        except (ssl.SSLError, OSError) as error:
            swapped = b"PRIVATE KEY" in material.certificate and b"CERTIFICATE" in material.key
            raise ConfigurationError(
                f"tls_cert_file {self.certificates} and tls_key_file {self.key} are not a "
                "certificate chain and its key, in PEM and without a password"
                f"{': their contents are swapped' if swapped else _problem(error)}"
            ) from None
        _check(f"tls_cert_file {self.certificates}", material.certificate)
        if material.client_authorities is not None:
            try:
                context.load_verify_locations(
                    cadata=material.client_authorities.decode("ascii", "ignore")
                )
            except (ssl.SSLError, ValueError) as error:
                raise ConfigurationError(
                    f"tls_client_ca_file {self.client_ca}: holds no certificates in PEM"
                    f"{_problem(error)}"
                ) from None
            if found := _authorities(material.client_authorities):
                # gRPC would close every connection without a message.
                setting = f"tls_client_ca_file {self.client_ca}"
                _check_time(setting, found, "every client certificate would be rejected")
        if self._read() != material:
            raise ConfigurationError("tls_cert_file: a TLS file changed while it was read")
        return material

    def _read(self) -> TlsFiles:
        ca = self.client_ca
        return TlsFiles(
            _pem("tls_cert_file", self.certificates),
            _pem("tls_key_file", self.key),
            None if ca is None else _pem("tls_client_ca_file", ca),
        )


def paths(settings: Settings, base_dir: Path) -> TlsPaths | None:
    """The paths of the TLS files; None if TLS is not configured.

    Raises:
        ConfigurationError: A setting lacks another that it needs.
    """
    certificates, key = settings.tls_cert_file, settings.tls_key_file
    ca = settings.tls_client_ca_file
    if certificates is None and key is None and ca is None:
        return None
    if certificates is None or key is None:
        raise ConfigurationError(
            "tls_cert_file and tls_key_file: set both, or no tls setting at all"
        )
    return TlsPaths(base_dir / certificates, base_dir / key, None if ca is None else base_dir / ca)


def expiries(files: TlsFiles) -> Expiries:
    """When the server's own certificate and the first of the authorities expire, by setting.
    `files` were returned by `TlsPaths.read`."""
    from cryptography import x509  # imported late, see `_check`

    own = x509.load_pem_x509_certificate(files.certificate)
    found = {"tls_cert_file": own.not_valid_after_utc}
    if authorities := _authorities(files.client_authorities or b""):
        found["tls_client_ca_file"] = min(each.not_valid_after_utc for each in authorities)
    return found


def soon(expiries: Expiries) -> dict[str, str]:
    """Those times, for people, at which an operator must act: less than two weeks are left."""
    until = datetime.now(UTC) + _SOON
    return {setting: time.isoformat() for setting, time in expiries.items() if time < until}


def _pem(setting: str, path: Path) -> bytes:
    """The content of a file, without a byte order mark: OpenSSL skips it, but the native transport
    would miss the first certificate."""
    return contents(setting, path).removeprefix(codecs.BOM_UTF8)


def _check(setting: str, chain: bytes) -> None:
    """Raise ConfigurationError for a certificate that gRPC or all clients reject silently."""
    from cryptography import x509  # costs megabytes, and only TLS needs it
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

    try:
        own = x509.load_pem_x509_certificate(chain)
        key = own.public_key()
    except ValueError:
        raise ConfigurationError(f"{setting}: holds no certificate that can be read") from None
    if own.version is not x509.Version.v3:
        raise ConfigurationError(
            f"{setting}: is of X.509 version 1, which has no subjectAltName, so most clients would "
            "reject it; issue it with one"
        )
    curves = (ec.SECP256R1, ec.SECP384R1)
    if not isinstance(key, rsa.RSAPublicKey | ed25519.Ed25519PublicKey) and not (
        isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, curves)
    ):
        raise ConfigurationError(
            f"{setting}: gRPC does not support this key; use RSA, or EC with P-256 or P-384"
        )
    _check_time(setting, [own], "every client would reject it")


def _authorities(bundle: bytes) -> list[x509.Certificate]:
    """The certificates of a bundle; none if only OpenSSL, which is less strict, can read it."""
    from cryptography import x509  # imported late, see `_check`

    try:
        return x509.load_pem_x509_certificates(bundle)
    except ValueError:
        return []


def _check_time(setting: str, found: Sequence[x509.Certificate], then: str) -> None:
    """Raise ConfigurationError if no certificate is valid now. During a rotation some may have
    expired."""
    now = datetime.now(UTC)
    if not any(each.not_valid_before_utc <= now <= each.not_valid_after_utc for each in found):
        begins, ends = found[0].not_valid_before_utc, found[0].not_valid_after_utc
        raise ConfigurationError(
            f"{setting}: is valid from {begins:%Y-%m-%d %H:%M} to {ends:%Y-%m-%d %H:%M} UTC, and "
            f"by this machine's clock it is {now:%Y-%m-%d %H:%M}: {then}"
        )


def _problem(error: Exception) -> str:
    """A colon and OpenSSL's description of an error, which never quotes the file; "" if it has
    none."""
    reason = getattr(error, "reason", None)
    return ": " + reason.lower().replace("_", " ") if reason else ""
