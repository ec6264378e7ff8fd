"""Credential files: which are reloaded, and what the log says about them."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

from bytepair_server.auth import callers
from bytepair_server.auth.callers import Callers
from bytepair_server.auth.reload import Watched
from bytepair_server.auth.tls import TlsPaths
from bytepair_server.config.settings import Settings
from bytepair_server.config.types import split_address
from bytepair_server.observability import logs
from bytepair_server.rpc.call import ANONYMOUS
from bytepair_server.transport.interface import TlsFiles

_UNIX: Final = "unix:"


def watched_paths(settings: Settings, base_dir: Path) -> dict[str, tuple[Path, ...]]:
    """The files that are reloaded when they change, by kind."""
    tls = (settings.tls_cert_file, settings.tls_key_file, settings.tls_client_ca_file)
    files = {"api_keys": (settings.api_keys_file,), "tls": tls}
    named = {what: tuple(base_dir / p for p in paths if p) for what, paths in files.items()}
    return {what: paths for what, paths in named.items() if paths}


def watched(
    settings: Settings,
    base_dir: Path,
    known: Callers,
    tls: TlsPaths | None,
    replace_tls: Callable[[TlsFiles], None],
) -> list[Watched[Any]]:
    """How each kind is reloaded, and what takes the new content."""
    paths = watched_paths(settings, base_dir)
    found: list[Watched[Any]] = []
    if "api_keys" in paths:
        # Check everything, as at the start: a quota may name a caller that was removed.
        read = partial(callers.load, settings, base_dir)
        found.append(Watched("api_keys", paths["api_keys"], read, known.take_keys))
    if tls is not None:
        found.append(Watched("tls", paths["tls"], tls.read, replace_tls))
    return found


def log_access(log: logs.Log, address: str, known: Callers, tls: TlsPaths | None) -> None:
    """Log missing authentication or TLS, as a warning if the address is not private."""
    write = log.info if is_private(address) else log.warning
    if known.open:
        write(
            "no authentication is configured: anyone who can reach the port may call",
            caller=ANONYMOUS,
            grpc_address=address,
        )
    elif tls is None:
        write("no TLS: API keys and text can be read on the network", grpc_address=address)


def is_private(address: str) -> bool:
    """Whether only this machine can reach an address: a Unix socket, or loopback."""
    if address.startswith(_UNIX):
        return True
    host = split_address(address)[0]
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
