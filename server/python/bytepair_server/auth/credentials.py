"""Where proving who one is meets gRPC: the port, what is read again, what the log says."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import grpc

from bytepair_server.auth import callers
from bytepair_server.auth.callers import Callers
from bytepair_server.auth.reload import Watched
from bytepair_server.auth.tls import Tls
from bytepair_server.config.settings import Settings
from bytepair_server.config.types import split_address
from bytepair_server.observability import logs
from bytepair_server.rpc.call import ANONYMOUS

_UNIX: Final = "unix:"


def bind(server: grpc.aio.Server, address: str, tls: Tls | None, unix_socket_mode: str) -> int:
    """Bind the port, or the Unix socket.

    Args:
        server: Not started yet.
        address: As in the settings.
        tls: With which certificate; None for no TLS.
        unix_socket_mode: Permissions of the socket's file, octal.
    Returns:
        The port, or 1 for a socket; 0 if that failed.
    Raises:
        RuntimeError: That failed, and gRPC has said why.
    """
    with _umask(0o777 & ~int(unix_socket_mode, 8) if address.startswith(_UNIX) else None):
        if tls is None:
            return server.add_insecure_port(address)
        return server.add_secure_port(address, tls.credentials())


@contextmanager
def _umask(mask: int | None) -> Iterator[None]:
    """While the block runs, files are made without these permissions: a socket that got its
    permissions afterwards would be open to others for a moment."""
    if mask is None:
        yield
        return
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def watched_paths(settings: Settings, base_dir: Path) -> dict[str, tuple[Path, ...]]:
    """The files that are read again when they change, by what they are."""
    tls = (settings.tls_cert_file, settings.tls_key_file, settings.tls_client_ca_file)
    files = {"api_keys": (settings.api_keys_file,), "tls": tls}
    named = {what: tuple(base_dir / p for p in paths if p) for what, paths in files.items()}
    return {what: paths for what, paths in named.items() if paths}


def watched(
    settings: Settings, base_dir: Path, known: Callers, tls: Tls | None
) -> list[Watched[Any]]:
    """How they are read again, and who uses them."""
    paths = watched_paths(settings, base_dir)
    found: list[Watched[Any]] = []
    if "api_keys" in paths:
        # All of it, as at the start: a quota or a ceiling may be for a caller that has gone.
        read = partial(callers.load, settings, base_dir)
        found.append(Watched("api_keys", paths["api_keys"], read, known.take_keys))
    if tls is not None:
        found.append(Watched("tls", paths["tls"], tls.files.read, tls.replace))
    return found


def tell(log: logs.Log, address: str, known: Callers, tls: Tls | None) -> None:
    """Log who may call, as a warning where that is whoever reaches the port from outside."""
    told = log.info if is_private(address) else log.warning
    if known.open:
        told(
            "nobody is asked who calls: whoever reaches the port may",
            caller=ANONYMOUS,
            grpc_address=address,
        )
    elif tls is None:
        told("no TLS: API keys and text can be read on the way", grpc_address=address)


def is_private(address: str) -> bool:
    """Whether only this machine reaches an address: a Unix socket, or loopback."""
    if address.startswith(_UNIX):
        return True
    host = split_address(address)[0]
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
