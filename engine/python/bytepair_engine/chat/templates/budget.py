"""The limits of one rendering: steps and depth."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from bytepair_engine import cancel
from bytepair_engine.chat.errors import TemplateLimit

#: Steps of every rendering: at most some 40 ms of CPU time (`make bench-chat`).
BASE_STEPS: Final = 16_000
#: Additional steps per value (message, field, call, JSON value) of the input.
STEPS_PER_VALUE: Final = 50
#: Characters copied or written per step.
CHARACTERS_PER_STEP: Final = 256
#: Additional steps for the text of the input: a template may copy it this many times.
COPIES: Final = 16
#: Maximum number of steps, for a chat of any size. Published templates take half of them for the
#: largest chat that a server accepts by default.
MAX_STEPS: Final = 2_000_000
#: Steps between checks for cancellation.
_CHECK_EVERY: Final = 1_000
#: Maximum depth of nested calls: macros and recursive loops.
MAX_DEPTH: Final = 64
#: Maximum nesting of a value that is walked: hashing a tuple takes C stack for each level.
MAX_NESTING: Final = 256

#: The types of the views of a dictionary.
VIEWS: Final[tuple[type[Any], ...]] = (type({}.keys()), type({}.values()), type({}.items()))
_LISTS: Final[tuple[type[Any], ...]] = (list, tuple, range, *VIEWS)
#: Types that are copied or searched in time proportional to their length.
SIZED: Final[tuple[type[Any], ...]] = (str, dict, *_LISTS)


class Budget:
    """The remaining steps of one rendering.

    Attributes:
        depth: Current depth of nested calls.
    """

    __slots__ = ("_check_at", "_left", "depth")

    def __init__(self, values: int, characters: int) -> None:
        steps = BASE_STEPS + STEPS_PER_VALUE * values + COPIES * characters // CHARACTERS_PER_STEP
        self._left = min(steps, MAX_STEPS)
        self._check_at = self._left
        self.depth = 0

    def spend(self, steps: int) -> None:
        """Spend steps, before doing the work.

        Raises:
            TemplateLimit: Fewer steps are left.
            Cancelled: The work of this thread was cancelled.
        """
        self._left -= steps
        if self._left < self._check_at:
            cancel.check()
            self._check_at = self._left - _CHECK_EVERY
        if self._left < 0:
            raise TemplateLimit("steps")


_CURRENT: Final[ContextVar[Budget]] = ContextVar("budget")


@contextmanager
def limited(budget: Budget) -> Iterator[None]:
    """Charge renderings in this block to `budget`."""
    token = _CURRENT.set(budget)
    try:
        yield
    finally:
        _CURRENT.reset(token)


@contextmanager
def one_call() -> Iterator[None]:
    """Charge one call, and limit its depth."""
    budget = _CURRENT.get()
    budget.spend(1)
    budget.depth += 1
    try:
        if budget.depth > MAX_DEPTH:
            raise TemplateLimit("depth")
        yield
    finally:
        budget.depth -= 1


def spend(steps: int) -> None:
    """Spend steps of the current rendering."""
    _CURRENT.get().spend(steps)


def spend_text(characters: int) -> None:
    """Spend the steps of creating a text of `characters` characters."""
    _CURRENT.get().spend(1 + characters // CHARACTERS_PER_STEP)


def spend_copy(value: Any) -> None:
    """Spend the steps of a shallow copy of a text or container."""
    if isinstance(value, SIZED):
        spend(len(value) >> 7)


def spend_deep(value: Any) -> None:
    """Spend the steps of walking a value, before it is walked. A list may contain another one many
    times, so a value that is small in memory can be large when written.

    Raises:
        TemplateLimit: Too few steps are left, or the value is nested too deeply.
    """
    level = [value]
    budget = _CURRENT.get()
    for _ in range(MAX_NESTING):
        below: list[Any] = []
        for item in level:
            if isinstance(item, str):
                budget.spend(1 + len(item) // CHARACTERS_PER_STEP)
            elif isinstance(item, dict):
                budget.spend(1 + len(item))
                below += item.keys()
                below += item.values()
            elif isinstance(item, _LISTS):
                budget.spend(1 + len(item))
                below += item
            elif isinstance(item, int):
                budget.spend(1 + (item.bit_length() >> 7))
            else:
                budget.spend(1)
        if not below:
            return
        level = below
    raise TemplateLimit("depth")


def walked(value: Any) -> Any:
    """Return a value that may be walked, and charge it: an iterator while it is walked."""
    if isinstance(value, Iterator):
        return _walked(value)
    spend_deep(value)
    return value


def _walked(values: Iterator[Any]) -> Iterator[Any]:
    for value in values:
        spend_deep(value)
        yield value
