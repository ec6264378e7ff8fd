"""Quotas of each caller: requests and bytes per second, concurrent calls and open streams.

Rates are token buckets: a bucket holds the burst, fills at the rate, and starts full. A call that
costs more than a full bucket is accepted when the bucket is full, and leaves a debt. So every call
within the size limits is accepted at some time.

The use is in the quota store, which all workers share: a caller has one quota for the whole server.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil
from time import monotonic
from typing import Final

from bytepair_server.auth.callers import Callers
from bytepair_server.config.tables import LIMITS_TOGETHER, QuotaTable
from bytepair_server.errors import RETRY_SECONDS, QuotaExceeded
from bytepair_server.shared.memory import Cells
from bytepair_server.shared.quotas import Account, QuotaStore

Clock = Callable[[], float]

#: The kinds of an account's active counts.
_REQUESTS: Final = 0
_STREAMS: Final = 1


@dataclass(frozen=True, slots=True)
class Bucket:
    """A token bucket in two shared cells.

    Attributes:
        rate: Tokens per second, above 0.
        burst: Capacity in tokens, above 0.
        cells: The tokens that are missing, and the time of that value. Zeros are a full bucket.
        clock: A monotonic clock in seconds that all processes share.
    """

    rate: float
    burst: float
    cells: Cells
    clock: Clock

    def wait(self, cost: float) -> float:
        """Seconds until `cost` tokens can be taken; 0 if they can be taken now."""
        missing, then = self.cells
        now = self.clock()
        missing = max(0.0, missing - (now - then) * self.rate)
        self.cells[0], self.cells[1] = missing, now
        return max(0.0, min(cost, self.burst) - (self.burst - missing)) / self.rate

    def take(self, cost: float) -> None:
        """Take tokens. The bucket may go into debt."""
        self.cells[0] += cost


class Quota:
    """One caller's use and limits. Not thread-safe."""

    __slots__ = ("_account", "_bytes", "_max_concurrent", "_max_streams", "_requests")

    def __init__(self, table: QuotaTable, account: Account, clock: Clock = monotonic) -> None:
        """Apply the limits of a table to a caller's use so far; `clock` is that of `Bucket`."""
        self._account: Final = account
        self._requests = _bucket(
            table.requests_per_second, table.request_burst, account.requests, clock
        )
        self._bytes = _bucket(
            table.input_bytes_per_second, table.input_burst_bytes, account.input_bytes, clock
        )
        self._max_concurrent: Final = table.concurrent_requests
        self._max_streams: Final = table.open_streams

    def enter(self, size: int, *, is_stream: bool = False) -> None:
        """Start a request, or a stream, which counts as one request; `leave` must follow.

        Args:
            size: Bytes of its message; 0 if it is not read yet. A debt has to be paid first.
            is_stream: Whether it is a stream.
        Raises:
            QuotaExceeded: A quota is used up. Nothing is charged.
        """
        kind, name, limit = _REQUESTS, "concurrent_requests", self._max_concurrent
        if is_stream:
            kind, name, limit = _STREAMS, "open_streams", self._max_streams
        with self._account.lock:
            if limit is not None and self._account.active(kind) >= limit:
                raise QuotaExceeded(name, limit, RETRY_SECONDS)
            requests, message_bytes = self._requests, self._bytes
            if requests is not None and (delay := requests.wait(1)):
                raise _exceeded("requests_per_second", requests, delay)
            if message_bytes is not None:
                if delay := message_bytes.wait(size):
                    raise _exceeded("input_bytes_per_second", message_bytes, delay)
                message_bytes.take(size)
            if requests is not None:
                requests.take(1)
            self._account.enter(kind)

    def leave(self, *, is_stream: bool = False) -> None:
        """End a request or a stream."""
        self._account.leave(_STREAMS if is_stream else _REQUESTS)

    def charge_message(self, size: int) -> None:
        """Charge the bytes of a request's message, which was read after `enter`.

        Raises:
            QuotaExceeded: The quota of bytes is used up. The request is no longer charged.
        """
        if self._bytes is None:
            return
        with self._account.lock:
            if delay := self._bytes.wait(size):
                if self._requests is not None:
                    self._requests.take(-1)
                raise _exceeded("input_bytes_per_second", self._bytes, delay)
            self._bytes.take(size)

    def charge(self, size: int) -> None:
        """Charge the bytes of a stream's message. The account may go into debt."""
        if self._bytes is not None:
            with self._account.lock:
                self._bytes.take(size)

    def debt(self) -> float:
        """Seconds until the debt of bytes is paid; 0 without a debt."""
        if self._bytes is None:
            return 0.0
        with self._account.lock:
            return self._bytes.wait(0)


class Quotas:
    """The configured quotas."""

    def __init__(
        self,
        tables: Mapping[str, QuotaTable],
        callers: Callers,
        quota_store: QuotaStore | None = None,
    ) -> None:
        """Use the setting `quotas`. Each quota is looked up when its caller first calls; without
        `quota_store`, use is counted for this process only."""
        self._tables: Final = tables
        self._quota_store: Final = QuotaStore() if quota_store is None else quota_store
        self._callers: Final = callers
        self._of: Final[dict[str, Quota | None]] = {}

    def of(self, caller: str) -> Quota | None:
        """The quota of a caller; None if it has no limits."""
        # Bounded by the number of callers: unknown ones never get here.
        if caller not in self._of:
            table = self.table(caller)
            is_free = table == QuotaTable()
            self._of[caller] = None if is_free else Quota(table, self._quota_store.account(caller))
        return self._of[caller]

    def table(self, caller: str) -> QuotaTable:
        """The limits of a caller: each from the first of its own, its group's and the default table
        that sets it. A burst comes from the table of its rate."""
        found: dict[str, float | None] = {}
        for name in self._callers.ranks(caller):
            table = self._tables.get(name, QuotaTable())
            for limits in LIMITS_TOGETHER:
                if getattr(table, limits[0]) is not None and limits[0] not in found:
                    found.update({limit: getattr(table, limit) for limit in limits})
        return QuotaTable.model_validate(found)


def _exceeded(name: str, bucket: Bucket, delay: float) -> QuotaExceeded:
    """The error of a used-up rate. Its delay is rounded up: after a shorter one the call would be
    rejected again."""
    return QuotaExceeded(name, bucket.rate, ceil(delay * 1000) / 1000)


def _bucket(rate: float | None, burst: int | None, cells: Cells, clock: Clock) -> Bucket | None:
    if rate is None:
        return None
    # A capacity below one would never hold a whole request.
    return Bucket(rate, max(1.0, rate) if burst is None else burst, cells, clock)
