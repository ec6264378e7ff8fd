"""The sockets that gRPC listens at and talks through, as far as Linux lets the rest of the process
reach them: to refuse addresses, and to hang up.

grpcio does neither. A refused address gets no answer to its SYN, as from a firewall: that costs
this process nothing, and whoever is refused tries again by himself, after a second at first. It is
done by asking the address for the signatures of RFC 2385, which only routers make: of what Linux
lets a process without rights do to a port, this alone is told by the address. (A packet filter
would do as well; of TCP's sockets it takes CAP_NET_ADMIN in newer kernels.)
"""

from __future__ import annotations

import ctypes
import errno
import ipaddress
import os
import socket
import struct
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Final
from urllib.parse import unquote

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

#: Of IPv6 one customer has as many addresses as he likes, all with the same first half.
IPV6_PREFIX: Final = 64
#: The kernel holds some 150 bytes for each, of the 20 KiB that older ones allow a socket.
MAX_REFUSED: Final = 100
#: Connections that wait to be accepted; more are dropped, and tried again by the other end. gRPC's
#: thread accepts all that are there before it does anything else, which of 4,096 takes tenths of a
#: second.
MAX_ACCEPTABLE: Final = 256
#: Who was sent no more packets was never answered much: the beginning of HTTP/2 takes some three.
YOUNG_PACKETS: Final = 8

#: There are no descriptors.
NONE_LEFT: Final = (errno.EMFILE, errno.ENFILE)

#: <linux/tcp.h>: where in `struct tcp_info` stands how many packets arrived at the other end (since
#: Linux 4.18); what sets a key for a network, since 4.13.
_DELIVERED_AT: Final = 192
_TCP_MD5SIG_EXT, _FOR_PREFIX = 32, 1
_KEY_BYTES: Final = 16
_ADDRESS_BYTES, _MOST_KEY_BYTES = 128, 80
#: <asm-generic/socket.h>, <linux/sock_diag.h>: the counts of a socket, among them its drops.
_SO_MEMINFO, _DROPS_AT = 55, 32
_TCP: Final = (socket.AF_INET, socket.AF_INET6)
_NOWHERE: Final = struct.pack("@H14x", socket.AF_UNSPEC)


Address = ipaddress.IPv4Address | ipaddress.IPv6Address
#: Whose connection, and its port.
Peer = tuple[Address, int]


def peer_of(name: str) -> Peer | None:
    """A peer as gRPC names it: "ipv4:192.0.2.1:50051", "ipv6:%5B::1%5D:50051".

    Returns:
        Its address and port; None where it has none, as at a Unix socket.
    """
    kind, _, rest = name.partition(":")
    if kind not in ("ipv4", "ipv6"):
        return None
    host, _, port = rest.rpartition(":")
    return _address(unquote(host).strip("[]")), int(port)


@lru_cache(maxsize=1024)
def network_of(address: Address) -> Network:
    """Whom to refuse for an address: it, or of IPv6 all with the same first half."""
    if address.version == 4:
        return ipaddress.IPv4Network(int(address))
    return ipaddress.IPv6Network((int(address), IPV6_PREFIX), strict=False)


@lru_cache(maxsize=1024)
def _address(host: str) -> Address:
    address = ipaddress.ip_address(host.partition("%")[0])
    return getattr(address, "ipv4_mapped", None) or address


