"""Which calls wait for which, and what leaves when: the decisions alone, without a server."""

from __future__ import annotations

import random
from concurrent.futures import Future
from typing import Any

import pytest
from bytepair.v1 import tokenizer_pb2
from bytepair_client import operations
from bytepair_client.errors import InputTooLarge, Unimplemented
from bytepair_client.joint import FORMS, MAX_MEMBER_BYTES, Joint, Member, key_of
from bytepair_client.lanes import MAX_AT_ONCE, MAX_BYTES, MAX_ITEMS, Lanes
from bytepair_client.options import Defaults

SERVICE = tokenizer_pb2.DESCRIPTOR.services_by_name["TokenizerService"]
DEFAULTS = Defaults("e", None, 10.0, 1 << 20)


def member(text: str = "text", **options: Any) -> Member:
    call = operations.count(DEFAULTS, text, **options)
    key = key_of(call)
    assert key is not None
    return Member(call, key, Future())


KEY = member().key


def busy(lanes: Lanes) -> None:
    """Have as many calls under way as leave at once."""
    for _ in range(MAX_AT_ONCE):
        assert lanes.try_alone(KEY)
    assert not lanes.try_alone(KEY)


def left(joint: Joint | None) -> list[Member]:
    return [] if joint is None else joint.members


def test_what_finds_the_channel_idle_leaves_at_once_and_alone() -> None:
    lanes = Lanes()
    busy(lanes)
    one, two = member(), member()
    assert lanes.gather(one) is lanes.gather(two) is None
    assert left(lanes.ended(one.key)) == [one, two]


def test_the_first_sees_to_it_that_all_leave_in_time() -> None:
    lanes = Lanes()
    busy(lanes)
    one, two, three = member(), member(), member()
    for waiting in (one, two):
        lanes.gather(waiting)
    assert lanes.is_first(one)
    assert not lanes.is_first(two)
    assert left(lanes.overdue(one)) == [one, two]
    assert left(lanes.overdue(one)) == []
    lanes.gather(three)
    assert lanes.is_first(three)


def test_when_the_first_gives_up_the_others_leave() -> None:
    lanes = Lanes()
    busy(lanes)
    one, two, three = member(), member(), member()
    for waiting in (one, two, three):
        lanes.gather(waiting)
    assert left(lanes.give_up(two)) == []
    assert left(lanes.give_up(one)) == [three]


@pytest.mark.parametrize(
    "options",
    [
        {"limit": 0},
        {"limit": 1},
        {"encoding": "other"},
        {"expected_fingerprint": "sha256:1"},
        {"allowed_special": {"<|a|>"}},
        {"allowed_special": "all"},
        {"disallowed_special": "all"},
        {"add_special_tokens": True},
    ],
)
def test_only_calls_with_the_same_options_join(options: dict[str, Any]) -> None:
    lanes = Lanes()
    busy(lanes)
    other = member(**options)
    assert lanes.try_alone(other.key)
    assert member("another text", **options).key == other.key


def test_how_many_join_is_bounded() -> None:
    lanes = Lanes()
    busy(lanes)
    crowd = [member() for _ in range(MAX_ITEMS + 1)]
    departed = [lanes.gather(one) for one in crowd]
    assert [left(joint) for joint in departed if joint] == [crowd[:-1]]
    assert departed[MAX_ITEMS - 1] is not None


def test_how_much_joins_is_bounded() -> None:
    lanes = Lanes()
    busy(lanes)
    large = "x" * (MAX_MEMBER_BYTES - 100)
    crowd = [member(large) for _ in range(MAX_BYTES // MAX_MEMBER_BYTES + 1)]
    departed = [joint for one in crowd if (joint := lanes.gather(one))]
    assert [left(joint) for joint in departed] == [crowd[:-1]]
    assert len(departed[0].request().SerializeToString()) <= MAX_BYTES


def test_a_large_call_goes_by_itself() -> None:
    assert key_of(operations.count(DEFAULTS, "x" * MAX_MEMBER_BYTES)) is None
    assert key_of(operations.list_encodings(DEFAULTS)) is None
    assert key_of(operations.count_batch(DEFAULTS, ["text"])) is None


def test_what_a_server_refuses_is_not_sent_again() -> None:
    lanes = Lanes()
    busy(lanes)
    lanes.learn(InputTooLarge("", metadata={"field": "items", "limit": "2"}))
    one, two = member(), member()
    assert lanes.gather(one) is None
    assert left(lanes.gather(two)) == [one, two]
    lanes.learn(InputTooLarge("", metadata={"field": "items.text", "limit": "20"}))
    assert lanes.gather(one) is None
    assert left(lanes.gather(member("x" * 20))) == [one]
    lanes.learn(Unimplemented(""))
    assert lanes.try_alone(KEY)


@pytest.mark.parametrize("path", FORMS)
def test_a_batch_has_every_option_of_the_single_call(path: str) -> None:
    form, rpc = FORMS[path], SERVICE.methods_by_name[path.rpartition("/")[2]]
    options = set(rpc.input_type.fields_by_name) - set(form.content)
    assert options | {"items"} == set(form.request.DESCRIPTOR.fields_by_name)
    item = form.request.DESCRIPTOR.fields_by_name["items"].message_type
    assert item is not None
    assert set(item.fields_by_name) == set(form.content)


def test_every_call_leaves_once_whatever_happens() -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    lanes = Lanes()
    waiting: list[Member] = []
    under_way: list[Joint] = []
    gone: list[Member] = []
    arrived = 0

    def leave(joint: Joint | None) -> None:
        if joint is not None:
            assert len(joint.members) <= MAX_ITEMS
            assert sum(one.size for one in joint.members) <= MAX_BYTES
            assert len({one.key for one in joint.members}) == 1
            under_way.append(joint)
            gone.extend(joint.members)
            for one in joint.members:
                waiting.remove(one)

    for _ in range(3_000):
        match chance.choice(["arrive"] * 6 + ["ended", "give up", "overdue"]):
            case "arrive":
                one = member("x" * chance.choice([1, 100, 16_000]), limit=chance.choice([None, 3]))
                if lanes.try_alone(one.key):
                    under_way.append(Joint([one]))
                else:
                    arrived += 1
                    waiting.append(one)
                    leave(lanes.gather(one))
            case "ended" if under_way:
                leave(lanes.ended(under_way.pop(chance.randrange(len(under_way))).key))
            case "give up" if waiting:
                one = chance.choice(waiting)
                waiting.remove(one)
                arrived -= 1
                leave(lanes.give_up(one))
            case "overdue" if waiting:
                leave(lanes.overdue(chance.choice(waiting)))
    while under_way:
        leave(lanes.ended(under_way.pop().key))
    assert not waiting
    assert len(gone) == len(set(gone)) == arrived
    assert not lanes._lanes  # nothing is kept of what is over
