"""How much one rendering may do: steps and depth, counted where work is done."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, KeysView, ValuesView
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from bytepair_engine.chat.errors import TemplateLimit

#: Steps of any rendering: at most some 40 ms of CPU (`make bench-chat`).
BASE_STEPS: Final = 16_000
#: More steps for each value (message, field, call, JSON value) of the input.
STEPS_PER_VALUE: Final = 50
#: Characters that one step copies or writes.
CHARACTERS_PER_STEP: Final = 256
#: More steps for the input's text: how often a template may copy it.
COPIES: Final = 16
#: Calls within calls: macros, and loops that call themselves.
MAX_DEPTH: Final = 64

VIEWS: Final = (range, KeysView, ValuesView, ItemsView)
#: What is copied or searched at once, in a time that its length decides.
SIZED: Final = (str, list, tuple, dict, *VIEWS)


class Budget:
    """The steps that are left of one rendering.

    Attributes:
        depth: How many calls are open.
    """

    __slots__ = ("_left", "depth")

    def __init__(self, values: int, characters: int) -> None:
        self._left = (
            BASE_STEPS + STEPS_PER_VALUE * values + COPIES * characters // CHARACTERS_PER_STEP
        )
        self.depth = 0

    def spend(self, steps: int) -> None:
        """Take steps before the work that they stand for.

        Raises:
            TemplateLimit: There are fewer left.
        """
        self._left -= steps
        if self._left < 0:
            raise TemplateLimit("steps")


_CURRENT: Final[ContextVar[Budget]] = ContextVar("budget")


@contextmanager
def limited(budget: Budget) -> Iterator[None]:
    """Let what is rendered inside spend from `budget`."""
    token = _CURRENT.set(budget)
    try:
        yield
    finally:
        _CURRENT.reset(token)


@contextmanager
def one_call() -> Iterator[None]:
    """Count a call, and how deep it is."""
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
    """Take steps from the rendering that runs."""
    _CURRENT.get().spend(steps)


def spend_text(characters: int) -> None:
    """Spend the steps of making a text of `characters` characters."""
    _CURRENT.get().spend(1 + characters // CHARACTERS_PER_STEP)


def spend_copy(value: Any) -> None:
    """Take the steps of copying a text, or a container without what is in it."""
    if isinstance(value, SIZED):
        spend(len(value) >> 7)


def spend_deep(value: Any) -> None:
    """Take the steps of walking a value, before something walks it. A list may hold another one
    many times, so that what is small in memory is large when it is written."""
    open_values = [value]
    budget = _CURRENT.get()
    while open_values:
        item = open_values.pop()
        if isinstance(item, str):
            budget.spend(1 + len(item) // CHARACTERS_PER_STEP)
        elif isinstance(item, dict):
            budget.spend(1 + len(item))
            open_values += item.keys()
            open_values += item.values()
        elif isinstance(item, (list, tuple)):
            budget.spend(1 + len(item))
            open_values += item
        elif isinstance(item, int):
            budget.spend(1 + (item.bit_length() >> 7))
        else:
            budget.spend(1)
