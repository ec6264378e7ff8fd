"""Which calls are retried, the waits between attempts, and the limit on the rate of calls.

gRPC's own retries are off: when they retry a stream, they may lose a message or hang (grpcio 1.85:
`python -m bench.reliability.replay` shows it), and a channel cannot turn them off for streams only.
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
#: Each wait varies by this share, so that clients that failed together do not retry together.
JITTER: Final = 0.2
#: Every call is idempotent, so UNAVAILABLE is always retried, on the next server that round_robin
#: picks. So is CANCELLED, the status of calls that reach a stopping server
#: (https://github.com/grpc/grpc/issues/41785), unless the caller cancelled the call. OVERLOADED is
#: not: the server then needs fewer calls.
RETRIED_CODES: Final = ("UNAVAILABLE", "CANCELLED")
#: For a quota error without `retry_after`.
QUOTA_WAIT_S: Final = 1.0


class Attempts:
    """The attempts of one call or stream."""

    def __init__(
        self,
        most: int,
        timeout: float | None,
        is_closed: Callable[[], bool],
        *,
        waits_for_quota: bool = False,
    ) -> None:
        """Start no attempt yet.

        Args:
            most: Maximum number of consecutive failures.
            timeout: Seconds for all attempts, waits for a quota excluded; None for no deadline.
            is_closed: Whether the client is closed.
            waits_for_quota: Whether to retry QuotaExceeded.
        """
        self._most: Final = most
        self._timeout: Final = timeout
        self._is_closed: Final = is_closed
        self._waits_for_quota: Final = waits_for_quota
        self._until: float | None = None
        self._left = most
        self._backoff = INITIAL_BACKOFF_S

    def begin(self) -> float | None:
        """Start an attempt. Returns the seconds left for it; None for no deadline."""
        self._left -= 1
        if self._timeout is None:
            return None
        if self._until is None:
            self._until = monotonic() + self._timeout
        return max(0.0, self._until - monotonic())

    @property
    def repeated(self) -> int:
        """The number of attempts after the first one, or after the one that a stream advanced
        in."""
        return self._most - self._left - 1

    def progressed(self) -> None:
        """Note that a stream advanced: earlier failures no longer count."""
        self._left = self._most - 1
        self._backoff = INITIAL_BACKOFF_S

    def wait(self, failure: TokenizerError) -> float | None:
        """Seconds to wait before the next attempt; None if the failure is not retried."""
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
        """Allow this many calls per second; None for no limit."""
        self._interval: Final = 0.0 if per_second is None else 1 / per_second
        self._lock: Final = Lock()
        self._next = 0.0

    def wait(self) -> float:
        """Reserve the next start. Returns the seconds until then; 0 for now."""
        if not self._interval:
            return 0.0
        with self._lock:
            now = monotonic()
            start = max(now, self._next)
            self._next = start + self._interval
        return start - now
