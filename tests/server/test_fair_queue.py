"""The order in which what waits is taken."""

from __future__ import annotations

from bytepair_server.fair_queue import FairQueue
from hypothesis import given
from hypothesis import strategies as st


def taken(queue: FairQueue[str], count: int) -> list[str]:
    return [queue.get() for _ in range(count)]


def test_flows_take_turns_whoever_came_first_with_how_much() -> None:
    queue = FairQueue[str]()
    for index in range(4):
        queue.put("busy", 10, f"busy{index}")
    for index in range(2):
        queue.put("late", 10, f"late{index}")
    assert taken(queue, 6) == ["busy0", "late0", "busy1", "late1", "busy2", "busy3"]


def test_a_flow_of_small_items_gets_as_much_as_one_of_large_ones() -> None:
    queue = FairQueue[str]()
    for index in range(3):
        queue.put("large", 100, f"large{index}")
    for index in range(20):
        queue.put("small", 10, f"small{index}")
    order = taken(queue, 23)
    assert order[:12] == ["large0", *(f"small{i}" for i in range(10)), "large1"]


def test_one_who_waited_for_nothing_has_saved_nothing_up() -> None:
    queue = FairQueue[str]()
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
    queue = FairQueue[tuple[int, int]]()
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
    queue = FairQueue[tuple[int, int]]()
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
    queue = FairQueue[str]()
    queue.put("greedy", 1000, "greedy0")
    queue.get()
    queue.put("greedy", 10, "greedy1")
    queue.put("other", 10, "other")
    assert taken(queue, 2) == ["greedy1", "other"]