class Sockets:
    """The TCP sockets of this process at one port."""

    def __init__(self, port: int) -> None:
        """Find those that listen, and let no more wait there than MAX_ACCEPTABLE.

        Args:
            port: Where gRPC listens already.
        Raises:
            OSError: The kernel does not tell which descriptors there are.
        """
        self._port: Final = port
        self._connect: Final = ctypes.CDLL(None).connect
        # Descriptors are what a flood may leave none of, and one is taken to look at another.
        self._spare: Final = _Spare()
        self._listeners: Final = [
            own
            for own, found in self._all()
            if found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
        ]
        for listener in self._listening():
            listener.listen(MAX_ACCEPTABLE)

    @staticmethod
    def can_be_reached() -> bool:
        """Whether this is a system where any of it can be tried."""
        return sys.platform == "linux"

    def close(self) -> None:
        """Give back what is held: no socket of gRPC's."""
        self._spare.close()

    def refuse(self, network: Network) -> None:
        """Let nobody of a network connect from now on.

        Args:
            network: Whom; of at most MAX_REFUSED.
        Raises:
            OSError: The kernel cannot do it.
        """
        for listener in self._listening():
            _ask_for_signatures(listener, network, os.urandom(_KEY_BYTES))

    def let_in(self, network: Network) -> None:
        """Let a network connect again that was refused.

        Raises:
            OSError: It was not.
        """
        for listener in self._listening():
            _ask_for_signatures(listener, network, b"")

    def dropped(self) -> int:
        """How many attempts to connect were dropped here so far: those of who is refused, and those
        that came faster than gRPC takes them.

        Raises:
            OSError: The kernel does not tell.
        """
        total = 0
        for listener in self._listening():
            counts = listener.getsockopt(socket.SOL_SOCKET, _SO_MEMINFO, _DROPS_AT + 4)
            total += struct.unpack_from("=I", counts, _DROPS_AT)[0]
        return total

    def hang_up(
        self, floods: Mapping[Network, Collection[Peer]]
    ) -> tuple[int, dict[Network, set[Peer]]]:
        """End connections at once, and drop what has come of them unread.

        Of a network that floods those of some peers are ended, and all that were hardly answered
        yet, for to find out what they are would take as long as to serve them; of others, those
        whose other end is gone.

        Args:
            floods: The networks, and of each which peers for sure.
        Returns:
            How many were ended, and of each network the peers whose connections go on.
        Raises:
            OSError: The kernel does not tell which there are, or has no descriptor left.
        """
        ended, spared = 0, {network: set[Peer]() for network in floods}
        for own, link in self._all():
            if own in self._listeners:
                continue
            with suppress(OSError):  # it ended meanwhile
                try:
                    host, port, *_ = link.getpeername()
                except OSError:
                    # The other end is gone; what has come of it is yet to be read.
                    ended += self._reset(link)
                    continue
                peer = _address(host), port
                network = network_of(peer[0])
                if network not in floods:
                    continue
                if peer in floods[network] or _is_young(link):
                    ended += self._reset(link)
                else:
                    spared[network].add(peer)
        return ended, spared

    def _reset(self, link: socket.socket) -> bool:
        # `shutdown` would leave what has come to be read; to connect to nowhere drops it
        # (tcp_disconnect of the kernel), and tells the other end by a RST.
        return bool(self._connect(link.fileno(), _NOWHERE, len(_NOWHERE)) == 0)

    def _listening(self) -> Iterator[socket.socket]:
        for descriptor in self._listeners:
            with self._spare.given(), _duplicate(descriptor) as found:
                yield found

    def _all(self) -> Iterator[tuple[int, socket.socket]]:
        """Those of this process at the port, by their descriptors. Each is seen by another
        descriptor that lasts until the next is asked for: gRPC closes its own at any time, and the
        number may be another's then."""
        with self._spare.given():
            for own in [int(each.name) for each in Path("/proc/self/fd").iterdir()]:
                try:
                    with _duplicate(own) as found:
                        if self._is_at_port(found):
                            yield own, found
                except OSError as error:  # it is closed, or no socket
                    if error.errno in NONE_LEFT:
                        raise

    def _is_at_port(self, found: socket.socket) -> bool:
        is_tcp = found.family in _TCP and found.type == socket.SOCK_STREAM
        return is_tcp and bool(found.getsockname()[1] == self._port)


class _Spare:
    """Two descriptors that are kept for when there are no others."""

    def __init__(self) -> None:
        self._kept: Final[list[int]] = []
        self._keep()

    @contextmanager
    def given(self) -> Iterator[None]:
        """Give them back to the system while the block runs."""
        self.close()
        try:
            yield
        finally:
            self._keep()

    def close(self) -> None:
        """Give them back."""
        while self._kept:
            os.close(self._kept.pop())

    def _keep(self) -> None:
        with suppress(OSError):
            while len(self._kept) < 2:
                self._kept.append(os.open(os.devnull, os.O_RDONLY))


@contextmanager
def _duplicate(descriptor: int) -> Iterator[socket.socket]:
    """Raises OSError where it is closed or no socket."""
    own = os.dup(descriptor)
    try:
        found = socket.socket(fileno=own)
    except OSError:
        os.close(own)
        raise
    with found:
        yield found


def _is_young(link: socket.socket) -> bool:
    told = link.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _DELIVERED_AT + 4)
    if len(told) < _DELIVERED_AT + 4:
        return False
    return bool(struct.unpack_from("=I", told, _DELIVERED_AT)[0] < YOUNG_PACKETS)


def _ask_for_signatures(listener: socket.socket, network: Network, key: bytes) -> None:
    """`setsockopt` with a `struct tcp_md5sig`; without a key it forgets the one that there is."""
    address, prefix = network.network_address, network.prefixlen
    if listener.family == socket.AF_INET6:
        if address.version == 4:
            address = ipaddress.IPv6Address(f"::ffff:{address}")
        where = struct.pack("=HHI16sI", socket.AF_INET6, 0, 0, address.packed, 0)
    elif address.version == 4:
        where = struct.pack("=HH4s", socket.AF_INET, 0, address.packed)
    else:
        return  # none of these comes here
    rest = struct.pack(f"=BBHi{_MOST_KEY_BYTES}s", _FOR_PREFIX, prefix, len(key), 0, key)
    said = where.ljust(_ADDRESS_BYTES, b"\0") + rest
    listener.setsockopt(socket.IPPROTO_TCP, _TCP_MD5SIG_EXT, said)
