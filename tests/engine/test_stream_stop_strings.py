"""Stop strings: the leftmost match, the longest at the same start, however the text is cut."""

from __future__ import annotations

from typing import Any

import pytest
from bytepair_engine import StreamDecoder, UnknownTokenId
from bytepair_engine.toy import toy
from hypothesis import given
from hypothesis import strategies as st

letters = st.text("abcé", max_size=14)
stops = st.lists(st.text("abcé", min_size=1, max_size=5), min_size=1, max_size=4)


def first_match(text: str, stop: list[str]) -> tuple[int, str] | None:
    """The definition: the leftmost, and there the longest."""
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
def test_matching_is_on_the_text_of_invalid_bytes_too(data: bytes, stop: list[str]) -> None:
    text = data.decode(errors="replace")
    found = first_match(text, stop)
    got, decoder = run(data, 1, stop=stop)
    assert got == (text[: found[0]] if found else text)
    assert decoder.stop_matched == (found[1] if found else None)


@given(text=letters, stop=stops)
def test_only_what_can_still_become_a_match_is_held(text: str, stop: list[str]) -> None:
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
def test_a_stop_string_over_several_chunks(size: int) -> None:
    """vLLM #3574, SwiftLM #126, sgl-model-gateway #2203: prefix leaked, text doubled, text
    held for ever."""
    got, decoder = run(b"ABCDEFGHIJKLM", size, stop=["DEFGHIJ"])
    assert (got, decoder.stop_matched, decoder.tokens_consumed) == ("ABC", "DEFGHIJ", 10)
    got, decoder = run(b"ABCDEFGHI DEFGH", size, stop=["DEFGHIJ"])
    assert (got, decoder.stop_matched) == ("ABCDEFGHI DEFGH", None)


def test_a_complete_match_waits_for_an_earlier_start_and_a_longer_end() -> None:
    decoder = StreamDecoder(toy(), stop=["bc", "bcx", "abcd"])
    assert [decoder.feed([unit]) for unit in b"abc"] == ["", "", ""]
    assert (decoder.stop_matched, decoder.tokens_consumed) == (None, 3)
    assert decoder.feed(b"y") == "a"
    assert (decoder.stop_matched, decoder.tokens_consumed) == ("bc", 3)


def test_nothing_after_a_stop_string_is_read() -> None:
    decoder = StreamDecoder(toy(), stop=["b"])
    assert decoder.feed([97, 98, -1]) == "a"
    assert decoder.fault is None
    assert decoder.feed([-1]) == ""
    assert (decoder.tokens_consumed, decoder.finish()) == (2, "")


def test_a_fault_releases_what_was_held() -> None:
    decoder = StreamDecoder(toy(), stop=["abc", "ab"])
    assert decoder.feed([120, 97, -1]) == "xa"
    with pytest.raises(UnknownTokenId):
        decoder.finish()
    decoder = StreamDecoder(toy(), stop=["abc", "ab"])
    assert decoder.feed([120, 97, 98, -1]) == "x"
    assert (decoder.stop_matched, decoder.fault) == ("ab", None)


def test_a_stop_string_that_the_flush_completes() -> None:
    decoder = StreamDecoder(toy(), stop=["a\ufffd"])
    assert decoder.feed(b"xa\xf0\x9f") == "x"
    assert decoder.finish() == ""
    assert (decoder.stop_matched, decoder.tokens_consumed) == ("a\ufffd", 4)
