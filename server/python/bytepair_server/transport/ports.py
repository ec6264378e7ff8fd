"""Listening sockets, shared by several processes, and the reasons why one cannot be bound."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from bytepair_server.config.loader import ConfigurationError
from bytepair_server.config.types import split_address
from bytepair_server.system_limits import OUT_OF_DESCRIPTORS

#: Backlog of connections that are not accepted yet.
BACKLOG: Final = 1024
#: Linux' maximum for a Unix socket.
MAX_PATH_BYTES: Final = 107
#: On other platforms SO_REUSEPORT is missing or does not balance connections.
CAN_SHARE: Final = sys.platform == "linux"


def reserve(address: str) -> socket.socket:
    """Bind a port that several processes will share, until the socket is closed.

    Args:
        address: "host:port"; port 0: any free one.
    Raises:
        ConfigurationError: It cannot be listened at, or another process does.
    """
    try:
        # First without SO_REUSEPORT, which must fail if another process listens: with it two
        # servers of one user could share the port, and each would get some of the calls.
        _bound(address, share=False).close()
        return _bound(address, share=True)
    except (OSError, UnicodeError) as error:
        raise _explained(address, error) from None


def with_port(address: str, bound: socket.socket) -> str:
    """The address with the port of a socket that is bound to it."""
    return f"{address.rpartition(':')[0]}:{bound.getsockname()[1]}"


def unavailable(address: str, reason: str) -> ConfigurationError:
    """The error for an address that cannot be bound."""
    return ConfigurationError(
        f"grpc_address {address}: cannot listen there: {reason}; set another address by "
        "--grpc-address"
    )


def listen(address: str, *, share: bool, unix_socket_mode: str) -> socket.socket:
    """Make a listening socket.

    Args:
        address: "host:port", or gRPC's "unix:path".
        share: Other processes listen there too.
        unix_socket_mode: Permissions of a Unix socket's file, octal.
    Raises:
        ConfigurationError: It cannot be listened at.
    """
    try:
        if address.startswith("unix:"):
            return _listen_at_file(address, int(unix_socket_mode, 8))
        listener = _bound(address, share=share)
        listener.listen(BACKLOG)
        return listener
    except (OSError, UnicodeError) as error:
        raise _explained(address, error) from None


def check(address: str) -> None:
    """Check whether a Unix socket can be made. A port is not tried: a running server may have it.

    Raises:
        ConfigurationError: It cannot.
    """
    if address.startswith("unix:"):
        path = _path(address)
        if not path.parent.is_dir():
            raise unavailable(address, "its folder does not exist")
        if not os.access(path.parent, os.W_OK):
            raise unavailable(address, "its folder cannot be written to")
        if path.exists() and not path.is_socket():
            raise unavailable(address, "the file is no socket")
        if len(os.fsencode(path)) > MAX_PATH_BYTES:
            raise unavailable(address, f"its path has more than {MAX_PATH_BYTES} bytes")


def _path(address: str) -> Path:
    """The path of "unix:path" or "unix:///path"."""
    return Path(address.removeprefix("unix:").removeprefix("//"))


def _listen_at_file(address: str, mode: int) -> socket.socket:
    path = _path(address)
    if path.is_socket():
        path.unlink()  # left by a server that has ended: `is_served` is checked before
    elif path.exists():
        raise OSError("the file is no socket")
    listener = socket.socket(socket.AF_UNIX)
    try:
        with created_with(mode):
            listener.bind(str(path))
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener


@contextmanager
def created_with(mode: int) -> Iterator[None]:
    """Create sockets with these permissions while the block runs. Setting them afterwards would
    leave a socket open to others for a moment."""
    before = os.umask(0o777 & ~mode)
    try:
        yield
    finally:
        os.umask(before)


def is_served(address: str) -> bool:
    """Whether a process listens on a Unix socket."""
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(str(_path(address)))
        except OSError:
            return False
    return True


def _explained(address: str, error: Exception) -> Exception:
    if isinstance(error, OSError) and error.errno in OUT_OF_DESCRIPTORS:
        return error  # another address would not help
    return unavailable(address, getattr(error, "strerror", None) or str(error))


def _bound(address: str, *, share: bool) -> socket.socket:
    host, port = split_address(address)
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, _, _, _, where = found[0]
    held = socket.socket(family, socket.SOCK_STREAM)
    try:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if share:
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        held.bind(where)
    except OSError:
        held.close()
        raise
    return held
