"""Fitting a chat into a window: its laws, for random chats."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from bytepair_engine.chat import (
    BudgetTooSmall,
    ChatOptions,
    InvalidChat,
    count_chat,
    fit_chat,
    get_chat_format,
    list_chat_formats,
)
from bytepair_engine.chat.fitting import fit_texts
from bytepair_engine.chat.format import Chat
from bytepair_engine.chat.formats.gemma import Gemma
from bytepair_engine.chat.layout import Layout
from bytepair_engine.errors import InvalidOption
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.chats import encoding_for, filled, structures

FORMATS = list_chat_formats()
quick = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
words = st.sampled_from(["", "a", "some words here", "x" * 40, "\n\n", "日本語"])


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
@quick
@given(data=st.data())
def test_fitted_chats_obey_the_laws(name: str, data: Any) -> None:
    shape = data.draw(structures(name))
    messages = filled(shape, lambda: f"w{data.draw(words)}", lambda: "{}")
    turns = data.draw(st.integers(0, 2))
    if messages and messages[-1]["role"] != "user":
        turns = max(1, turns)
    pinned = data.draw(st.sets(st.integers(0, len(messages) - 1), max_size=1))
    if "mistral" in name or name == "gemma":
        # These formats reject chats whose roles do not alternate.
        pinned, turns = set(), max(1, turns)
    given_chat: Any = {"encoding": encoding_for(name), "format": name}
    everything = count_chat(messages, **given_chat).count
    budget = data.draw(st.integers(0, everything + 3))
    reserve = data.draw(st.integers(0, 5))

    def fit(tokens: int) -> Any:
        return fit_chat(
            messages,
            tokens + reserve,
            **given_chat,
            reserve_tokens=reserve,
            pinned=pinned,
            min_last_turns=turns,
        )

    needed = None
    try:
        fitted = fit(budget)
    except BudgetTooSmall as rejected:
        needed, limit = rejected.needed, rejected.budget
    if needed is not None:
        assert limit == budget < needed <= everything
        assert fit(needed).count <= needed
        with pytest.raises(BudgetTooSmall):
            fit(needed - 1)
        return
    kept = [messages[index] for index in fitted.kept]
    assert fitted.count == count_chat(kept, **given_chat).count <= budget
    assert fitted.original_count == everything
    assert sorted(set(fitted.kept)) == fitted.kept
    assert fitted.trimmed == (len(kept) < len(messages))
    if everything <= budget:
        assert not fitted.trimmed
    again = fit_chat(kept, budget, **given_chat)
    assert (again.kept, again.count) == ([*range(len(kept))], fitted.count)
    first_user = next(i for i, m in enumerate(messages) if m["role"] not in ("system", "developer"))
    heads = [*range(first_user)]
    assert pinned <= {*fitted.kept} >= {*heads}
    # A call and its results are kept or dropped together.
    for index, message in enumerate(messages):
        for call in message.get("tool_calls", ()):
            results = [i for i, m in enumerate(messages) if m.get("tool_call_id") == call["id"]]
            assert all((i in fitted.kept) == (index in fitted.kept) for i in results)
    # After the head, the first kept message that is not pinned is a user's.
    users = [i for i, m in enumerate(messages) if m["role"] == "user"]
    if fitted.trimmed:
        free = [i for i in fitted.kept if i not in heads and _group(messages, i).isdisjoint(pinned)]
        # If that user message is pinned, it is kept before the others.
        assert not free or max(i for i in users if i <= free[0]) in fitted.kept
    # One more whole turn would exceed the budget.
    before = [i for i in users if i not in fitted.kept]
    if fitted.trimmed and before and fitted.kept != [*range(len(messages))]:
        more = [i for i in range(len(messages)) if i in fitted.kept or i >= before[-1]]
        assert count_chat([messages[i] for i in more], **given_chat).count > budget
    refilled = fit_chat(
        messages, budget, **given_chat, pinned=pinned, min_last_turns=turns, refill_percent=50
    ) if reserve == 0 else None  # fmt: skip
    if refilled is not None and refilled.trimmed:
        assert {*refilled.kept} <= {*fitted.kept}


@quick
@given(data=st.data())
def test_fit_texts_agrees_with_fit_chat(data: Any) -> None:
    roles = st.sampled_from(["system", "developer", "user", "user", "assistant", "tool"])
    pairs = data.draw(st.lists(st.tuples(roles, st.none() | words), min_size=1, max_size=8))
    encoding, chosen = encoding_for("openai-chat"), get_chat_format("openai-chat")
    messages = [{"role": role, "content": text} for role, text in pairs]
    how: dict[str, Any] = {
        "encoding": encoding,
        "keep_system": data.draw(st.booleans()),
        "pinned": data.draw(st.sets(st.integers(0, len(pairs) - 1), max_size=2)),
        "min_last_turns": data.draw(st.integers(0, 2)),
        "refill_percent": data.draw(st.integers(1, 100)),
    }
    budget = data.draw(st.integers(0, 90))

    def outcome(fit: Callable[..., Any], chat: Any, **more: Any) -> Any:
        try:
            return fit(chat, budget, **how, **more)
        except BudgetTooSmall as rejected:
            return rejected.args

    found = outcome(fit_texts, pairs, chosen=chosen)
    has_results = any(role == "tool" for role, _ in pairs)
    expected = outcome(fit_chat, messages, format="openai-chat")
    assert found == (None if has_results else expected)


def _group(messages: Any, index: int) -> set[int]:
    """Return the indices of a message's call and its results."""
    ids = {messages[index].get("tool_call_id")} | {
        call["id"] for call in messages[index].get("tool_calls", ())
    }
    ids.discard(None)
    calls = [i for i, m in enumerate(messages) if ids & {c["id"] for c in m.get("tool_calls", ())}]
    ids |= {c["id"] for i in calls for c in messages[i]["tool_calls"]}
    return {index, *calls} | {i for i, m in enumerate(messages) if m.get("tool_call_id") in ids}


