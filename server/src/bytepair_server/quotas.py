"""How much each caller may ask for: requests and bytes per second, calls and streams at once.

Rates are token buckets: a bucket holds what may be asked for at once (the burst), fills at the
rate, and is full at first. A call that costs more than a full bucket is taken when the bucket is
full, and leaves a debt; so whatever the limits on sizes let in can be asked for at any rate.

What is counted is counted by this process: each server process gives each caller all of its
quota.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import monotonic
from typing import Final

from bytepair_server.callers import Callers
from bytepair_server.errors import QuotaExceeded
from bytepair_server.settings_callers import QuotaTable

#: When to try again where that depends on calls or streams of the caller's own.
RETRY_SECONDS: Final = 0.25

Clock = Callable[[], float]


class Bucket:
    """A token bucket."""

    __slots__ = ("_at", "_burst", "_clock", "_level", "_rate")

    def __init__(self, rate: float, burst: float, clock: Clock) -> None:
        """Make a full one.

        Args:
            rate: Tokens per second, above 0.
            burst: Tokens that it holds at most, above 0.
            clock: Seconds that never go back.
        """
        self._rate: Final = rate
        self._burst: Final = burst
        self._clock: Final = clock
        self._level = burst
        self._at = clock()

    def wait(self, cost: float) -> float:
        """Seconds until so many tokens can be taken; 0 if they can now."""
        now = self._clock()
        self._level = min(self._burst, self._level + (now - self._at) * self._rate)
        self._at = now
        return max(0.0, min(cost, self._burst) - self._level) / self._rate

    def take(self, cost: float) -> None:
        """Take tokens, more than there are where need be."""
        self._level -= cost


class Quota:
    """What one caller has asked for, and may. For one event loop only."""

    __slots__ = (
        "_bytes",
        "_concurrent",
        "_max_concurrent",
        "_max_streams",
        "_requests",
        "_streams",
        "_table",
    )

    def __init__(self, table: QuotaTable, clock: Clock = monotonic) -> None:
        """Start with full buckets.

        Args:
            table: The limits; None in it is no limit.
            clock: As of `Bucket`.
        """
        self._table: Final = table
        self._requests = _bucket(table.requests_per_second, table.request_burst, clock)
        self._bytes = _bucket(table.input_bytes_per_second, table.input_burst_bytes, clock)
        self._max_concurrent: Final = table.concurrent_requests
        self._max_streams: Final = table.open_streams
        self._concurrent = 0
        self._streams = 0

    def enter(self, size: int) -> None:
        """Come in with a request; `leave` must follow.

        Args:
            size: Bytes of its message.
        Raises:
            QuotaExceeded: By one of the quotas; nothing is charged then.
        """
        limit = self._max_concurrent
        if limit is not None and self._concurrent >= limit:
            raise QuotaExceeded("concurrent_requests", limit, RETRY_SECONDS)
        self._charge(size)
        self._concurrent += 1

    def leave(self) -> None:
        """Go out."""
        self._concurrent -= 1

    def enter_stream(self) -> None:
        """Come in with a stream, which is one request; `leave_stream` must follow.

        Raises:
            QuotaExceeded: By one of the quotas; nothing is charged then.
        """
        limit = self._max_streams
        if limit is not None and self._streams >= limit:
            raise QuotaExceeded("open_streams", limit, RETRY_SECONDS)
        self._charge(0)
        self._streams += 1

    def leave_stream(self) -> None:
        """Go out with a stream."""
        self._streams -= 1

    def charge(self, size: int) -> None:
        """Take the bytes of a message of a stream, in debt where need be."""
        if self._bytes is not None:
            self._bytes.take(size)

    def debt(self) -> float:
        """Seconds until the bytes that were taken are paid for; 0 without a debt."""
        return 0.0 if self._bytes is None else self._bytes.wait(0)

    def _charge(self, size: int) -> None:
        """Take a request and its bytes, or neither."""
        requests, message_bytes, table = self._requests, self._bytes, self._table
        if requests is not None and (delay := requests.wait(1)):
            raise QuotaExceeded("requests_per_second", _known(table.requests_per_second), delay)
        if message_bytes is not None:
            # Also a stream, which has no bytes yet, has to wait for a debt to be paid.
            if delay := message_bytes.wait(size):
                limit = _known(table.input_bytes_per_second)
                raise QuotaExceeded("input_bytes_per_second", limit, delay)
            message_bytes.take(size)
        if requests is not None:
            requests.take(1)


class Quotas:
    """The quotas that are configured."""

    def __init__(self, tables: Mapping[str, QuotaTable], callers: Callers) -> None:
        """Take them from the setting `quotas`; who is in which group is told by `callers`."""
        self._tables: Final = tables
        self._callers: Final = callers
        self._of: Final[dict[str, Quota | None]] = {}

    def of(self, caller: str) -> Quota | None:
        """The quota of a caller; None if it may ask for any amount."""
        try:
            return self._of[caller]
        except KeyError:
            table = self.table(caller)
            quota = None if table == QuotaTable() else Quota(table)
            # As many as there are callers: who is none never gets here.
            self._of[caller] = quota
            return quota

    def table(self, caller: str) -> QuotaTable:
        """The limits of a caller: of each, the first that its own table, its group's and the
        default one know. A rate brings its burst with it."""
        found: dict[str, float | None] = {}
        for name in self._callers.ranks(caller):
            table = self._tables.get(name, QuotaTable())
            for limits in _TOGETHER:
                if getattr(table, limits[0]) is not None and limits[0] not in found:
                    found.update({limit: getattr(table, limit) for limit in limits})
        return QuotaTable.model_validate(found)


#: Limits that only mean something together, the one that decides first.
_TOGETHER: Final = (
    ("requests_per_second", "request_burst"),
    ("input_bytes_per_second", "input_burst_bytes"),
    ("concurrent_requests",),
    ("open_streams",),
)


def _bucket(rate: float | None, burst: int | None, clock: Clock) -> Bucket | None:
    if rate is None:
        return None
    # Less than one would let nothing in but in debt.
    return Bucket(rate, max(1.0, rate) if burst is None else burst, clock)


def _known(limit: float | None) -> float:
    assert limit is not None  # there is a bucket, so there is a rate
    return limit
