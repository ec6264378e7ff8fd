"""The order in which what waits is taken."""

from __future__ import annotations

from typing import TypeVar

import pytest
from bytepair_server.admission.fair_queue import REMEMBERED, FairQueue
from hypothesis import given
from hypothesis import strategies as st

T = TypeVar("T")


def wanted(_: object) -> bool:
    return True


def taken(queue: FairQueue[T], count: int) -> list[T]:
    return [queue.get() for _ in range(count)]


def test_flows_take_turns_whoever_came_first_with_how_much() -> None:
    queue = FairQueue[str](wanted)
    for index in range(4):
        queue.put("busy", 10, f"busy{index}")
    for index in range(2):
        queue.put("late", 10, f"late{index}")
    assert taken(queue, 6) == ["busy0", "late0", "busy1", "late1", "busy2", "busy3"]


def test_a_flow_of_small_items_gets_as_much_as_one_of_large_ones() -> None:
    queue = FairQueue[str](wanted)
    for index in range(3):
        queue.put("large", 100, f"large{index}")
    for index in range(20):
        queue.put("small", 10, f"small{index}")
    order = taken(queue, 23)
    assert order[:12] == ["large0", *(f"small{i}" for i in range(10)), "large1"]


def test_one_who_waited_for_nothing_has_saved_nothing_up() -> None:
    queue = FairQueue[str](wanted)
    for index in range(100):
        queue.put("steady", 10, f"steady{index}")
    taken(queue, 50)
    for index in range(3):
        queue.put("idle till now", 10, f"late{index}")
    first = taken(queue, 6)
    assert [item[:4] for item in first].count("late") == 3


@given(
    st.lists(st.one_of(st.none(), st.tuples(st.integers(0, 3), st.integers(1, 1000))), max_size=200)
)
def test_everything_comes_out_once_and_each_flow_in_its_order(
    steps: list[tuple[int, int] | None],
) -> None:
    queue = FairQueue[tuple[int, int]](wanted)
    put: dict[int, list[int]] = {}
    got: dict[int, list[int]] = {}
    for number, step in enumerate(steps):
        if step is not None:
            flow, cost = step
            put.setdefault(flow, []).append(number)
            queue.put(flow, cost, (flow, number))
        elif queue:
            flow, item = queue.get()
            got.setdefault(flow, []).append(item)
    while queue:
        flow, item = queue.get()
        got.setdefault(flow, []).append(item)
    assert got == put


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 1000)), min_size=1, max_size=100))
def test_flows_that_wait_all_along_get_equal_shares(items: list[tuple[int, int]]) -> None:
    """The bound of the paper's theorem 1: two flows differ by their largest items."""
    queue = FairQueue[tuple[int, int]](wanted)
    for flow, cost in items:
        queue.put(flow, cost, (flow, cost))
    left = {flow: [c for f, c in items if f == flow] for flow, _ in items}
    largest = {flow: max(costs) for flow, costs in left.items()}
    served = dict.fromkeys(left, 0)
    while queue:
        flow, cost = queue.get()
        served[flow] += cost
        left[flow].pop(0)
        waiting = [f for f in left if left[f]]
        for one in waiting:
            for other in waiting:
                assert abs(served[one] - served[other]) <= largest[one] + largest[other]


def test_a_queue_that_was_empty_owes_nobody_anything() -> None:
    queue = FairQueue[str](wanted)
    queue.put("greedy", 1000, "greedy0")
    queue.get()
    queue.put("greedy", 10, "greedy1")
    queue.put("other", 10, "other")
    assert taken(queue, 2) == ["greedy1", "other"]


@pytest.mark.parametrize("rivals", [1, 8, 2 * REMEMBERED, None])
def test_who_asks_for_much_is_not_starved_by_ever_other_flows(rivals: int | None) -> None:
    """Of eight rivals who wait all along the next comes as one goes: one of so many in rotation, or
    each a new one."""
    queue = FairQueue[str](wanted)
    for _ in range(1000):
        queue.put("much", 10, "much")
    served = 0
    for turn in range(8 + 1000):
        queue.put(f"rival{turn if rivals is None else turn % rivals}", 10, "rival")
        if turn >= 8:
            served += queue.get() == "much"
            served += queue.get() == "much"
    assert served >= 1000 / 10


