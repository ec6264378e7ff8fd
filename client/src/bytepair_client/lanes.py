"""Which calls wait, and what leaves when. Nothing here knows sockets, threads or event loops.

A lane is what may be joined: calls of one RPC with the same options. While few calls of a lane are
under way, the next one leaves at once and alone, so that nothing waits on a channel that is idle.
Those that come while more are under way gather, and leave together: when one that is under way
ends, when they are as many or as large as a batch may be, or when the first of them has waited
long enough.
"""

from __future__ import annotations

from typing import Final

from bytepair_client.errors import InputTooLarge, TokenizerError, Unimplemented
from bytepair_client.joint import Joint, Key, Member

#: Sent at once while fewer are under way.
MAX_AT_ONCE: Final = 4
MAX_ITEMS: Final = 64
#: Half of what gRPC keeps to try a call again (grpc.per_rpc_retry_buffer_size).
MAX_BYTES: Final = 128 * 1024
#: For the first of a gathering. Enough for others to come and go; few would notice it.
MAX_WAIT_S: Final = 0.002


class Lanes:
    """What gathers. To be used by one thread at a time.

    Attributes:
        max_wait: Seconds after which the first of a gathering is overdue.
    """

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        """Have nothing under way.

        Args:
            max_bytes: Of a request.
        """
        self._lanes: Final[dict[Key, _Lane]] = {}
        self.max_wait: Final = MAX_WAIT_S
        self._at_once: Final = MAX_AT_ONCE
        self._max_items = MAX_ITEMS
        self._max_bytes = min(MAX_BYTES, max_bytes)

    def try_alone(self, key: Key) -> bool:
        """Let a call leave by itself, if few of its lane are under way.

        Returns:
            Whether it has left; if not, it is to `gather`.
        """
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = _Lane()
        if lane.under_way < self._at_once or self._max_items < 2:
            lane.under_way += 1
            return True
        return False

    def gather(self, member: Member) -> Joint | None:
        """Let a call wait that did not leave by itself.

        Returns:
            What leaves now, with the call or before it; None for nothing.
        """
        lane = self._lanes[member.key]
        leaving = None
        if lane.waiting and lane.size + member.size > self._max_bytes:
            leaving = lane.leave()
        lane.waiting.append(member)
        lane.size += member.size
        if len(lane.waiting) >= self._max_items:
            leaving = lane.leave()
        return leaving

    def is_first(self, member: Member) -> bool:
        """Whether it is the first of those that gather, and has to see to it that they leave."""
        lane = self._lanes.get(member.key)
        return lane is not None and lane.is_first(member)

    def overdue(self, member: Member) -> Joint | None:
        """The first of a gathering has waited long enough.

        Returns:
            What leaves now; None if that has left already.
        """
        return self._lanes[member.key].leave() if self.is_first(member) else None

    def give_up(self, member: Member) -> Joint | None:
        """A caller waits no longer for a call that was not sent.

        Returns:
            What leaves now, as nobody is left to see to it; None for nothing.
        """
        lane = self._lanes[member.key]
        was_first = lane.is_first(member)
        lane.waiting.remove(member)
        lane.size -= member.size
        return lane.leave() if was_first and lane.waiting else None

    def ended(self, key: Key) -> Joint | None:
        """Something of this lane is not under way any more.

        Returns:
            What leaves now; None for nothing.
        """
        lane = self._lanes[key]
        lane.under_way -= 1
        if lane.waiting:
            return lane.leave() if lane.under_way < self._at_once else None
        if not lane.under_way:
            del self._lanes[key]
        return None

    def learn(self, error: TokenizerError) -> None:
        """Make batches no larger than the server takes, by what it said when it refused one."""
        if isinstance(error, Unimplemented):
            self._max_items = 1
        elif isinstance(error, InputTooLarge) and error.limit is not None:
            if error.field == "items":
                self._max_items = min(self._max_items, error.limit)
            elif error.field in ("items.text", "items.ids"):
                self._max_bytes = min(self._max_bytes, error.limit)


class _Lane:
    __slots__ = ("size", "under_way", "waiting")

    def __init__(self) -> None:
        self.under_way = 0
        self.waiting: list[Member] = []
        self.size = 0

    def is_first(self, member: Member) -> bool:
        return bool(self.waiting) and self.waiting[0] is member

    def leave(self) -> Joint:
        leaving = Joint(self.waiting)
        self.waiting = []
        self.size = 0
        self.under_way += 1
        return leaving
