"""Identify the caller: by API key, by client certificate, or as `anonymous`.

Only credentials identify a caller, never the content of a request.

Of a client certificate only subject alternative names of two kinds are used: host names ("dns:")
and URIs ("uri:", such as SPIFFE ids). The common name, addresses and e-mail addresses are ignored.
A name must equal a configured one: no wildcards, no suffixes. Host names are compared
case-insensitively.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final, Protocol

from bytepair_engine.vocabulary.names import nearest

from bytepair_server.auth import api_keys
from bytepair_server.auth.api_keys import Keys
from bytepair_server.call import ANONYMOUS
from bytepair_server.config.loader import ConfigurationError
from bytepair_server.config.settings import Settings
from bytepair_server.config.tables import CallerTable
from bytepair_server.errors import Unauthenticated
from bytepair_server.shared.metrics import OTHER

#: The table in `ceiling` and `quotas` for callers without their own or a group's table.
DEFAULT_CALLER: Final = "default"

_SCHEME: Final = "bearer "

# The credentials, for people.
_KEY: Final = "'authorization: Bearer <API key>'"
_CERTIFICATE: Final = "a client certificate with a known name"

_NO_KEY: Final = "the call has no authorization header"
_OTHER_SCHEME: Final = "the authorization header does not begin with 'Bearer '"
_UNKNOWN_KEY: Final = "this server does not know the API key, which may be mistyped or revoked"
_UNKNOWN: Final = "the call has no credentials that this server knows"

#: Parsed certificates that are cached: each call looks up its certificate.
_CACHED_CERTIFICATES: Final = 1024

#: The kind of a name, "dns" or "uri", and its value.
Name = tuple[str, str]


class Peer(Protocol):
    """The connection of a call."""

    @property
    def certificate(self) -> bytes | None:
        """The verified client certificate, as DER; None without one."""


def _by_name(callers: Mapping[str, CallerTable]) -> dict[Name, str]:
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


def _caller_of(certificate: bytes | None, callers: Mapping[Name, str]) -> str | None:
    """The only caller with a name in a certificate; None if there is none or more than one."""
    names = () if certificate is None else _names(certificate)
    found = {callers[name] for name in names if name in callers}
    return found.pop() if len(found) == 1 else None


@lru_cache(_CACHED_CERTIFICATES)
def _names(der: bytes) -> tuple[Name, ...]:
    """The kind and value of each name in a certificate; empty if it cannot be parsed. This is done
    here because some libraries cut a name at its first NUL: "billing\\0.example.org"."""
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


class Callers:
    """The configured callers: those with API keys, and those of the setting `callers`."""

    def __init__(
        self, keys: Keys | None = None, tables: Mapping[str, CallerTable] | None = None
    ) -> None:
        self._tables: Final = tables or {}
        self._by_name: Final = _by_name(self._tables)
        self._keys = keys
        accepted = {_KEY: keys is not None, _CERTIFICATE: bool(self._by_name)}
        self._accepted: Final = " or ".join(name for name, is_known in accepted.items() if is_known)

    @property
    def open(self) -> bool:
        """Whether calls need no credentials."""
        return self._keys is None and not self._by_name

    @property
    def is_closed(self) -> bool:
        """Whether no credentials are accepted: all keys were removed."""
        return self._keys is not None and not self._keys.by_hash and not self._by_name

    @property
    def names(self) -> frozenset[str]:
        """All callers that a call can be identified as."""
        keys = self._keys
        if self.open:
            return frozenset({ANONYMOUS})
        return frozenset(self._tables) | (frozenset() if keys is None else keys.callers)

    def ranks(self, caller: str) -> tuple[str, ...]:
        """The tables in `ceiling` and `quotas` that apply to a caller, the most specific first."""
        table = self._tables.get(caller)
        group = None if table is None else table.group
        return (caller, DEFAULT_CALLER) if group is None else (caller, group, DEFAULT_CALLER)

    def replace_keys(self, reloaded: Callers) -> None:
        """Use the reloaded keys from now on. Running calls are not affected."""
        assert self._keys is not None  # a server without a key file has nothing to reload
        self._keys = reloaded._keys

    def identify(self, authorization: str | None, peer: Peer) -> str:
        """Identify the caller: by its key if it sends one, else by its certificate. A key counts
        first because a proxy's connection has the proxy's certificate.

        Args:
            authorization: The call's `authorization` metadata; None if it has none.
            peer: The connection. Its certificate is parsed only if needed.
        Returns:
            The caller; ANONYMOUS if neither keys nor certificates are configured.
        Raises:
            Unauthenticated: The key is unknown, or there is none and no known certificate.
        """
        keys = self._keys
        if keys is not None and authorization is not None:
            if not authorization.lower().startswith(_SCHEME):
                raise Unauthenticated(_OTHER_SCHEME, self._accepted)
            # Looking up a hash is safe against timing attacks: knowing a prefix of a hash does
            # not help to find the key.
            key = authorization[len(_SCHEME) :].strip()
            caller = keys.by_hash.get(api_keys.hashed(key)) if key else None
            problem = _UNKNOWN_KEY
        elif self._by_name:
            caller, problem = _caller_of(peer.certificate, self._by_name), _UNKNOWN
        elif keys is None:
            return ANONYMOUS
        else:
            raise Unauthenticated(_NO_KEY, self._accepted)
        if caller is None:
            raise Unauthenticated(problem, self._accepted)
        return caller


def load(settings: Settings, base_dir: Path) -> Callers:
    """Load the callers; relative paths start from `base_dir`.

    Raises:
        ConfigurationError: The settings contradict each other, or the key file is invalid.
    """
    groups = {table.group for table in settings.callers.values() if table.group is not None}
    reserved, keys = {ANONYMOUS, DEFAULT_CALLER, OTHER}, None
    file = base_dir / (settings.api_keys_file or "")
    if settings.api_keys_file is not None:
        keys = api_keys.read(file, reserved)
    callers = Callers(keys, settings.callers)
    for name, table in settings.callers.items():
        if table.group in callers.names:
            raise ConfigurationError(
                f"callers.{name}.group: {table.group!r} is also a caller; give the group another "
                "name"
            )
    for name in settings.callers:
        if not name.isprintable() or not name:
            raise ConfigurationError(f"callers: {name!r} is not a printable name")
        if name in reserved:
            raise ConfigurationError(f"callers.{name}: {name!r} is reserved; choose another name")
    has_certificates = any(table.certificates for table in settings.callers.values())
    if has_certificates and settings.tls_client_ca_file is None:
        raise ConfigurationError(
            "callers: certificates need tls_client_ca_file; without it no client sends one"
        )
    if settings.tls_client_ca_file is not None and callers.open:
        raise ConfigurationError(
            "tls_client_ca_file: no caller has a certificate; list the names in it under "
            "certificates of [callers.<name>], or set api_keys_file"
        )
    tables = settings.ceiling.keys() | settings.quotas.keys()
    for name, table in settings.callers.items():
        if table.group is not None and table.group not in tables:
            raise ConfigurationError(
                f"callers.{name}.group: there is neither [ceiling.{table.group}] nor "
                f"[quotas.{table.group}]"
            )
        if not table.certificates and (keys is None or name not in keys.callers):
            listed = (
                f" {file}, which has {', '.join(sorted(keys.callers))}; if its keys were removed, "
                f"write {name!r} = [] there"
                if keys
                else ""
            )
            raise ConfigurationError(
                f"callers.{name}: no call can come from this caller: it has neither certificates "
                f"nor an entry in api_keys_file{listed}"
            )
    if settings.health_needs_caller and callers.open:
        raise ConfigurationError(
            "health_needs_caller: no caller is configured; set api_keys_file, or turn it off"
        )
    known = sorted({DEFAULT_CALLER, *callers.names, *groups})
    for setting, names in (("ceiling", settings.ceiling), ("quotas", settings.quotas)):
        for name in names:
            if name not in known:
                raise ConfigurationError(
                    f"{setting}.{name}: no such caller or group; known: {', '.join(known)}"
                    f"{_remedy(name, known, file) if keys else ''}"
                )
    return callers


def _remedy(name: str, known: Sequence[str], file: Path) -> str:
    """What to do about the table of a name that no caller or group has; `file` has the keys."""
    if name == ANONYMOUS:
        return "; with api_keys_file, no caller is anonymous"
    similar = nearest(name, known)
    hint = f"; did you mean {similar[0]!r}?" if similar else ""
    return f"{hint}; if its keys were removed, write {name!r} = [] in {file}"
