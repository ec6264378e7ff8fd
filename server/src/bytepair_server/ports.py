"""A port that several processes share: the kernel deals connections out among them."""

from __future__ import annotations

import socket
import sys
from typing import Final

from bytepair_server.settings_types import split_address
from bytepair_server.sources import ConfigurationError

#: Elsewhere SO_REUSEPORT is missing, or gives every connection to one of the processes.
CAN_SHARE: Final = sys.platform == "linux"


class SharedPort:
    """A port that is held, although nobody listens there yet.

    Attributes:
        address: Where processes are to listen, with the port that was chosen.
    """

    def __init__(self, address: str) -> None:
        """Find out whether the port is free, and hold it.

        Args:
            address: "host:port"; port 0: any free one.
        Raises:
            ConfigurationError: It cannot be listened at, or another process does.
        """
        host, port = split_address(address)
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
            family, _, _, _, where = found[0]
            # The first try must fail where anybody listens: with SO_REUSEPORT the kernel lets
            # two servers of one user share a port, and each would get some of the calls.
            self._bound(family, where, share=False).close()
            self._held: Final = self._bound(family, where, share=True)
        except OSError as error:
            raise ConfigurationError(
                f"grpc_address {address}: cannot listen there: {error.strerror}; if another "
                "process has the port, stop it, or set another address"
            ) from None
        self.address: Final = f"{address.rpartition(':')[0]}:{self._held.getsockname()[1]}"

    def close(self) -> None:
        """Hold it no longer."""
        self._held.close()

    @staticmethod
    def _bound(family: int, where: tuple[object, ...], *, share: bool) -> socket.socket:
        held = socket.socket(family, socket.SOCK_STREAM)
        try:
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, int(share))
            held.bind(where)
        except OSError:
            held.close()
            raise
        return held
