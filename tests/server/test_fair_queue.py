"""The order of a fair queue."""

from __future__ import annotations

from typing import TypeVar

import pytest
from bytepair_server.admission.queue import REMEMBERED, FairQueue
from hypothesis import given
from hypothesis import strategies as st

T = TypeVar("T")


def popped(queue: FairQueue[T], count: int) -> list[T]:
    return [queue.pop() for _ in range(count)]


def test_callers_take_turns_whatever_the_length_of_their_queues() -> None:
    queue = FairQueue[str]()
    for index in range(4):
        queue.put("busy", 10, f"busy{index}")
    for index in range(2):
        queue.put("late", 10, f"late{index}")
    assert popped(queue, 6) == ["busy0", "late0", "busy1", "late1", "busy2", "busy3"]


def test_small_and_large_items_get_equal_shares() -> None:
    queue = FairQueue[str]()
    for index in range(3):
        queue.put("large", 100, f"large{index}")
    for index in range(20):
        queue.put("small", 10, f"small{index}")
    order = popped(queue, 23)
    assert order[:12] == ["large0", *(f"small{i}" for i in range(10)), "large1"]


def test_an_idle_caller_accumulates_no_credit() -> None:
    queue = FairQueue[str]()
    for index in range(100):
        queue.put("steady", 10, f"steady{index}")
    popped(queue, 50)
    for index in range(3):
        queue.put("idle till now", 10, f"late{index}")
    first = popped(queue, 6)
    assert [item[:4] for item in first].count("late") == 3


@given(
    st.lists(st.one_of(st.none(), st.tuples(st.integers(0, 3), st.integers(1, 1000))), max_size=200)
)
def test_each_item_is_returned_once_and_in_the_order_of_its_caller(
    steps: list[tuple[int, int] | None],
) -> None:
    queue = FairQueue[tuple[int, int]]()
    put: dict[int, list[int]] = {}
    got: dict[int, list[int]] = {}
    for number, step in enumerate(steps):
        if step is not None:
            caller, cost = step
            put.setdefault(caller, []).append(number)
            queue.put(str(caller), cost, (caller, number))
        elif queue:
            caller, item = queue.pop()
            got.setdefault(caller, []).append(item)
    while queue:
        caller, item = queue.pop()
        got.setdefault(caller, []).append(item)
    assert got == put


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 1000)), min_size=1, max_size=100))
def test_callers_with_queued_items_get_equal_shares(items: list[tuple[int, int]]) -> None:
    """The bound of the paper's theorem 1: two callers differ by their largest items."""
    queue = FairQueue[tuple[int, int, int]]()
    for number, (caller, cost) in enumerate(items):
        queue.put(str(caller), cost, (caller, cost, number))
    left = {caller: [c for f, c in items if f == caller] for caller, _ in items}
    largest = {caller: max(costs) for caller, costs in left.items()}
    served = dict.fromkeys(left, 0)
    while queue:
        caller, cost, _ = queue.pop()
        served[caller] += cost
        left[caller].pop(0)
        waiting = [f for f in left if left[f]]
        for one in waiting:
            for other in waiting:
                assert abs(served[one] - served[other]) <= largest[one] + largest[other]


def test_an_empty_queue_clears_all_debts() -> None:
    queue = FairQueue[str]()
    queue.put("greedy", 1000, "greedy0")
    queue.pop()
    queue.put("greedy", 10, "greedy1")
    queue.put("other", 10, "other")
    assert popped(queue, 2) == ["greedy1", "other"]


@pytest.mark.parametrize("rivals", [1, 8, 2 * REMEMBERED, None])
def test_a_large_call_is_not_starved_by_other_callers(rivals: int | None) -> None:
    """Eight rivals always wait; whenever one is served, another arrives: one of a few in rotation,
    or a new one each time."""
    queue = FairQueue[tuple[str, int]]()
    for number in range(1000):
        queue.put("much", 10, ("much", number))
    served = 0
    for turn in range(8 + 1000):
        queue.put(f"rival{turn if rivals is None else turn % rivals}", 10, ("rival", turn))
        if turn >= 8:
            served += queue.pop()[0] == "much"
            served += queue.pop()[0] == "much"
    assert served >= 1000 / 10


def test_the_number_of_remembered_callers_is_bounded_even_if_one_always_waits() -> None:
    queue = FairQueue[int]()
    queue.put("0", 1, 0)
    for caller in range(1, 100 * REMEMBERED):
        queue.put(str(caller), 1, caller)
        assert queue.pop() == caller - 1
    assert len(queue._ends) <= 2 * REMEMBERED


def test_the_queue_remembers_a_caller_s_cost_among_many_others() -> None:
    queue = FairQueue[str]()
    for index in range(3):
        queue.put("busy", 1000, f"busy{index}")
    assert popped(queue, 2) == ["busy0", "busy1"]
    for index in range(3 * REMEMBERED):
        queue.put(str(index), 1, f"other{index}")
    queue.put("busy", 1000, "busy last")
    order = popped(queue, 3 * REMEMBERED + 2)
    assert order.index("busy last") == len(order) - 1


def test_a_discarded_item_costs_its_caller_nothing() -> None:
    queue = FairQueue[str]()
    for index in range(3):
        queue.put("a", 1000, f"a{index}")
    for index in range(3):
        queue.put("b", 10, f"b{index}")
    assert all(queue.discard(item[0], item) for item in ("a0", "a1", "b1"))
    assert not queue.discard("a", "a0")
    assert not queue.discard("nobody", "a2")
    assert (queue.first(), len(queue)) == ("a2", 3)
    assert popped(queue, 3) == ["a2", "b0", "b2"]
    assert (queue.first(), len(queue)) == (None, 0)
    with pytest.raises(IndexError):
        queue.pop()


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(1, 9)), min_size=1, max_size=60),
    st.data(),
)
def test_the_order_is_the_same_without_the_discarded_items(
    items: list[tuple[int, int]], data: st.DataObject
) -> None:
    """This holds if all items were added before the first was taken."""
    gone = data.draw(st.sets(st.integers(0, len(items) - 1)))
    some, whole = FairQueue[int](), FairQueue[int]()
    for number, (caller, cost) in enumerate(items):
        whole.put(str(caller), cost, number)
        if number not in gone:
            some.put(str(caller), cost, number)
    for number in gone:
        assert whole.discard(str(items[number][0]), number)
    left = len(items) - len(gone)
    assert popped(whole, left) == popped(some, left)
    assert len(whole) == 0


def test_debts_are_cleared_if_the_last_waiting_item_is_discarded() -> None:
    queue = FairQueue[str]()
    queue.put("a", 1000, "a0")
    queue.put("b", 1, "b0")
    assert queue.pop() == "a0"
    assert queue.discard("b", "b0")
    queue.put("a", 1, "a1")
    queue.put("b", 1, "b1")
    assert popped(queue, 2) == ["a1", "b1"]


def test_the_busiest_caller_loses_its_newest_call_to_a_caller_with_fewer() -> None:
    queue = FairQueue[str]()
    for index in range(3):
        queue.put("many", 1, f"many{index}")
    queue.put("few", 1, "few0")
    assert queue.pop_newest_of_busiest("many") is None
    assert queue.pop_newest_of_busiest("few") == "many2"
    assert queue.pop_newest_of_busiest("few") is None  # it would then have more calls
    assert queue.pop_newest_of_busiest("new") == "many1"
    assert queue.pop_newest_of_busiest("new") is None
    assert sorted(popped(queue, 2)) == ["few0", "many0"]
