"""Quotas of each caller: requests and bytes per second, calls and streams at once.

Rates are token buckets: a bucket holds the burst, fills at the rate, and is full at first. A call
that costs more than a full bucket is accepted when the bucket is full, and leaves a debt; so any
call within the size limits is accepted at some time.

Use is kept in the server's quota store, so a caller has one quota however many processes answer it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import monotonic
from typing import Final

from bytepair_server.auth.callers import Callers
from bytepair_server.config.callers import QuotaTable
from bytepair_server.errors import QuotaExceeded
from bytepair_server.workers.shared_quotas import Account, QuotaStore

#: When to try again where that depends on calls or streams of the caller's own.
RETRY_SECONDS: Final = 0.25

Clock = Callable[[], float]

#: What is counted while it runs: calls and streams.
_REQUESTS: Final = 0
_STREAMS: Final = 1


class Bucket:
    """A token bucket, in two cells: what was taken and did not fill up again, and until when
    that is reckoned."""

    __slots__ = ("_at", "_burst", "_cells", "_clock", "_rate")

    def __init__(
        self, rate: float, burst: float, cells: memoryview[float], at: int, clock: Clock
    ) -> None:
        """Take the bucket as the cells say that it is.

        Args:
            rate: Tokens per second, above 0.
            burst: Tokens that it holds at most, above 0.
            cells: Zeros are a full bucket.
            at: The first of its two cells.
            clock: Seconds that never go back, and are the same in every process.
        """
        self._rate: Final = rate
        self._burst: Final = burst
        self._cells: Final = cells
        self._at: Final = at
        self._clock: Final = clock

    def wait(self, cost: float) -> float:
        """Seconds until this many tokens can be taken; 0 if they can now."""
        cells, at, now = self._cells, self._at, self._clock()
        taken = max(0.0, cells[at] - (now - cells[at + 1]) * self._rate)
        cells[at], cells[at + 1] = taken, now
        return max(0.0, min(cost, self._burst) - (self._burst - taken)) / self._rate

    def take(self, cost: float) -> None:
        """Take tokens, more than there are where need be."""
        self._cells[self._at] += cost


class Quota:
    """The use and the limits of one caller. For one event loop of each process."""

    __slots__ = ("_account", "_bytes", "_max_concurrent", "_max_streams", "_requests", "_table")

    def __init__(self, table: QuotaTable, account: Account, clock: Clock = monotonic) -> None:
        """Go on where the account stands.

        Args:
            table: The limits; None in it is no limit.
            account: What the caller has had.
            clock: As of `Bucket`.
        """
        cells = account.cells
        self._table: Final = table
        self._account: Final = account
        self._requests = _bucket(table.requests_per_second, table.request_burst, cells, 0, clock)
        self._bytes = _bucket(
            table.input_bytes_per_second, table.input_burst_bytes, cells, 2, clock
        )
        self._max_concurrent: Final = table.concurrent_requests
        self._max_streams: Final = table.open_streams

    def enter(self, size: int) -> None:
        """Come in with a request; `leave` must follow.

        Args:
            size: Bytes of its message.
        Raises:
            QuotaExceeded: By one of the quotas; nothing is charged then.
        """
        self._come_in(_REQUESTS, "concurrent_requests", self._max_concurrent, size)

    def leave(self) -> None:
        """Go out."""
        self._account.leave(_REQUESTS)

    def enter_stream(self) -> None:
        """Come in with a stream, which is one request; `leave_stream` must follow.

        Raises:
            QuotaExceeded: By one of the quotas; nothing is charged then.
        """
        # It has no bytes yet; but a debt is to be paid first.
        self._come_in(_STREAMS, "open_streams", self._max_streams, 0)

    def leave_stream(self) -> None:
        """Go out with a stream."""
        self._account.leave(_STREAMS)

    def charge(self, size: int) -> None:
        """Take the bytes of a message of a stream, in debt where need be."""
        if self._bytes is not None:
            with self._account.locked():
                self._bytes.take(size)

    def debt(self) -> float:
        """Seconds until the bytes that were taken are paid for; 0 without a debt."""
        if self._bytes is None:
            return 0.0
        with self._account.locked():
            return self._bytes.wait(0)

    def _come_in(self, kind: int, name: str, limit: int | None, size: int) -> None:
        with self._account.locked():
            if limit is not None and self._account.active(kind) >= limit:
                raise QuotaExceeded(name, limit, RETRY_SECONDS)
            self._charge(size)
            self._account.enter(kind)

    def _charge(self, size: int) -> None:
        """Take a request and its bytes, or neither."""
        requests, message_bytes, table = self._requests, self._bytes, self._table
        if requests is not None and (delay := requests.wait(1)):
            raise QuotaExceeded("requests_per_second", _known(table.requests_per_second), delay)
        if message_bytes is not None:
            if delay := message_bytes.wait(size):
                limit = _known(table.input_bytes_per_second)
                raise QuotaExceeded("input_bytes_per_second", limit, delay)
            message_bytes.take(size)
        if requests is not None:
            requests.take(1)


class Quotas:
    """The quotas that are configured."""

    def __init__(
        self,
        tables: Mapping[str, QuotaTable],
        callers: Callers,
        quota_store: QuotaStore | None = None,
    ) -> None:
        """Look up no quota yet.

        Args:
            tables: The setting `quotas`.
            callers: The callers and their groups.
            quota_store: The use of all callers; None for a store of this process alone.
        """
        self._tables: Final = tables
        self._quota_store: Final = QuotaStore() if quota_store is None else quota_store
        self._callers: Final = callers
        self._of: Final[dict[str, Quota | None]] = {}

    def of(self, caller: str) -> Quota | None:
        """The quota of a caller; None if it may ask for any amount."""
        try:
            return self._of[caller]
        except KeyError:
            table = self.table(caller)
            is_free = table == QuotaTable()
            quota = None if is_free else Quota(table, self._quota_store.account(caller))
            # As many as there are callers: unknown ones never get here.
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


def _bucket(
    rate: float | None, burst: int | None, cells: memoryview[float], at: int, clock: Clock
) -> Bucket | None:
    if rate is None:
        return None
    # Less than one would let nothing in but in debt.
    return Bucket(rate, max(1.0, rate) if burst is None else burst, cells, at, clock)


def _known(limit: float | None) -> float:
    assert limit is not None  # there is a bucket, so there is a rate
    return limit
