"""Map the names in a client certificate to a caller.

Only subject alternative names of two kinds are used: host names ("dns:") and URIs ("uri:", such as
SPIFFE ids). The common name, addresses and e-mail addresses are ignored. A name must equal a
configured one: no wildcards, no suffixes. Host names are compared case-insensitively.

The names are parsed here: some libraries cut them at the first NUL, so that
"billing\\0.example.org" would become "billing".
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final, Protocol

from bytepair_server.config.callers import CallerTable
from bytepair_server.config.loader import ConfigurationError

#: Parsed certificates that are cached: each call looks up its certificate.
_CACHED_CERTIFICATES: Final = 1024

#: The kind of a name, "dns" or "uri", and its value.
Name = tuple[str, str]


class Peer(Protocol):
    """The connection of a call."""

    @property
    def certificate(self) -> bytes | None:
        """The verified client certificate, as DER; None without one."""


def by_name(callers: Mapping[str, CallerTable]) -> dict[Name, str]:
    """Callers by the kind and value of each name of their certificates.

    Raises:
        ConfigurationError: Two callers share a name.
    """
    found: dict[Name, str] = {}
    for caller, table in callers.items():
        for name in table.certificates:
            kind, _, value = name.partition(":")
            other = found.setdefault((kind, _normal(kind, value)), caller)
            if other != caller:
                raise ConfigurationError(
                    f"callers.{caller}.certificates: {name!r} already belongs to {other!r}"
                )
    return found


def caller_of(certificate: bytes | None, callers: Mapping[Name, str]) -> str | None:
    """Find the caller of a certificate.

    Args:
        certificate: The verified certificate, as DER; None without one.
        callers: See `by_name`.
    Returns:
        The only caller with a name in it; None if there is none or more than one.
    """
    names = () if certificate is None else _names(certificate)
    found = {callers[name] for name in names if name in callers}
    return found.pop() if len(found) == 1 else None


@lru_cache(_CACHED_CERTIFICATES)
def _names(der: bytes) -> tuple[Name, ...]:
    """The kind and value of each name in a certificate; empty if it cannot be parsed."""
    from cryptography import x509  # costs megabytes, and only certificates need it

    try:
        extensions = x509.load_der_x509_certificate(der).extensions
        names = extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except Exception:  # the library raises errors without a common base class
        return ()
    of_hosts = names.get_values_for_type(x509.DNSName)
    uris = names.get_values_for_type(x509.UniformResourceIdentifier)
    return (
        *(("dns", _normal("dns", each)) for each in of_hosts),
        *(("uri", each) for each in uris),
    )


def _normal(kind: str, value: str) -> str:
    return value.lower() if kind == "dns" else value
