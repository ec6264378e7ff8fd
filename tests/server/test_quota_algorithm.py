"""The algorithm of quotas."""

from __future__ import annotations

import pytest
from bytepair_server.auth.api_keys import Keys
from bytepair_server.auth.callers import Callers
from bytepair_server.auth.quotas import Bucket, Quota, Quotas
from bytepair_server.config.tables import CallerTable, QuotaTable
from bytepair_server.errors import QuotaExceeded
from bytepair_server.rpc.status import failure_of
from bytepair_server.shared.quotas import QuotaStore

#: A rate so low that no quota refills within a test.
SLOW = 0.001
#: Two requests and 100 bytes.
SMALL = QuotaTable(
    requests_per_second=SLOW,
    request_burst=2,
    input_bytes_per_second=SLOW,
    input_burst_bytes=100,
)


class Clock:
    """A clock that only the test advances."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_bucket_fills_at_its_rate_up_to_its_burst() -> None:
    clock = Clock()
    bucket = Bucket(10, 20, QuotaStore().account("a").requests, clock)
    assert bucket.wait(20) == 0
    bucket.take(20)
    assert bucket.wait(1) == pytest.approx(0.1)
    clock.now += 1
    assert bucket.wait(10) == 0
    assert bucket.wait(11) == pytest.approx(0.1)
    clock.now += 1000
    assert bucket.wait(20) == 0
    bucket.take(21)
    assert bucket.wait(0) == pytest.approx(0.1)


@pytest.mark.parametrize("entered", [1, 2, 3])
def test_concurrent_requests_are_limited(entered: int) -> None:
    quota = Quota(QuotaTable(concurrent_requests=2), QuotaStore().account("a"))
    for _ in range(min(entered, 2)):
        quota.enter(10)
    if entered == 3:
        with pytest.raises(QuotaExceeded) as caught:
            quota.enter(10)
        assert (caught.value.quota, caught.value.limit) == ("concurrent_requests", 2)
        quota.leave()
        quota.enter(10)


def test_a_call_rejected_by_one_quota_uses_up_no_other() -> None:
    table = SMALL.model_copy(update={"concurrent_requests": 1})
    quota = Quota(table, QuotaStore().account("a"), Clock())
    quota.enter(60)
    with pytest.raises(QuotaExceeded, match="concurrent"):
        quota.enter(1)
    quota.leave()
    with pytest.raises(QuotaExceeded, match="input_bytes"):
        quota.enter(41)
    quota.enter(40)
    quota.leave()
    quota.leave()
    with pytest.raises(QuotaExceeded, match="requests_per_second"):
        quota.enter(0)


def test_a_message_that_is_read_later_is_charged_or_its_request_is_not() -> None:
    quota = Quota(SMALL, QuotaStore().account("a"), Clock())
    quota.enter(0)
    quota.charge_message(60)
    quota.enter(0)
    with pytest.raises(QuotaExceeded, match="input_bytes"):
        quota.charge_message(41)
    quota.enter(40)
    with pytest.raises(QuotaExceeded, match="requests_per_second"):
        quota.enter(0)


def test_each_limit_comes_from_the_first_table_that_sets_it() -> None:
    callers = Callers(
        Keys({b"1": "own", b"2": "grouped", b"3": "plain"}, frozenset()),
        {"own": CallerTable(group="few"), "grouped": CallerTable(group="few")},
    )
    default = QuotaTable(requests_per_second=5, request_burst=50, open_streams=9)
    few = QuotaTable(requests_per_second=2, concurrent_requests=3)
    own = QuotaTable(concurrent_requests=4)
    quotas = Quotas({"default": default, "few": few, "own": own}, callers)
    assert quotas.table("plain") == default
    assert quotas.table("grouped") == QuotaTable(
        requests_per_second=2, concurrent_requests=3, open_streams=9
    )
    assert quotas.table("own") == QuotaTable(
        requests_per_second=2, concurrent_requests=4, open_streams=9
    )
    assert quotas.of("plain") is quotas.of("plain")
    assert quotas.of("plain") is not None
    assert Quotas({"few": few}, callers).of("plain") is None


@pytest.mark.parametrize(("rate", "delay"), [(100_000, "0.001"), (400, "0.003"), (10, "0.100")])
def test_the_delay_before_a_retry_is_rounded_up_to_a_millisecond(rate: int, delay: str) -> None:
    table = QuotaTable(requests_per_second=rate, request_burst=1)
    quota = Quota(table, QuotaStore().account("a"), Clock())
    quota.enter(0)
    with pytest.raises(QuotaExceeded) as caught:
        quota.enter(0)
    assert caught.value.retry_seconds == float(delay)
    failed = failure_of(caught.value)
    assert failed is not None
    assert failed.message.endswith(f"try again in {delay} s")
