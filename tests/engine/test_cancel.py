"""Cancelled work ends soon, with one error, on both backends."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from time import thread_time
from typing import Any

import pytest
from bytepair_engine import Cancelled, CancelScope, Encoding, get_encoding

MIB = 1 << 20
NAME = "cl100k_base"

#: Every way to encode or count.
CALLS: dict[str, Callable[[Encoding, str], Any]] = {
    "encode": Encoding.encode,
    "encode_ordinary": Encoding.encode_ordinary,
    "encode_array": Encoding.encode_array,
    "encode_packed": Encoding.encode_packed,
    "encode_with_offsets": Encoding.encode_with_offsets,
    "encode_batch": lambda encoding, text: encoding.encode_batch([text] * 2),
    "count": Encoding.count,
    "count_batch": lambda encoding, text: encoding.count_batch([text] * 2),
}

#: Texts by the operation that the core spends its time on.
LARGE = {
    "many pre-tokens": "naïve 日本語 x9 " * (2 * MIB),
    "one pre-token, in windows": "ab" * (8 * MIB),
}


@pytest.fixture(params=["native", "reference"])
def encoding(request: pytest.FixtureRequest) -> Encoding:
    return get_encoding(NAME, backend=request.param)


@pytest.mark.parametrize("call", CALLS)
def test_work_in_a_cancelled_scope_does_not_start(encoding: Encoding, call: str) -> None:
    scope = CancelScope()
    with scope:
        expected = CALLS[call](encoding, "hello world")
        scope.cancel()
        for text in ("", "hello world", "hello " * 4096):
            with pytest.raises(Cancelled):
                CALLS[call](encoding, text)
    assert CALLS[call](encoding, "hello world") == expected  # outside of the scope


@pytest.mark.parametrize("call", CALLS)
def test_work_in_an_expired_scope_does_not_start(encoding: Encoding, call: str) -> None:
    for seconds in (0.0, -0.001, -1e300):
        with CancelScope(seconds), pytest.raises(Cancelled):
            CALLS[call](encoding, "hello world")
    expected = CALLS[call](encoding, "hello world")
    for seconds in (3600.0, 1e19, 1e300, float("inf"), 10**400):
        with CancelScope(seconds):
            assert CALLS[call](encoding, "hello world") == expected


def test_a_scope_is_cancelled_once_its_time_is_over(encoding: Encoding) -> None:
    scope = CancelScope(seconds=0.0)
    with scope, pytest.raises(Cancelled):
        encoding.count("hello world")
    assert scope.cancelled
    assert not CancelScope(seconds=3600.0).cancelled


def test_a_scope_of_another_thread_does_not_cancel(encoding: Encoding) -> None:
    scope, entered, done = CancelScope(), threading.Event(), threading.Event()

    def hold() -> None:
        with scope:
            entered.set()
            done.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        assert entered.wait(60)
        scope.cancel()
        assert encoding.count("hello world") == 2
    finally:
        done.set()
        thread.join()


def cancelled_after(encoding: Encoding, text: str, seconds: float) -> float:
    """Return the CPU seconds that `count` took until it was cancelled."""
    scope = CancelScope()
    with scope:
        timer = threading.Timer(seconds, scope.cancel)
        timer.start()
        began = thread_time()
        with suppress(Cancelled):  # it may finish first
            encoding.count(text)
        spent = thread_time() - began
        timer.join()
    return spent


@pytest.mark.slow
@pytest.mark.parametrize("kind", LARGE)
def test_the_core_stops_in_the_middle_of_a_large_text(kind: str) -> None:
    """The CPU time is compared with that of the whole text; no wall clock is used."""
    encoding, text = get_encoding(NAME, backend="native", threads=1), LARGE[kind]
    count = encoding.count(text)  # new text takes longer
    began = thread_time()
    assert encoding.count(text) == count
    whole = thread_time() - began
    # Retried, because on a busy machine the timer may be late.
    assert min(cancelled_after(encoding, text, 0.01) for _ in range(5)) < whole / 2
    with CancelScope(seconds=whole / 10), pytest.raises(Cancelled):
        encoding.count(text)
    assert encoding.count(text[: 64 * 1024]) > 0
    assert encoding.count(text) == count  # no partial result was cached


def test_the_reference_stops_in_the_middle_of_a_pre_token() -> None:
    encoding = get_encoding(NAME, backend="reference")
    with CancelScope(seconds=0.05), pytest.raises(Cancelled):  # all of it would take a minute
        encoding.count("ab" * 10_000)


def test_answers_after_a_cancellation_are_right(encoding: Encoding) -> None:
    """Whatever it had merged so far, of pieces on both sides of every limit in length."""
    oracle = get_encoding(NAME, backend="native")
    texts = ["ab" * n for n in (20, 127, 128, 200, 2048, 2049)]
    expected = [oracle.encode(text) for text in texts]
    scope = CancelScope()
    with scope:
        scope.cancel()
        for text in texts:
            with pytest.raises(Cancelled):
                encoding.encode(text)
    if encoding.backend == "native":
        assert [encoding.encode(text) for text in texts] == expected


def test_scopes_do_not_nest() -> None:
    with CancelScope(), pytest.raises(RuntimeError, match="nest"), CancelScope():
        pass
    with CancelScope():  # the outer block has ended
        pass