def test_few_flows_are_remembered_also_where_somebody_always_waits() -> None:
    queue = FairQueue[int](wanted)
    queue.put(0, 1, 0)
    for flow in range(1, 100 * REMEMBERED):
        queue.put(flow, 1, flow)
        assert queue.get() == flow - 1
    assert len(queue._ends) <= 2 * REMEMBERED


def test_what_a_flow_owes_is_remembered_however_many_others_come() -> None:
    queue = FairQueue[str](wanted)
    for _ in range(3):
        queue.put("busy", 1000, "busy")
    assert taken(queue, 2) == ["busy", "busy"]
    for index in range(3 * REMEMBERED):
        queue.put(index, 1, "other")
    queue.put("busy", 1000, "busy last")
    order = taken(queue, 3 * REMEMBERED + 2)
    assert order.index("busy last") == len(order) - 1


def test_a_flow_can_be_passed_over_until_it_is_brought_back() -> None:
    queue = FairQueue[str](wanted)
    queue.put("a", 1, "a0")
    queue.set_aside()
    assert queue.first() is None
    for flow in "abc":
        queue.put(flow, 1, f"{flow}1")
    assert [queue.first(), queue.get(), queue.get()] == ["b1", "b1", "c1"]
    assert (queue.first(), len(queue)) == (None, 2)
    queue.bring_back("b")
    assert queue.first() is None
    queue.bring_back("a")
    assert taken(queue, 2) == ["a0", "a1"]


def test_who_gives_up_while_passed_over_is_not_brought_back() -> None:
    given_up = set[str]()
    queue = FairQueue[str](lambda item: item not in given_up)
    for flow in "ab":
        queue.put(flow, 1, flow)
        queue.set_aside()
    given_up.add("a")
    queue.sweep()
    assert len(queue) == 1
    queue.put("a", 1, "a again")
    assert queue.first() == "a again"
    queue.bring_all_back()
    assert sorted(taken(queue, 2)) == ["a again", "b"]
    assert queue.first() is None


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(1, 9)), min_size=1, max_size=60),
    st.sets(st.integers(0, 5)),
)
def test_whom_is_passed_over_for_comes_in_the_same_order(
    items: list[tuple[int, int]], passed_over: set[int]
) -> None:
    whole, others = FairQueue[tuple[int, int]](wanted), FairQueue[tuple[int, int]](wanted)
    for number, (flow, cost) in enumerate(items):
        whole.put(flow, cost, (flow, number))
        others.put(flow, cost, (flow, number))
    expected = [item for item in (whole.get() for _ in items) if item[0] not in passed_over]
    got = []
    while (item := others.first()) is not None:
        if item[0] in passed_over:
            others.set_aside()
        else:
            assert others.get() == item
            got.append(item)
    assert got == expected
    assert len(others) == len(items) - len(expected)
    others.bring_all_back()
    assert sorted(got + taken(others, len(others))) == sorted(
        (flow, number) for number, (flow, _) in enumerate(items)
    )


def test_what_is_not_wanted_any_more_costs_its_flow_nothing() -> None:
    given_up = set[str]()
    queue = FairQueue[str](lambda item: item not in given_up)
    for index in range(3):
        queue.put("a", 1000, f"a{index}")
    for index in range(3):
        queue.put("b", 10, f"b{index}")
    given_up.update(("a0", "a1", "b1"))
    assert queue.first() == "a2"
    assert taken(queue, 3) == ["a2", "b0", "b2"]
    assert queue.first() is None
    queue.put("a", 1, "a3")
    queue.put("c", 1, "c0")
    given_up.update(("a3", "c0"))
    queue.sweep()
    assert len(queue) == 0


def test_a_flow_is_not_owed_what_went_past_it() -> None:
    queue = FairQueue[str](wanted)
    for _ in range(20):
        queue.put("a", 1, "a")
        queue.put("b", 1, "b")
    queue.set_aside()
    assert taken(queue, 10) == ["b"] * 10
    queue.bring_back("a")
    assert taken(queue, 10).count("b") >= 4


def test_debts_end_where_the_last_that_waited_gave_up() -> None:
    given_up = set[str]()
    queue = FairQueue[str](lambda item: item not in given_up)
    queue.put("a", 1000, "a0")
    queue.put("b", 1, "b0")
    assert queue.get() == "a0"
    given_up.add("b0")
    assert queue.first() is None
    queue.put("a", 1, "a1")
    queue.put("b", 1, "b1")
    assert taken(queue, 2) == ["a1", "b1"]
