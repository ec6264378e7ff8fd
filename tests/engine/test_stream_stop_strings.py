"""Stop strings: the leftmost match, and the longest at the same start, for every cut."""

from __future__ import annotations

import random
import threading
from contextlib import suppress
from time import thread_time
from typing import Any

import pytest
from bytepair_engine import Cancelled, CancelScope, StreamDecoder, UnknownTokenId
from bytepair_engine.streaming import stop_strings
from bytepair_engine.streaming.stop_strings import StopMatcher, StopStrings, compile_stops
from bytepair_engine.toy import toy
from hypothesis import given
from hypothesis import strategies as st

letters = st.text("abcé", max_size=14)
stops = st.lists(st.text("abcé", min_size=1, max_size=5), min_size=1, max_size=4)


def first_match(text: str, stop: list[str]) -> tuple[int, str] | None:
    """Return the leftmost match, and the longest there. This is the definition."""
    for start in range(len(text)):
        here = [string for string in stop if text.startswith(string, start)]
        if here:
            return start, max(here, key=len)
    return None


def run(ids: bytes, size: int, **options: Any) -> tuple[Any, StreamDecoder[Any]]:
    decoder = StreamDecoder(toy(), **options)
    parts = [decoder.feed(ids[i : i + size]) for i in range(0, len(ids), size)]
    parts.append(decoder.finish())
    return parts[0][:0].join(parts), decoder


@pytest.mark.slow
@given(text=letters, stop=stops, size=st.integers(1, 20), include=st.booleans())
def test_the_first_match_wins_for_every_cut(
    text: str, stop: list[str], size: int, include: bool
) -> None:
    data = text.encode()
    found = first_match(text, stop)
    expected, matched, consumed = text, None, len(data)
    if found:
        start, matched = found
        expected = text[:start] + (matched if include else "")
        consumed = len((text[:start] + matched).encode())
    options = {"stop": stop, "include_stop": include}
    for as_bytes in (False, True):
        got, decoder = run(data, size, as_bytes=as_bytes, **options)
        assert got == (expected.encode() if as_bytes else expected)
        assert decoder.stop_matched == matched
        assert decoder.tokens_consumed == consumed
        assert decoder.finished


@given(data=st.binary(max_size=12), stop=st.lists(st.sampled_from(["\ufffd", "\ufffdA", "A", "é"])))
def test_text_decoded_from_invalid_bytes_is_matched_too(data: bytes, stop: list[str]) -> None:
    text = data.decode(errors="replace")
    found = first_match(text, stop)
    got, decoder = run(data, 1, stop=stop)
    assert got == (text[: found[0]] if found else text)
    assert decoder.stop_matched == (found[1] if found else None)


@given(text=letters, stop=stops)
def test_only_text_that_can_still_become_a_match_is_held(text: str, stop: list[str]) -> None:
    decoder = StreamDecoder(toy(), stop=stop)
    given_so_far = ""
    for end in range(1, len(text) + 1):
        given_so_far += decoder.feed(text[end - 1].encode())
        if decoder.finished:
            break
        held = text[len(given_so_far) : end]
        assert decoder.pending_bytes == len(held.encode())
        assert (
            not held
            or any(string.startswith(held) for string in stop)
            or any(held.startswith(string) for string in stop)
        )


@pytest.mark.parametrize("size", range(1, 12))
def test_a_stop_string_across_several_chunks(size: int) -> None:
    """vLLM #3574, SwiftLM #126, sgl-model-gateway #2203: a prefix leaked, text was doubled, or text
    was held forever."""
    got, decoder = run(b"ABCDEFGHIJKLM", size, stop=["DEFGHIJ"])
    assert (got, decoder.stop_matched, decoder.tokens_consumed) == ("ABC", "DEFGHIJ", 10)
    got, decoder = run(b"ABCDEFGHI DEFGH", size, stop=["DEFGHIJ"])
    assert (got, decoder.stop_matched) == ("ABCDEFGHI DEFGH", None)


def test_a_complete_match_waits_for_an_earlier_start_or_a_longer_end() -> None:
    decoder = StreamDecoder(toy(), stop=["bc", "bcx", "abcd"])
    assert [decoder.feed([unit]) for unit in b"abc"] == ["", "", ""]
    assert (decoder.stop_matched, decoder.tokens_consumed) == (None, 3)
    assert decoder.feed(b"y") == "a"
    assert (decoder.stop_matched, decoder.tokens_consumed) == ("bc", 3)


