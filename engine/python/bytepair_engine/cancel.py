"""Cancellation of work that is no longer needed."""

from __future__ import annotations

import sys
import threading
from functools import cache
from numbers import Real
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from bytepair_engine.errors import Cancelled, check_type

if TYPE_CHECKING:
    from bytepair_engine._core import CancelFlag

_SECONDS: Final = int | float | Real | None  # the first two are faster to check


class CancelScope:
    """A `with` block whose encoding and counting can be cancelled by another thread or by a time
    limit.

    Cancelled work usually raises Cancelled within a few milliseconds, even in the middle of a large
    text or a batch. Work started in the block afterwards raises it at once.

    Each scope serves one block. Blocks of one thread do not nest. A block applies to its thread, so
    in asyncio it must not `await`: other tasks run meanwhile, and their work would be cancelled.
    Enter the scope in the function that another thread runs, such as by `asyncio.to_thread`.

    >>> from bytepair_engine.toy import toy
    >>> scope = CancelScope()
    >>> with scope:
    ...     toy().encode("aab")
    [258]
    >>> scope.cancel()
    >>> scope.cancelled
    True
    """

    __slots__ = ("_cancelled", "_deadline", "_flag")

    def __init__(self, seconds: float | None = None) -> None:
        """Create a scope.

        Args:
            seconds: Time limit, counted from now; 0 or less cancels at once. None for no limit.
        """
        check_type("seconds", seconds, _SECONDS, "a number or None")
        if seconds is not None:
            seconds = float(min(max(0.0, seconds), sys.float_info.max))
        self._cancelled = False
        self._deadline: Final = None if seconds is None else monotonic() + seconds
        flag = _flags()
        self._flag: Final = None if flag is None else flag(seconds)

    @property
    def cancelled(self) -> bool:
        """Whether `cancel` was called or the time limit is over."""
        return self._cancelled or (self._deadline is not None and monotonic() >= self._deadline)

    def cancel(self) -> None:
        """Cancel the work in the block. Thread-safe and idempotent."""
        self._cancelled = True
        if self._flag is not None:
            self._flag.set()

    def check(self) -> None:
        """Raise Cancelled if the scope was cancelled or its time limit is over."""
        if self.cancelled:
            raise Cancelled

    def __enter__(self) -> Self:
        """Enter the scope.

        Raises:
            RuntimeError: This thread is already in the block of a scope.
        """
        if _current.scope is not None:
            raise RuntimeError("blocks of a CancelScope do not nest")
        _current.scope = self
        if self._flag is not None:
            self._flag.enter()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _current.scope = None
        if self._flag is not None:
            self._flag.leave()


@cache
def _flags() -> type[CancelFlag] | None:
    """The class of flags that cancel work in the native core; None if the core is not built."""
    try:
        from bytepair_engine._core import CancelFlag
    except ImportError:
        return None
    return CancelFlag


class _Current(threading.local):
    scope: CancelScope | None = None


_current: Final = _Current()


def check() -> None:
    """Raise Cancelled if the work of this thread was cancelled. For the reference's loops."""
    scope = _current.scope
    if scope is not None:
        scope.check()
