"""Fit a chat into a context window by dropping whole turns."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Final, Self, SupportsIndex

from bytepair_engine.backends.interface import Text
from bytepair_engine.chat.costs import DEFAULT_OPTIONS
from bytepair_engine.chat.counting import (
    Counter,
    Messages,
    Tools,
    count_texts,
    located,
    read_chat,
)
from bytepair_engine.chat.errors import InvalidChat
from bytepair_engine.chat.format import Accuracy, Chat, ChatFormat
from bytepair_engine.chat.layout import FRAME, TOOLS
from bytepair_engine.chat.options import ChatOptions
from bytepair_engine.chat.plan import RESULT_ROLES, Plan, call_groups
from bytepair_engine.encoding import Encoding
from bytepair_engine.errors import (
    BudgetTooSmall,
    InvalidOption,
    InvalidUnicode,
    SpecialTokenFound,
    check_least,
    check_percent,
    check_type,
)
from bytepair_engine.vocabulary.special_sets import SpecialTokens


@dataclass(frozen=True, slots=True)
class FittedChat:
    """The messages of a chat that fit.

    Attributes:
        kept: Indices of the kept messages, increasing.
        trimmed: Whether any message was dropped.
        count: Tokens of the kept messages: the result of `count_chat` with the same options.
        original_count: Tokens of the whole chat.
        accuracy: See `ChatCount`.
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
    """Choose the messages that fit a context window.

    The result keeps the system messages at the start, the pinned messages, and the longest run of
    turns at the end that fits. A turn starts with a user message and ends before the next one.
    Messages between the system messages and the first user message form one more turn. A call and
    its results stay together.

    Args:
        messages: See `count_chat`.
        max_tokens: Size of the context window, at least 0.
        encoding: See `count_chat`.
        format: See `count_chat`.
        tools: See `count_chat`.
        options: See `count_chat`.
        reserve_tokens: Tokens of the window reserved for the reply. The budget is the rest.
        keep_system: Whether to keep the system and developer messages at the start.
        pinned: Indices of messages to keep, with the calls and results that belong to them.
        min_last_turns: Number of turns at the end that must be kept, at least 0; 1 if the last
            message is to be continued.
        refill_percent: If a message must be dropped, drop turns down to this share of the budget,
            1 to 100. The start of the chat then stays the same for the next turns, which helps
            prompt caches.
        disallowed_special: See `count_chat`.
    Raises:
        BudgetTooSmall: The messages that must be kept exceed the budget.
        InvalidOption: An argument is out of range.
        InvalidChat: See `count_chat`; or the format rejects every shorter chat that is tried, or
            more than 64 would have to be. Whether it accepts one is assumed to depend on the
            messages around the cut.
        UnknownChatFormat, ChatFormatMismatch, SpecialTokenFound: See `count_chat`.

    >>> from bytepair_engine import get_encoding
    >>> chat = [{"role": "user", "content": word} for word in ("one", "two", "three")]
    >>> fit_chat(chat, 14, encoding=get_encoding("o200k_base"), format="openai-chat").kept
    [1, 2]
    """
    rules = _Rules.checked(
        max_tokens, reserve_tokens, refill_percent, keep_system, pinned, min_last_turns
    )
    chosen, chat = read_chat(encoding, format, messages, tools, options)
    if options.continue_final_message:
        rules = replace(rules, last_turns=max(1, rules.last_turns))
    counter = Counter(chosen, encoding, disallowed_special)
    accuracy = chosen.accuracy_of(chat)
    roles, groups = [message.role for message in chat.messages], call_groups(chat.messages)

    def only(kept: list[int]) -> Chat:
        return replace(chat, messages=tuple([chat.messages[index] for index in kept]))

    def count(kept: list[int]) -> int:
        try:
            return sum(counter.counts(only(kept)))
        except InvalidChat as error:
            if error.index is None or error.field.startswith("tools"):
                raise
            index = kept[error.index]
            raise InvalidChat(index, error.field, error.rule, error.advice) from None

    adds_up = chosen.additive and not options.continue_final_message
    try:
        counts = counter.counts(chat)
        fitted = _fitted(roles, groups, counts, rules, None if adds_up else count, accuracy)
    except (SpecialTokenFound, InvalidUnicode) as error:
        raise located(error, chat, tools, encoding, disallowed_special) from None
    if fitted.trimmed and accuracy == "estimate":  # perhaps only because of dropped messages
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
    """Fit a chat of plain messages; see `fit_chat` and `count_texts`. None if `count_texts` returns
    None, or a message is a tool result."""
    rules = _Rules.checked(
        max_tokens, reserve_tokens, refill_percent, keep_system, pinned, min_last_turns
    )
    roles = [role for role, _ in messages]
    counted = None
    if RESULT_ROLES.isdisjoint(roles):
        counted = count_texts(
            messages, encoding=encoding, chosen=chosen, disallowed_special=disallowed_special
        )
    if counted is None:
        return None
    counts = [*counted.message_counts, counted.tools_count, counted.frame_count]
    return _fitted(roles, [], counts, rules, None, counted.accuracy)


#: Maximum number of shorter chats that are tried once the format has rejected one. Each costs as
#: much as counting the chat, and pinned messages could make thousands of them.
_MAX_TRIES: Final = 64


