"""Certificates for tests: an authority, and the certificates that it signs."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import grpc
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_DAY = datetime.timedelta(days=1)


@dataclass(frozen=True)
class Pair:
    """A certificate and its key, as PEM."""

    certificate: bytes
    key: bytes

    def write(self, folder: Path, certificate: str = "server.pem", key: str = "key.pem") -> None:
        """Write both into a folder."""
        (folder / certificate).write_bytes(self.certificate)
        (folder / key).write_bytes(self.key)

    def locked_key(self) -> bytes:
        """The key, with a password."""
        key = serialization.load_pem_private_key(self.key, None)
        return key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        )


class Authority:
    """A certificate authority.

    Attributes:
        pem: Its own certificate.
    """

    def __init__(self) -> None:
        self._ca = trustme.CA()
        self.pem = self._ca.cert_pem.bytes()

    def until(self, until: datetime.datetime) -> bytes:
        """Return its certificate with another end of validity."""
        own = x509.load_pem_x509_certificate(self.pem)
        builder = x509.CertificateBuilder(
            own.issuer,
            own.subject,
            own.public_key(),
            own.serial_number,
            own.not_valid_before_utc,
            until,
            list(own.extensions),
        )
        return builder.sign(self._key(), hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    def server(self, name: str = "localhost", until: datetime.datetime | None = None) -> Pair:
        """Issue a certificate for a server of this name. `until` is its end of validity, if it is
        short."""
        issued = self._ca.issue_cert(name, not_after=until)
        return Pair(issued.cert_chain_pems[0].bytes(), issued.private_key_pem.bytes())

    def client(
        self,
        *,
        dns: Sequence[str] = (),
        uris: Sequence[str] = (),
        email: str = "",
        common_name: str = "client",
        curve: ec.EllipticCurve | None = None,
    ) -> Pair:
        """Issue a certificate for a client with these names. trustme cannot issue one with URIs."""
        names = [*map(x509.DNSName, dns), *map(x509.UniformResourceIdentifier, uris)]
        if email:
            names.append(x509.RFC822Name(email))
        key = ec.generate_private_key(curve or ec.SECP256R1())
        authority = x509.load_pem_x509_certificate(self.pem)
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)]))
            .issuer_name(authority.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _DAY)
            .not_valid_after(now + _DAY)
        )
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        signed = builder.sign(self._key(), hashes.SHA256())
        return Pair(
            signed.public_bytes(serialization.Encoding.PEM),
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            ),
        )

    def _key(self) -> ec.EllipticCurvePrivateKey:
        key = serialization.load_pem_private_key(self._ca.private_key_pem.bytes(), None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)  # trustme's kind of key
        return key


def trusting(pem: bytes, shown: Pair | None = None) -> grpc.ChannelCredentials:
    """Return the credentials of a client that trusts an authority and presents a certificate."""
    if shown is None:
        return grpc.ssl_channel_credentials(pem)
    return grpc.ssl_channel_credentials(pem, shown.key, shown.certificate)
