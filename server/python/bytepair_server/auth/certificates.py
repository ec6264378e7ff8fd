"""Map the names in a client certificate to a caller.

Only subject alternative names count, and of these host names ("dns:") and URIs ("uri:", such as
SPIFFE ids); the subject's common name, addresses and e-mail addresses never do. A name must be
equal to a configured one: no wildcards, no suffixes. Host names are compared without case.

The names are read from the certificate itself: some libraries end them at the first NUL, so that
"billing\\0.example.org" would be "billing".
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final, Protocol

from bytepair_server.config.callers import CallerTable
from bytepair_server.config.loader import ConfigurationError

#: Certificates are cached, because each call looks its own up.
_REMEMBERED: Final = 1024


class Peer(Protocol):
    """The connection of a call."""

    @property
    def certificate(self) -> bytes | None:
        """The client certificate that was verified, as DER; None without one."""


class Certificates:
    """The names in certificates that stand for callers."""

    def __init__(self, callers: Mapping[str, CallerTable]) -> None:
        """Take them from the setting `callers`.

        Raises:
            ConfigurationError: Two callers share a name.
        """
        self._callers: Final[dict[tuple[str, str], str]] = {}
        for caller, table in callers.items():
            for name in table.certificates:
                kind, _, value = name.partition(":")
                key = kind, _normal(kind, value)
                other = self._callers.setdefault(key, caller)
                if other != caller:
                    raise ConfigurationError(
                        f"callers.{caller}.certificates: {name!r} already stands for {other!r}"
                    )

    def __bool__(self) -> bool:
        return bool(self._callers)

    def caller(self, certificate: bytes | None) -> str | None:
        """Find whose certificate it is.

        Args:
            certificate: As DER, verified by the transport; None where the connection has none.
        Returns:
            The one caller that its names stand for; None if there is none, or more than one.
        """
        names = () if certificate is None else _names(certificate)
        found = {self._callers.get(name) for name in names} - {None}
        return found.pop() if len(found) == 1 else None


@lru_cache(_REMEMBERED)
def _names(der: bytes) -> tuple[tuple[str, str], ...]:
    """The names in a certificate, by their kinds; none where it has none that can be read."""
    from cryptography import x509  # takes megabytes, needed only with certificates

    try:
        extensions = x509.load_der_x509_certificate(der).extensions
        names = extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except Exception:  # the library has several for what it does not know, of no common kind
        return ()
    of_hosts = names.get_values_for_type(x509.DNSName)
    uris = names.get_values_for_type(x509.UniformResourceIdentifier)
    return (
        *(("dns", _normal("dns", each)) for each in of_hosts),
        *(("uri", each) for each in uris),
    )


def _normal(kind: str, value: str) -> str:
    return value.lower() if kind == "dns" else value