def test_text_after_a_stop_string_is_not_read() -> None:
    decoder = StreamDecoder(toy(), stop=["b"])
    assert decoder.feed([97, 98, -1]) == "a"
    assert decoder.fault is None
    assert decoder.feed([-1]) == ""
    assert (decoder.tokens_consumed, decoder.finish()) == (2, "")


def test_an_error_releases_the_held_text() -> None:
    decoder = StreamDecoder(toy(), stop=["abc", "ab"])
    assert decoder.feed([120, 97, -1]) == "xa"
    with pytest.raises(UnknownTokenId):
        decoder.finish()
    decoder = StreamDecoder(toy(), stop=["abc", "ab"])
    assert decoder.feed([120, 97, 98, -1]) == "x"
    assert (decoder.stop_matched, decoder.fault) == ("ab", None)


def test_a_stop_string_completed_by_the_flush() -> None:
    decoder = StreamDecoder(toy(), stop=["a\ufffd"])
    assert decoder.feed(b"xa\xf0\x9f") == "x"
    assert decoder.finish() == ""
    assert (decoder.stop_matched, decoder.tokens_consumed) == ("a\ufffd", 4)


def state_of(text: Any, stop: list[Any]) -> tuple[int, Any]:
    """Return the end of the text that can be released, and the match if it is decided, for a text
    that may continue. This is the definition."""
    for start in range(len(text)):
        rest = text[start:]
        if any(len(string) > len(rest) and string.startswith(rest) for string in stop):
            return start, None
        here = [string for string in stop if rest.startswith(string)]
        if here:
            return start, max(here, key=len)
    return len(text), None


#: How `stop_strings` reads long texts, and extreme values, so that every boundary is crossed.
SIZES = [
    {},
    {"_PART": 1, "_SHORT": 0, "_FEW": 1, "_KEPT_STEPS": 1},
    {"_PART": 7, "_SHORT": 1, "_FEW": 1, "_KEPT_STEPS": 5},
    {"_PART": 40, "_SHORT": 0, "_FEW": 4, "_KEPT_STEPS": 0},
]


@pytest.fixture(params=SIZES, ids=str)
def sizes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in request.param.items():
        monkeypatch.setattr(stop_strings, name, value)


def a_case(rng: random.Random) -> tuple[Any, list[Any]]:
    """Generate a text over a tiny alphabet and stop strings that nearly match it: prefixes of each
    other, repeated letters, parts of the text, and strings that differ from it only at the end."""
    alphabet = rng.choice(["a", "ab", "abc", "aé中", "b\U0001f600"])
    text = "".join(rng.choices(alphabet, k=rng.choice([8, 40, 150])))
    stop = ["".join(rng.choices(alphabet, k=rng.choice([1, 2, 5, 12, 40]))) for _ in range(2)]
    place = rng.randrange(len(text))
    stop += [text[place : place + 50], stop[0][:4], stop[1] + stop[0], rng.choice(alphabet) * 9]
    stop = rng.sample(stop, rng.randrange(1, len(stop) + 1))
    if rng.random() < 0.6:
        stop = [string + "X" for string in stop]
        text += rng.choice(["", "X", *stop])
    if rng.random() < 0.3:
        return text.encode(), [string.encode() for string in stop]
    return text, stop


@pytest.mark.slow
def test_every_step_of_a_long_text_equals_the_definition(sizes: None) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    for _ in range(300):
        text, stop = a_case(rng)
        automaton: StopStrings[Any] = StopStrings(stop)
        for _ in range(3):  # later rounds use the cached steps
            include = rng.random() < 0.5
            matcher = StopMatcher(automaton, text[:0], include_stop=include)
            given_so_far, end, matched = text[:0], 0, None
            while end < len(text) and matched is None:
                start, end = end, end + rng.choice([1, 2, 5, 33, 64, 1000])
                if rng.random() >= 0.3 or not matcher.passes(text[start:end]):
                    given_so_far += matcher.feed(text[start:end])
                else:
                    given_so_far += text[start:end]
                free, matched = state_of(text[:end], stop)
                if matched is not None and include:
                    free += len(matched)
                assert given_so_far == text[:free]
                assert matcher.matched == matched
                assert matcher.held == (text[free:end] if matched is None else text[:0])
            if matched is None:
                # The text ends here: only complete matches count.
                whole = [start for start in range(len(text)) if text.startswith(tuple(stop), start)]
                assert given_so_far + matcher.finish() == (
                    text[: whole[0] + len(matcher.matched or "") * include] if whole else text
                )