def chat(*texts: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": text} for text in texts]


def test_pinned_turns_stay_and_the_budget_is_returned() -> None:
    given_chat: Any = {"encoding": encoding_for("openai-chat"), "format": "openai-chat"}
    messages = chat("one", "two", "three", "four")
    assert fit_chat(messages, 13, **given_chat, pinned=[0]).kept == [0, 3]
    assert fit_chat(messages, 18, **given_chat, pinned=[0]).kept == [0, 2, 3]
    with pytest.raises(BudgetTooSmall) as rejected:
        fit_chat(messages, 12, **given_chat, pinned=[0])
    assert (rejected.value.needed, rejected.value.budget) == (13, 12)


def test_a_rule_that_a_shorter_chat_breaks_is_reported_with_the_index_in_the_whole_one() -> None:
    """Without the second turn, the pinned message of a user comes before that of another."""
    given_chat: Any = {"encoding": encoding_for("gemma"), "format": "gemma"}
    messages = chat("aaa", "b", "c " * 30, "d", "e")
    for message in messages[1::2]:
        message["role"] = "assistant"
    with pytest.raises(InvalidChat) as rejected:
        fit_chat(messages, 25, **given_chat, pinned=[0])
    found = rejected.value
    assert (found.index, found.field, found.rule) == (4, "role", "roles_must_alternate")


@pytest.mark.parametrize("name", ["gemma", "mistral-v3"])
@quick
@given(data=st.data())
def test_the_longest_chat_that_a_strict_format_accepts_is_found(name: str, data: Any) -> None:
    given_chat: Any = {"encoding": encoding_for(name), "format": name}
    roles = ["system"] * data.draw(st.integers(0, 1))
    first = len(roles)
    roles += ["user", "assistant"] * data.draw(st.integers(1, 6))
    messages = [{"role": role, "content": f"w{data.draw(words)}"} for role in roles]
    end = len(messages)
    pinned = data.draw(st.sets(st.integers(0, end - 1), max_size=4))
    turns, keeps_system = data.draw(st.integers(0, 2)), data.draw(st.booleans())
    whole = count_chat(messages, **given_chat).count
    budget = data.draw(st.integers(0, whole - 1))
    counts: dict[int, Any] = {}
    rejected = 0
    for start in range(first, max(first, end - 2 * turns) + 1, 2):
        kept = [i for i in range(end) if i >= start or i in pinned or (keeps_system and i < first)]
        try:
            counts[count_chat([messages[i] for i in kept], **given_chat).count] = kept
        except InvalidChat:
            rejected += 1
    fitting = [count for count in counts if count <= budget]

    def fit() -> Any:
        return fit_chat(
            messages,
            budget,
            **given_chat,
            pinned=pinned,
            min_last_turns=turns,
            keep_system=keeps_system,
        )

    if fitting:
        assert fit().kept == counts[max(fitting)]
    elif rejected and not counts.keys() - {whole}:
        with pytest.raises(InvalidChat):
            fit()
    else:
        with pytest.raises(BudgetTooSmall) as small:
            fit()
        assert small.value.needed == min([whole, *counts])


def test_few_of_many_shorter_chats_that_a_format_rejects_are_tried() -> None:
    rendered = []

    class Recorded(Gemma):
        def render(self, chat: Chat) -> Layout:
            rendered.append(chat)
            return super().render(chat)

    given_chat: Any = {"encoding": encoding_for("gemma"), "format": Recorded()}
    messages = chat(*["word"] * 2000)
    for message in messages[1::2]:
        message["role"] = "assistant"
    # Only the last turn follows a message of the assistant.
    fitted = fit_chat(messages, 5000, **given_chat, pinned=[0, 1997])
    assert fitted.kept == [0, 1997, 1998, 1999]
    # A message of the assistant would be the first.
    pinned: Any
    for pinned in ([1], range(1, 2000, 2)):
        with pytest.raises(InvalidChat):
            fit_chat(messages, 5000, **given_chat, pinned=pinned)
    assert len(rendered) < 100


@pytest.mark.parametrize(("pinned", "kept"), [([0, 3], [0, 3, 4, 5]), ([1], None)])
def test_a_chat_is_freed_without_garbage_collection_after_rejected_tries(
    pinned: list[int], kept: list[int] | None
) -> None:
    chosen = Gemma()
    messages = chat(*["word"] * 6)
    for message in messages[1::2]:
        message["role"] = "assistant"
    fitted = None
    gc.collect()
    gc.disable()
    try:
        with suppress(InvalidChat):
            fitted = fit_chat(
                messages, 30, encoding=encoding_for("gemma"), format=chosen, pinned=pinned
            ).kept
        used = weakref.ref(chosen)
        del chosen
        assert (fitted, used()) == (kept, None)
    finally:
        gc.enable()


def test_a_message_to_be_continued_is_kept_with_its_turn() -> None:
    given_chat: Any = {"encoding": encoding_for("harmony"), "format": "harmony"}
    given_chat["options"] = ChatOptions(continue_final_message=True)
    messages = chat("hi", "b", "c", "d")
    for message in messages[1::2]:
        message["role"] = "assistant"
    last_turn = count_chat(messages[2:], **given_chat).count
    assert fit_chat(messages, last_turn, **given_chat, min_last_turns=0).kept == [2, 3]
    with pytest.raises(BudgetTooSmall) as rejected:
        fit_chat(messages, last_turn - 1, **given_chat, min_last_turns=0)
    assert rejected.value.needed == last_turn


def test_a_low_refill_percent_drops_more_at_once() -> None:
    given_chat: Any = {"encoding": encoding_for("openai-chat"), "format": "openai-chat"}
    messages = chat(*["word"] * 20)
    assert len(fit_chat(messages, 63, **given_chat).kept) == 12
    assert len(fit_chat(messages, 63, **given_chat, refill_percent=50).kept) == 5
    assert len(fit_chat(messages, 103, **given_chat, refill_percent=50).kept) == 20


def test_system_messages_are_kept_unless_they_may_be_dropped() -> None:
    """The message before the first user message is a turn too."""
    given_chat: Any = {"encoding": encoding_for("openai-chat"), "format": "openai-chat"}
    pairs = [("system", "be kind"), ("assistant", "hello"), ("user", "one")]
    messages = [{"role": role, "content": text} for role, text in pairs]
    assert fit_chat(messages, 14, **given_chat).kept == [0, 2]
    assert fit_chat(messages, 14, **given_chat, keep_system=False).kept == [1, 2]
    assert fit_chat(messages, 12, **given_chat, keep_system=False).kept == [2]


def test_a_chat_may_need_less_than_the_part_that_must_be_kept() -> None:
    """Without a system message, the format adds its own, which is longer."""
    given_chat: Any = {"encoding": encoding_for("qwen2.5"), "format": "qwen2.5"}
    messages = [{"role": "system", "content": "Hi"}, *chat("x")]
    whole = count_chat(messages, **given_chat).count
    assert whole < count_chat(messages[1:], **given_chat).count
    assert fit_chat(messages, whole, **given_chat, keep_system=False).kept == [0, 1]
    with pytest.raises(BudgetTooSmall) as rejected:
        fit_chat(messages, whole - 1, **given_chat, keep_system=False)
    assert rejected.value.needed == whole


def test_a_chat_without_its_last_turn_may_need_more() -> None:
    """Reasoning is only written after the last message of a user."""
    given_chat: Any = {"encoding": encoding_for("qwen3"), "format": "qwen3"}
    messages = chat("a", "b", "word " * 30, "c")
    messages[1] |= {"role": "assistant", "reasoning": "one two three four five six seven eight"}
    how: Any = {**given_chat, "pinned": [0, 1], "min_last_turns": 0}
    needed = count_chat([*messages[:2], messages[3]], **given_chat).count
    assert needed < count_chat(messages[:2], **given_chat).count
    with pytest.raises(BudgetTooSmall) as rejected:
        fit_chat(messages, needed - 1, **how)
    assert rejected.value.needed == needed
    for percent in (100, 50):
        assert fit_chat(messages, needed, **how, refill_percent=percent).kept == [0, 1, 3]


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("reserve_tokens", -1),
        ("pinned", [5]),
        ("pinned", [-1]),
        ("min_last_turns", -1),
        ("refill_percent", 0),
        ("refill_percent", 101),
    ],
)
def test_options_out_of_range_are_rejected(option: str, value: Any) -> None:
    given_chat: Any = {"encoding": encoding_for("openai-chat"), "format": "openai-chat"}
    with pytest.raises(InvalidOption, match=option):
        fit_chat(chat("a"), 10, **given_chat, **{option: value})


def test_an_index_of_a_wrong_type_is_rejected() -> None:
    given_chat: Any = {"encoding": encoding_for("openai-chat"), "format": "openai-chat"}
    wrong: list[Any] = [[[1]], ["a", -1]]
    for pinned in wrong:
        with pytest.raises(TypeError, match=r"^pinned: each index must be int, not (list|str)$"):
            fit_chat(chat("a"), 10, **given_chat, pinned=pinned)


def test_a_limit_below_zero_is_rejected() -> None:
    encoding = encoding_for("openai-chat")
    with pytest.raises(InvalidOption, match="limit"):
        count_chat(chat("a"), encoding=encoding, format="openai-chat", limit=-1)
