"""When a call is retried, how long it waits before that, and the rate of calls.

gRPC's own retries are off: it sometimes loses a message of a stream that it retries, or lets the
stream hang (grpcio 1.85: `python -m bench.reliability.replay` shows it), and they cannot be
turned off for streams alone on a channel that serves both.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from threading import Lock
from time import monotonic
from typing import Final

from bytepair_client._errors import QuotaExceeded, TokenizerError

INITIAL_BACKOFF_S = 0.1
MAX_BACKOFF_S = 2.0
BACKOFF_MULTIPLIER = 2.0
#: Around each wait, so that clients that failed together do not retry together.
JITTER: Final = 0.2
#: Every call of the service is idempotent, so UNAVAILABLE may always be retried, on the next
#: server as round_robin picks it. So may CANCELLED, with which gRPC ends what reaches a server
#: while it stops (https://github.com/grpc/grpc/issues/41785); a call that its own caller cancelled
#: is never retried. OVERLOADED is not: the server needs fewer calls then, not more.
RETRIED_CODES: Final = ("UNAVAILABLE", "CANCELLED")
#: Where a quota error has no delay for a retry.
QUOTA_WAIT_S: Final = 1.0


class Attempts:
    """The attempts at one call or one stream."""

    def __init__(
        self,
        most: int,
        timeout: float | None,
        is_closed: Callable[[], bool],
        rate_limiter: RateLimiter,
        *,
        waits_for_quota: bool = False,
    ) -> None:
        """Begin none yet: at most `most` may fail in a row, and all together have `timeout`
        seconds, without the waits for a quota."""
        self._most: Final = most
        self._timeout: Final = timeout
        self._is_closed: Final = is_closed
        self._rate_limiter: Final = rate_limiter
        self._waits_for_quota: Final = waits_for_quota
        self._until: float | None = None
        self._left = most
        self._backoff = INITIAL_BACKOFF_S

    def rate_delay(self) -> float:
        """The seconds to wait before the next one is begun, by the client's rate limit."""
        return self._rate_limiter.wait()

    def begin(self) -> float | None:
        """Begin one. Returns the seconds that it has; None for no deadline."""
        self._left -= 1
        if self._timeout is None:
            return None
        if self._until is None:
            self._until = monotonic() + self._timeout
        return max(0.0, self._until - monotonic())

    def progressed(self) -> None:
        """Note that the server answered: attempts are counted from here on."""
        self._left = self._most - 1
        self._backoff = INITIAL_BACKOFF_S

    def wait(self, failure: TokenizerError) -> float | None:
        """The seconds to wait before another attempt; None if there is to be none."""
        if self._is_closed():
            return None
        if self._waits_for_quota and isinstance(failure, QuotaExceeded):
            seconds = QUOTA_WAIT_S if failure.retry_after is None else failure.retry_after
            seconds *= random.uniform(1, 1 + JITTER)
            self._left += 1
            if self._until is not None:
                self._until += seconds
            return seconds
        if failure.code not in RETRIED_CODES or self._left < 1:
            return None
        seconds = self._backoff * random.uniform(1 - JITTER, 1 + JITTER)
        self._backoff = min(self._backoff * BACKOFF_MULTIPLIER, MAX_BACKOFF_S)
        if self._until is not None and monotonic() + seconds >= self._until:
            return None
        return seconds


class RateLimiter:
    """Spaces the starts of calls evenly. Safe for threads."""

    def __init__(self, per_second: float | None) -> None:
        """Allow this many calls each second; None for any number."""
        self._interval: Final = 0.0 if per_second is None else 1 / per_second
        self._lock: Final = Lock()
        self._next = 0.0

    def wait(self) -> float:
        """Take the next place. Returns the seconds until it may be used; 0 for at once."""
        if not self._interval:
            return 0.0
        with self._lock:
            now = monotonic()
            start = max(now, self._next)
            self._next = start + self._interval
        return start - now
