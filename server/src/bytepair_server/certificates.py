"""Who a client certificate stands for: its names, looked up in the configuration.

Only subject alternative names count, and of these host names ("dns:") and URIs ("uri:", such as
SPIFFE ids); the subject's common name, addresses and e-mail addresses never do. A name must be
equal to a configured one: no wildcards, no suffixes. Host names are compared without case.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from bytepair_server.settings_callers import CallerTable
from bytepair_server.sources import ConfigurationError

#: gRPC's property of a connection for each kind of name.
_KINDS: Final = {"dns": "peer_dns", "uri": "peer_uri"}

#: What gRPC knows of a connection.
AuthContext = Mapping[str, Iterable[bytes]]


class Certificates:
    """The names in certificates that stand for callers."""

    def __init__(self, callers: Mapping[str, CallerTable]) -> None:
        """Take them from the setting `callers`.

        Raises:
            ConfigurationError: Two callers share a name.
        """
        self._callers: Final[dict[tuple[str, bytes], str]] = {}
        for caller, table in callers.items():
            for name in table.certificates:
                kind, _, value = name.partition(":")
                key = kind, _normal(kind, value.encode())
                other = self._callers.setdefault(key, caller)
                if other != caller:
                    raise ConfigurationError(
                        f"callers.{caller}.certificates: {name!r} already stands for {other!r}"
                    )

    def __bool__(self) -> bool:
        return bool(self._callers)

    def caller(self, peer: AuthContext) -> str | None:
        """Find whose certificate it is.

        Args:
            peer: The connection's properties; gRPC has verified the certificate.
        Returns:
            The one caller that its names stand for; None if there is none, or more than one.
        """
        found = {
            self._callers.get((kind, _normal(kind, value)))
            for kind, known_as in _KINDS.items()
            for value in peer.get(known_as, ())
        } - {None}
        return found.pop() if len(found) == 1 else None


def _normal(kind: str, value: bytes) -> bytes:
    return value.lower() if kind == "dns" else value
