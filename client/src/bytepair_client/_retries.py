"""How often a stream is begun: for streams what gRPC's retry policy is for other calls.

What gRPC does to try a stream again, by a policy or of its own accord, sometimes leaves out one of
its messages or lets it hang (grpcio 1.85: `python -m bench.reliability.replay` shows it). So
streams have a channel without that, and what another attempt needs is kept by the Exchange.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from time import monotonic
from typing import Final

from bytepair_client import _options as options
from bytepair_client._errors import TokenizerError

#: As of gRPC's own policy: around each wait, so that clients which failed together spread.
JITTER: Final = 0.2


class Attempts:
    """The attempts at one stream."""

    def __init__(self, most: int, timeout: float | None, is_over: Callable[[], bool]) -> None:
        """Begin none yet.

        Args:
            most: How many there may be, at least 1.
            timeout: Seconds for all of them together; None for no deadline.
            is_over: Whether nothing may be begun any more.
        """
        self._timeout: Final = timeout
        self._left = most
        self._is_over: Final = is_over
        self._wait = options.RETRY_INITIAL_BACKOFF_S
        self._until: float | None = None

    def begin(self) -> float | None:
        """Begin one. Returns the seconds that it has; None for no deadline."""
        self._left -= 1
        if self._timeout is None:
            return None
        if self._until is None:
            self._until = monotonic() + self._timeout
        return max(0.0, self._until - monotonic())

    def wait(self, failure: TokenizerError) -> float | None:
        """The seconds to wait before another attempt; None if there is to be none.

        Args:
            failure: How the last one failed, before anything was answered.
        """
        if self._left < 1 or failure.code not in options.RETRIED_CODES or self._is_over():
            return None
        seconds = self._wait * random.uniform(1 - JITTER, 1 + JITTER)
        self._wait = min(self._wait * options.RETRY_BACKOFF_MULTIPLIER, options.RETRY_MAX_BACKOFF_S)
        if self._until is not None and monotonic() + seconds >= self._until:
            return None
        return seconds