@pytest.mark.parametrize("place", range(-4, 3))
@pytest.mark.parametrize("before", ["x", "S", "ST", "STO "])
def test_a_stop_string_across_two_blocks(before: str, place: int) -> None:
    """A long text is read in blocks. Each block begins in the state in which the last one ended."""
    for part in (1, 2):
        size = part * stop_strings._PART + place
        text = (before * size)[-size:]
        matcher = StopMatcher(compile_stops(("STOP", "TOPS")), "", include_stop=True)
        assert matcher.feed(text + "STOP" + "S") == text + "STOP"
        assert (matcher.matched, matcher.end) == ("STOP", size + 4)


#: A text of spaces contains each of them except for one character, at every position.
WORST = tuple(" " * 63 + chr(ord("A") + i) for i in range(60))


def test_a_repeated_step_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cost of a character of a long text if every position nearly is a match."""
    automaton, made = StopStrings(WORST), 0
    step = StopStrings.next

    def counting(self: StopStrings[str], state: int, unit: str) -> int:
        nonlocal made
        made += 1
        return step(self, state, unit)

    monkeypatch.setattr(StopStrings, "next", counting)
    matcher = StopMatcher(automaton, "", include_stop=False)
    assert matcher.feed(" " * 1_000_000) == " " * (1_000_000 - 63)
    assert made <= 64


def test_the_number_of_cached_steps_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stop_strings, "_KEPT_STEPS", 100)
    automaton = StopStrings(("aX",))
    matcher = StopMatcher(automaton, "", include_stop=False)
    text = "".join("a" + chr(n) for n in range(0x4E00, 0x5600))
    assert matcher.feed(text) == text
    assert 0 < sum(map(len, automaton._known)) <= 100


def test_streams_of_several_threads_share_an_automaton(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its cache of steps is cleared all the time."""
    monkeypatch.setattr(stop_strings, "_KEPT_STEPS", 3)
    stop = ["abcabd", "bcc", "cabab"]
    automaton, wrong = StopStrings(stop), []

    def work(seed: int) -> None:
        rng = random.Random(seed)
        for _ in range(200):
            text = "".join(rng.choices("abcd", k=100))
            matcher = StopMatcher(automaton, "", include_stop=False)
            got = matcher.feed(text) + ("" if matcher.matched else matcher.finish())
            found = first_match(text, stop)
            if got != (text[: found[0]] if found else text):
                wrong.append(text)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_long_text_in_a_cancelled_scope_is_not_searched() -> None:
    scope, text = CancelScope(), "S " * 1000
    matcher = StopMatcher(compile_stops(("STOP",)), "", include_stop=False)
    with scope:
        assert matcher.feed("xS") == "x"
        scope.cancel()
        with pytest.raises(Cancelled):
            matcher.feed(text)
    assert (matcher.held, matcher.seen) == ("S", 2)  # nothing of it was consumed
    assert matcher.feed(text) == "S" + text


def cpu_seconds(text: str, cancel_after: float | None) -> float:
    scope, began = CancelScope(), thread_time()
    matcher = StopMatcher(compile_stops(WORST), "", include_stop=False)
    timer = threading.Timer(cancel_after or 0, scope.cancel)
    with scope, suppress(Cancelled):  # it may finish first
        if cancel_after is not None:
            timer.start()
        matcher.feed(text)
    spent = thread_time() - began
    timer.cancel()
    return spent


@pytest.mark.slow
def test_the_search_stops_in_the_middle_of_a_large_text() -> None:
    """The CPU time is compared with that of the whole text; no wall clock is used."""
    text = " " * (16 << 20)
    whole = cpu_seconds(text, None)
    # Retried, because on a busy machine the timer may be late.
    assert min(cpu_seconds(text, 0.01) for _ in range(5)) < whole / 2


def test_a_match_that_is_decided_in_the_call_of_a_fault() -> None:
    decoder = StreamDecoder(toy(), stop=["bc", "abcd"])
    assert decoder.feed(b"abc") == ""
    assert decoder.feed([120, 9999]) == "a"
    assert (decoder.stop_matched, decoder.fault, decoder.tokens_consumed) == ("bc", None, 3)