@dataclass(frozen=True, slots=True)
class _Rules:
    """The checked arguments of `fit_chat`.

    Attributes:
        budget: Maximum number of tokens.
        has_reserve: Whether some of `max_tokens` are reserved.
        target: Maximum number of tokens if a message is dropped.
        keep_system: See `fit_chat`.
        pins: Indices of the pinned messages, sorted.
        last_turns: See `fit_chat`.
    """

    budget: int
    has_reserve: bool
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
        """Check the arguments of `fit_chat`; raise InvalidOption if one is out of range."""
        check_type("pinned", pinned, Iterable, "indices of messages")
        pins = list(pinned)
        for pin in pins:
            check_type("pinned: each index", pin, SupportsIndex, "int")
        pins = sorted(set(pins))
        for option, value in (
            ("max_tokens", max_tokens),
            ("reserve_tokens", reserve),
            ("pinned", pins[0] if pins else 0),
            ("min_last_turns", last_turns),
        ):
            check_least(option, value, 0)
        check_percent("refill_percent", refill, 1)
        budget = max(0, max_tokens - reserve)
        target = budget * refill // 100
        return cls(budget, reserve > 0, target, keep_system, pins, last_turns)


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
        roles: The role of each message.
        groups: The result of `call_groups`.
        counts: Tokens of each message, of the tools and of the frame, in the whole chat.
        rules: The arguments of `fit_chat`.
        count: Counts a chat of some of the messages; None if the counts of messages add up.
        accuracy: The accuracy of the whole chat's count.
    """
    if rules.pins and rules.pins[-1] >= len(roles):
        raise InvalidOption("pinned", "contains an index beyond the last message")
    total, everything = sum(counts), list(range(len(roles)))
    if total <= rules.budget:
        return FittedChat(everything, False, total, total, accuracy)
    plan = Plan(
        roles,
        groups,
        rules.pins,
        keep_system=rules.keep_system,
        last_turns=rules.last_turns,
    )
    start, found = _longest(plan, counts, rules.target, count)
    if found > rules.budget:
        # A format may add a long text of its own in place of a system message that was dropped.
        raise BudgetTooSmall(min(found, total), rules.budget, None, rules.has_reserve)
    kept = plan.kept(start)
    return FittedChat(kept, len(kept) < len(everything), found, total, accuracy)


def _longest(
    plan: Plan, counts: list[int], target: int, count: Callable[[list[int]], int] | None
) -> tuple[int, int]:
    """Return the start of the longest tail that fits into `target`, or of the smallest known one;
    and the count.

    The counts of the whole chat predict the start. If counts do not add up, a message may cost
    more or less in a shorter chat: then starts near the predicted one are counted, until one fits
    and the one before it does not. Shorter chats that the format rejects are left out.

    Raises:
        InvalidChat: The format rejects all shorter chats that are tried, or there are too many.
    """
    prefix = list(accumulate(counts[:TOOLS], initial=0))
    fixed = counts[TOOLS] + counts[FRAME] + prefix[plan.head]
    pinned = list(accumulate((counts[index] for index in plan.pinned), initial=0))

    def summed(start: int) -> int:
        return fixed + pinned[plan.before(start)] + prefix[-1] - prefix[start]

    def predicted(starts: list[int]) -> int:
        return bisect_left(starts, True, hi=len(starts) - 1, key=lambda s: summed(s) <= target)

    if count is None:
        start = plan.starts[predicted(plan.starts)]
        return start, summed(start)
    try:
        return _counted(plan, plan.starts, predicted(plan.starts), target, count)
    except InvalidChat:
        starts = _accepted(plan, count)
        if not starts:
            raise
        return _counted(plan, starts, predicted(starts), target, count)


def _counted(
    plan: Plan, starts: list[int], found: int, target: int, count: Callable[[list[int]], int]
) -> tuple[int, int]:
    """Return the result of `_longest` among `starts` by counting from the predicted position."""
    last = len(starts) - 1
    counted: dict[int, int] = {}

    def fits(position: int) -> bool:
        counted[position] = count(plan.kept(starts[position]))
        return counted[position] <= target

    # `found` fits, or is the last one; `low` does not fit. The steps double, so that a bad
    # prediction costs few counts; then bisect.
    low, step = -1, 1
    while not fits(found) and found < last:
        low, found, step = found, min(last, found + step), 2 * step
    step = 1
    while found - low > 1:
        position = max(low + 1, found - step) if low < 0 else (low + found) // 2
        if fits(position):
            found, step = position, 2 * step
        else:
            low = position
    if counted[found] > target:  # a longer chat may need less
        found = min(counted, key=lambda position: (counted[position], -position))
    return starts[found], counted[found]


def _accepted(plan: Plan, count: Callable[[list[int]], int]) -> list[int]:
    """Return the starts of shorter chats that the format accepts, after it has rejected one. An
    empty list if there are too many to try.

    It accepts the whole chat. So what it rejects, such as roles that do not alternate, is assumed
    to be among the messages before the tail, or between them and the tail. Hence one start of each
    group is tried, that of the shortest chat.
    """
    groups = plan.start_groups()
    accepted: list[int] = []
    if len(groups) <= _MAX_TRIES:
        for starts in groups:
            with suppress(InvalidChat):
                count(plan.kept(starts[-1]))
                accepted += starts
    return accepted
