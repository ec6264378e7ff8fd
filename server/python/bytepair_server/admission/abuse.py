"""Floods of calls that come to nothing, told by the addresses that they come from.

A call that is reset at once costs its caller some bytes, and the event loop some eighty
microseconds. All that have come wait in one queue, so that a few connections full of them, or ever
new ones, keep the loop from everybody else; HTTP/2 bounds how many are open, and these are not. So
an address from which hardly anything else comes is hung up on, and refused by the kernel for a
while. docs/reliability.md has the figures.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Mapping
from contextlib import suppress
from time import monotonic
from typing import Final

from bytepair_server.observability import logs
from bytepair_server.observability.metrics import Metrics
from bytepair_server.transport.sockets import (
    MAX_REFUSED,
    NONE_LEFT,
    Network,
    Peer,
    Sockets,
    network_of,
    peer_of,
)

#: An address is refused for so long from the last time that it was found out.
REFUSED_SECONDS: Final = 30.0
#: Calls are counted for so long, and then anew.
WINDOW_SECONDS: Final = 1.0
#: No flood comes from an address of which one call in so many was answered: it may be a proxy's,
#: and others behind it do no harm.
ONE_IN: Final = 10
#: From this part of the limit on answers are counted, too. Before, they cost nothing.
SUSPICIOUS: Final = 0.25
#: How often it is seen to who is to be let in again.
LOOK_SECONDS: Final = 1.0


class Floods:
    """Who is refused. For one event loop.

    Attributes:
        suspicious: `answered` is to be told of calls.
        active: Somebody is refused, and `hear_of` is to be told of calls.
    """

    def __init__(
        self, most: int, metrics: Metrics, log: logs.Log, *, seconds: float = REFUSED_SECONDS
    ) -> None:
        """Refuse nobody yet.

        Args:
            most: Calls that may come to nothing in a second from one address; 0: any number.
            metrics: Where floods, and attempts to connect that were dropped, are counted.
            log: Where the beginning and the end of a flood is told.
            seconds: For how long an address is refused.
        """
        self.suspicious = False
        self.active = False
        self._most: Final = most
        self._metrics: Final = metrics
        self._log: Final = log
        self._seconds: Final = seconds
        self._sockets: Sockets | None = None
        self._since = 0.0
        self._nothing: Final[Counter[Network]] = Counter()
        self._answered: Final[Counter[Network]] = Counter()
        self._peers: Final[dict[Network, set[Peer]]] = {}
        #: Until when.
        self._refused: Final[dict[Network, float]] = {}
        #: Connections from there that go on.
        self._spared: Final[dict[Network, set[Peer]]] = {}
        self._dropped = 0
        self._timer: asyncio.TimerHandle | None = None
        metrics.refused_addresses.set_function(lambda: len(self._refused))

    def guard(self, port: int) -> None:
        """Begin, at a TCP port that is listened at."""
        if Sockets.can_be_reached():
            try:
                self._sockets = Sockets(port)
            except OSError as error:
                self._log.warning("floods cannot be refused", error=error.strerror)

    def close(self) -> None:
        """Refuse nobody any more."""
        if self._sockets is not None:
            for network in list(self._refused):
                with suppress(OSError):
                    self._let_in(self._sockets, network)
            self._refused.clear()
            self._sockets.close()
            self._sockets = None
        self.active = self.suspicious = False
        if self._timer is not None:
            self._timer.cancel()

    def answered(self, name: str) -> None:
        """Take note that a call was answered.

        Args:
            name: Its peer, as gRPC names it.
        """
        now = monotonic()
        if now - self._since > WINDOW_SECONDS:
            self._begin_anew(now)
        elif (peer := peer_of(name)) is not None:
            self._answered[network_of(peer[0])] += 1

    def came_to_nothing(self, name: str) -> None:
        """Take note that a call ended before anything was done for it, as its caller gave it up at
        once or is nobody who is known.

        Args:
            name: Its peer, as gRPC names it.
        """
        if not self._most or self._sockets is None or (peer := peer_of(name)) is None:
            return
        now = monotonic()
        if now - self._since > WINDOW_SECONDS:
            self._begin_anew(now)
        network = network_of(peer[0])
        self._nothing[network] += 1
        self._peers.setdefault(network, set()).add(peer)
        come = self._nothing[network]
        self.suspicious |= come > SUSPICIOUS * self._most
        if come > self._most and self._answered[network] * (ONE_IN - 1) < come:
            peers = self._peers.pop(network)
            del self._nothing[network]
            try:
                self._refuse(self._sockets, network, peers, now)
            except OSError as error:
                self._give_up(network, error)

    def hear_of(self, name: str) -> None:
        """Take note that a call has come.

        Args:
            name: Its peer, as gRPC names it.
        Raises:
            CancelledError: Its connection was ended, and nobody waits for it. gRPC still tells of
                what had come before.
        """
        peer = peer_of(name)
        if peer is not None and peer not in self._spared.get(network_of(peer[0]), (peer,)):
            raise asyncio.CancelledError

    def _begin_anew(self, now: float) -> None:
        self._since = now
        self.suspicious = False
        self._nothing.clear()
        self._answered.clear()
        self._peers.clear()

    def _refuse(self, sockets: Sockets, network: Network, peers: set[Peer], now: float) -> None:
        is_new = network not in self._refused
        if is_new:
            if len(self._refused) >= MAX_REFUSED:
                self._let_in(sockets, min(self._refused, key=self._refused.__getitem__))
            if not self._refused:
                self._dropped = sockets.dropped()
            sockets.refuse(network)
        self._refused[network] = now + self._seconds
        self.active = True
        if self._timer is None:
            self._look_later()
        ended = 0
        try:
            ended = self._hang_up(sockets, {network: peers})
        finally:
            if is_new:
                self._metrics.floods.inc()
                self._log.warning(
                    "a flood of calls that come to nothing: its address is refused",
                    address=str(network),
                    connections_ended=ended,
                    refused_seconds=self._seconds,
                )

    def _hang_up(self, sockets: Sockets, floods: Mapping[Network, Collection[Peer]]) -> int:
        ended, spared = sockets.hang_up(floods)
        self._spared.update(spared)
        return ended

    def _look_later(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(LOOK_SECONDS, self._look)

    def _look(self) -> None:
        """Count what was dropped, end what was on its way in when its address was refused, and let
        those in again whose time is over."""
        assert self._sockets is not None  # `close` ends the timer
        self._timer = None
        now = monotonic()
        over = [network for network, until in self._refused.items() if until <= now]
        try:
            dropped = self._sockets.dropped()
            self._metrics.dropped_connections.inc(max(0, dropped - self._dropped))
            self._dropped = dropped
            for network in over:
                self._let_in(self._sockets, network)
                self._log.info("an address is let in again", address=str(network))
            since = now + self._seconds - 2 * LOOK_SECONDS
            late = {network: () for network, until in self._refused.items() if until > since}
            if late:
                self._hang_up(self._sockets, late)
        except OSError as error:
            self._give_up(next(iter(self._refused)), error)
        self.active = bool(self._refused)
        if self._refused:
            self._look_later()

    def _let_in(self, sockets: Sockets, network: Network) -> None:
        sockets.let_in(network)
        del self._refused[network]
        self._spared.pop(network, None)

    def _give_up(self, network: Network, error: OSError) -> None:
        if error.errno in NONE_LEFT:
            return  # the next time there may be descriptors again
        self._log.error(
            "a flood of calls that come to nothing cannot be refused, for this system does not "
            "let it: put a proxy or a firewall before the port",
            address=str(network),
            error=error.strerror,
        )
        self.close()
