"""Fitting a chat into a window: which messages stay, in whole turns."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Final, Self

from bytepair_engine.backends.interface import Text
from bytepair_engine.chat.costs import DEFAULT_OPTIONS
from bytepair_engine.chat.counting import Counter, Messages, Tools, count_texts, read_chat
from bytepair_engine.chat.format import Accuracy, Chat, ChatFormat
from bytepair_engine.chat.layout import FRAME, TOOLS
from bytepair_engine.chat.messages import Message
from bytepair_engine.chat.options import ChatOptions
from bytepair_engine.encoding import Encoding
from bytepair_engine.errors import BudgetTooSmall, InvalidOption
from bytepair_engine.vocabulary.special_sets import SpecialTokens


@dataclass(frozen=True, slots=True)
class FittedChat:
    """Which messages of a chat fit.

    Attributes:
        kept: Their indices, increasing.
        trimmed: Whether any was dropped.
        count: Exactly what `count_chat` gives for the kept messages with the same options.
        original_count: What it gives for all.
        accuracy: As of `count_chat`.
    """

    kept: list[int]
    trimmed: bool
    count: int
    original_count: int
    accuracy: Accuracy


def fit_chat(
    messages: Messages,
    max_tokens: int,
    *,
    encoding: Encoding,
    format: str | ChatFormat,  # noqa: A002
    tools: Tools = None,
    options: ChatOptions = DEFAULT_OPTIONS,
    reserve_tokens: int = 0,
    keep_system: bool = True,
    pinned: Iterable[int] = (),
    min_last_turns: int = 1,
    refill_percent: int = 100,
    disallowed_special: SpecialTokens = (),
) -> FittedChat:
    """Choose the messages that fit: the system messages at the start, the pinned ones, and the
    longest run of whole turns at the end.

    A turn begins with a user's message and goes up to the next; what comes before the first user
    and is not system is a turn of its own. A call and its results stay together.

    Args:
        messages: As of `count_chat`.
        max_tokens: The model's window, at least 0.
        encoding: As of `count_chat`.
        format: As of `count_chat`.
        tools: As of `count_chat`.
        options: As of `count_chat`.
        reserve_tokens: What of the window is for the answer. The budget is the rest.
        keep_system: Keep the system and developer messages at the start.
        pinned: Indices that are kept, with the calls and results that belong to them.
        min_last_turns: How many turns at the end are kept, at least 0.
        refill_percent: When anything must go, go down to this share of the budget, 1 to 100, so
            that the start of the chat stays the same for the next turns (prompt caches).
        disallowed_special: As of `count_chat`.
    Raises:
        BudgetTooSmall: What must be kept has more tokens than the budget.
        InvalidOption: An argument is out of its range.
        UnknownChatFormat, ChatFormatMismatch, InvalidChat, SpecialTokenFound: See `count_chat`.

    >>> from bytepair_engine import get_encoding
    >>> chat = [{"role": "user", "content": word} for word in ("one", "two", "three")]
    >>> fit_chat(chat, 14, encoding=get_encoding("o200k_base"), format="openai-chat").kept
    [1, 2]
    """
    rules = _Rules.checked(
        max_tokens, reserve_tokens, refill_percent, keep_system, pinned, min_last_turns
    )
    chosen, chat = read_chat(format, messages, tools, options)
    counter = Counter(chosen, encoding, disallowed_special)
    counts, accuracy = counter.counts(chat), chosen.accuracy_of(chat)
    roles, groups = [message.role for message in chat.messages], _call_groups(chat.messages)

    def only(kept: list[int]) -> Chat:
        return replace(chat, messages=tuple([chat.messages[index] for index in kept]))

    def count(kept: list[int]) -> int:
        return sum(counter.counts(only(kept)))

    adds_up = chosen.additive and not options.continue_final_message
    fitted = _fitted(roles, groups, counts, rules, None if adds_up else count, accuracy)
    if fitted.trimmed and accuracy == "estimate":  # perhaps by what was dropped
        return replace(fitted, accuracy=chosen.accuracy_of(only(fitted.kept)))
    return fitted


def fit_texts(
    messages: Sequence[tuple[str, Text | None]],
    max_tokens: int,
    *,
    encoding: Encoding,
    chosen: ChatFormat,
    reserve_tokens: int = 0,
    keep_system: bool = True,
    pinned: Iterable[int] = (),
    min_last_turns: int = 1,
    refill_percent: int = 100,
    disallowed_special: SpecialTokens = (),
) -> FittedChat | None:
    """As `fit_chat` for messages as `count_texts` has them; None where that gives None, and where
    there are results of tools."""
    rules = _Rules.checked(
        max_tokens, reserve_tokens, refill_percent, keep_system, pinned, min_last_turns
    )
    roles = [role for role, _ in messages]
    counted = None
    if _RESULTS.isdisjoint(roles):
        counted = count_texts(
            messages, encoding=encoding, chosen=chosen, disallowed_special=disallowed_special
        )
    if counted is None:
        return None
    counts = [*counted.message_counts, counted.tools_count, counted.frame_count]
    return _fitted(roles, [], counts, rules, None, counted.accuracy)


#: Roles of tools' results.
_RESULTS: Final = frozenset({"tool", "ipython"})


@dataclass(frozen=True, slots=True)
class _Rules:
    """What may be kept, and how much of it.

    Attributes:
        budget: Tokens.
        target: Tokens, if any message goes.
        keep_system: See `fit_chat`.
        pins: The pinned messages, sorted.
        last_turns: See `fit_chat`.
    """

    budget: int
    target: int
    keep_system: bool
    pins: list[int]
    last_turns: int

    @classmethod
    def checked(
        cls,
        max_tokens: int,
        reserve: int,
        refill: int,
        keep_system: bool,
        pinned: Iterable[int],
        last_turns: int,
    ) -> Self:
        """Make them of the arguments of `fit_chat`, or raise InvalidOption."""
        pins = sorted(set(pinned))
        for option, value in (
            ("max_tokens", max_tokens),
            ("reserve_tokens", reserve),
            ("pinned", pins[0] if pins else 0),
            ("min_last_turns", last_turns),
        ):
            if value < 0:
                raise InvalidOption(option, f"must be 0 or more, and is {value}")
        if not 1 <= refill <= 100:
            raise InvalidOption("refill_percent", f"must be from 1 to 100, and is {refill}")
        budget = max(0, max_tokens - reserve)
        return cls(budget, budget * refill // 100, keep_system, pins, last_turns)


def _fitted(
    roles: list[str],
    groups: list[list[int]],
    counts: list[int],
    rules: _Rules,
    count: Callable[[list[int]], int] | None,
    accuracy: Accuracy,
) -> FittedChat:
    """Fit messages.

    Args:
        roles: Of each message.
        groups: What `_call_groups` gives.
        counts: Of each message, of the tools and of the frame, in the whole chat.
        rules: What may be kept.
        count: Counts the chat of some messages; None where their counts add up.
        accuracy: Of the whole chat.
    """
    if rules.pins and rules.pins[-1] >= len(roles):
        raise InvalidOption("pinned", "names a message that does not exist")
    total, everything = sum(counts), list(range(len(roles)))
    if total <= rules.budget:
        return FittedChat(everything, False, total, total, accuracy)
    plan = _Plan(roles, groups, rules)
    start, found = _longest(plan, counts, rules.target, count)
    if found > rules.budget:
        raise BudgetTooSmall(found, rules.budget)
    kept = plan.kept(start)
    return FittedChat(kept, len(kept) < len(everything), found, total, accuracy)


class _Plan:
    """What may be kept: the head, the pinned, and the messages from one of `starts` on.

    Attributes:
        head: How many messages at the start are always kept.
        pinned: Indices that are always kept, with their calls and results, sorted.
        starts: Where the run at the end may begin, increasing; the last is that which is required.
    """

    def __init__(self, roles: list[str], groups: list[list[int]], rules: _Rules) -> None:
        end, last_turns = len(roles), rules.last_turns
        self._end = end
        systems = 0
        while systems < end and roles[systems] in ("system", "developer"):
            systems += 1
        self.head = systems if rules.keep_system else 0
        group_of = {index: group for group in groups for index in group}
        self.pinned = sorted({index for pin in rules.pins for index in group_of.get(pin, (pin,))})
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
        """The indices that are kept where the run begins at `start`."""
        before = [index for index in self.pinned if self.head <= index < start]
        return [*range(self.head), *before, *range(max(start, self.head), self._end)]


def _call_groups(messages: Sequence[Message]) -> list[list[int]]:
    """The messages whose calls have results, each with these results."""
    groups: dict[int, list[int]] = {}
    callers: dict[str, int] = {}
    caller: int | None = None
    for index, message in enumerate(messages):
        if message.role in _RESULTS:
            found = callers.get(message.tool_call_id) if message.tool_call_id else caller
            if found is not None:
                groups.setdefault(found, [found]).append(index)
        else:
            caller = index if message.role == "assistant" else None
            if message.tool_calls:
                callers.update((call.id, index) for call in message.tool_calls)
    return [*groups.values()]


def _longest(
    plan: _Plan, counts: list[int], target: int, count: Callable[[list[int]], int] | None
) -> tuple[int, int]:
    """Where the longest run begins that fits into `target`, or the required one; and the count.

    The counts of the whole chat say where it will be. Unless they add up, they need not be what
    messages cost in a shorter chat: places around are counted until one fits and the one before
    does not.
    """
    prefix = list(accumulate(counts[:TOOLS], initial=0))
    fixed = counts[TOOLS] + counts[FRAME] + prefix[plan.head]
    pinned = [index for index in plan.pinned if index >= plan.head]
    pinned_sums = list(accumulate((counts[index] for index in pinned), initial=0))

    def summed(place: int) -> int:
        start = plan.starts[place]
        before = pinned_sums[bisect_left(pinned, start)]
        return fixed + before + prefix[-1] - prefix[max(start, plan.head)]

    last = len(plan.starts) - 1
    found = bisect_left(range(last), True, key=lambda place: summed(place) <= target)
    if count is None:
        return plan.starts[found], summed(found)
    counted: dict[int, int] = {}

    def fits(place: int) -> bool:
        counted[place] = count(plan.kept(plan.starts[place]))
        return counted[place] <= target

    # `found` fits, or is required; `low` does not fit. In ever larger steps, so that a bad
    # guess costs few counts; then by halves.
    low, step = -1, 1
    while not fits(found) and found < last:
        low, found, step = found, min(last, found + step), 2 * step
    step = 1
    while found - low > 1:
        place = max(low + 1, found - step) if low < 0 else (low + found) // 2
        if fits(place):
            found, step = place, 2 * step
        else:
            low = place
    return plan.starts[found], counted[found]
