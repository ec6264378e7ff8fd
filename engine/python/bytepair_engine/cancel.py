"""Cancellation of work that is no longer needed."""

from __future__ import annotations

import threading
from functools import cache
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from bytepair_engine.errors import Cancelled

if TYPE_CHECKING:
    from bytepair_engine._core import CancelFlag


class CancelScope:
    """What one thread encodes and counts in a `with` block. Any other thread may cancel it, and so
    does a time limit, where there is one.

    Work that is cancelled raises Cancelled within a few milliseconds, in the middle of a large
    text or a batch as well; what is started in the block afterwards raises it at once.

    A scope is for one block. Blocks of one thread do not nest.

    >>> from bytepair_engine.toy import toy
    >>> scope = CancelScope()
    >>> with scope:
    ...     toy().encode("aab")
    [258]
    >>> scope.cancel()
    >>> scope.cancelled
    True
    """

    __slots__ = ("_deadline", "_flag", "cancelled")

    def __init__(self, seconds: float | None = None) -> None:
        """Cancel nothing yet.

        Args:
            seconds: From now on, after which work is cancelled by itself; None for never.
        """
        self.cancelled = False
        self._deadline: Final = None if seconds is None else monotonic() + seconds
        self._flag: Final = _flag(seconds)

    def cancel(self) -> None:
        """Stop what runs in the block. From any thread, at any time, any number of times."""
        self.cancelled = True
        if self._flag is not None:
            self._flag.set()

    def check(self) -> None:
        """Raises Cancelled if what runs in the block is to stop."""
        if self._deadline is not None and monotonic() >= self._deadline:
            self.cancelled = True
        if self.cancelled:
            raise Cancelled

    def __enter__(self) -> Self:
        """Work under this scope.

        Raises:
            RuntimeError: This thread is in a block of a scope already.
        """
        if _of_thread.scope is not None:
            raise RuntimeError("blocks of a CancelScope do not nest")
        _of_thread.scope = self
        if self._flag is not None:
            self._flag.enter()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _of_thread.scope = None
        if self._flag is not None:
            self._flag.leave()


@cache
def _has_core() -> bool:
    try:
        from bytepair_engine import _core  # noqa: F401
    except ImportError:
        return False
    return True


def _flag(seconds: float | None) -> CancelFlag | None:
    """What the core is stopped by; None where there is no core."""
    if not _has_core():
        return None
    from bytepair_engine._core import CancelFlag

    return CancelFlag(seconds)


class _OfThread(threading.local):
    scope: CancelScope | None = None


_of_thread: Final = _OfThread()


def check() -> None:
    """Raises Cancelled if what this thread does was cancelled. For the reference's loops."""
    scope = _of_thread.scope
    if scope is not None:
        scope.check()
