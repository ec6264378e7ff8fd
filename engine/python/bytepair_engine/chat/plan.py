"""Which messages of a chat may be kept: the head, the pinned ones, and a tail of whole turns."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate, groupby
from typing import Final

from bytepair_engine.chat.messages import Message

#: Roles of tool results.
RESULT_ROLES: Final = frozenset({"tool", "ipython"})


class Plan:
    """The messages that can be kept: the head, the pinned ones, and a tail.

    Attributes:
        head: Number of messages at the start that are always kept.
        pinned: Indices of the pinned messages after the head and of their calls and results,
            sorted.
        starts: Possible starts of the tail, increasing; the last is that of the shortest tail
            allowed.
    """

    def __init__(
        self,
        roles: list[str],
        groups: list[list[int]],
        pins: list[int],
        *,
        keep_system: bool,
        last_turns: int,
    ) -> None:
        """Make the plan of a chat.

        Args:
            roles: The role of each message.
            groups: The result of `call_groups`.
            pins: Indices of the pinned messages.
            keep_system: See `fit_chat`.
            last_turns: See `min_last_turns` of `fit_chat`.
        """
        end = len(roles)
        self._roles = roles
        self._end = end
        systems = 0
        while systems < end and roles[systems] in ("system", "developer"):
            systems += 1
        self.head = systems if keep_system else 0
        group_of = {index: group for group in groups for index in group}
        pinned = {index for pin in pins for index in group_of.get(pin, (pin,))}
        self.pinned = sorted(index for index in pinned if index >= self.head)
        users = [i for i in range(systems, end) if roles[i] == "user"]
        turns = users if users and users[0] == systems else [systems, *users]
        turns = [turn for turn in turns if turn < end]
        # A start between a call and its result would separate them.
        crossed = [0] * (end + 1)
        for first, *_, last in groups:
            crossed[first + 1] += 1
            crossed[last + 1] -= 1
        depth = list(accumulate(crossed))
        whole = [turn for turn in turns if depth[turn] == 0]
        required = turns[-last_turns] if 0 < last_turns <= len(turns) else systems
        if last_turns == 0:
            required = end
        self.starts = [start for start in whole if start <= required]
        if last_turns == 0:
            self.starts.append(end)
        if not self.starts:
            self.starts = [systems]

    def kept(self, start: int) -> list[int]:
        """Return the indices that are kept if the tail starts at `start`."""
        return [*range(self.head), *self.pinned[: self.before(start)], *range(start, self._end)]

    def before(self, start: int) -> int:
        """Return the number of pinned messages between the head and the tail."""
        return bisect_left(self.pinned, start)

    def start_groups(self) -> list[list[int]]:
        """Return the starts that drop a message, grouped by the messages before the tail and the
        role of its first message."""
        roles = [*self._roles, ""]
        starts = [start for start in self.starts if start > self.head + self.before(start)]
        groups = groupby(starts, key=lambda start: (self.before(start), roles[start]))
        return [[*group] for _, group in groups]


def call_groups(messages: Sequence[Message]) -> list[list[int]]:
    """Return the groups of messages that stay together: a message with calls and its results."""
    groups: dict[int, list[int]] = {}
    callers: dict[str, int] = {}
    caller: int | None = None
    for index, message in enumerate(messages):
        if message.role in RESULT_ROLES:
            found = callers.get(message.tool_call_id) if message.tool_call_id else caller
            if found is not None:
                groups.setdefault(found, [found]).append(index)
        else:
            caller = index if message.role == "assistant" else None
            if message.tool_calls:
                callers.update((call.id, index) for call in message.tool_calls)
    return [*groups.values()]
