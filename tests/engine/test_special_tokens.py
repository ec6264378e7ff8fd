"""Special tokens in text, in cases where tiktoken is no oracle or is wrong."""

from __future__ import annotations

from typing import Any, cast

import numpy
import pytest
from bytepair_engine import (
    Encoding,
    EncodingSpec,
    InvalidOption,
    SpecialTokenFound,
    get_encoding,
    load_encoding,
)
from bytepair_engine.backends.cores import BackendName
from bytepair_engine.vocabulary.special_search import SpecialSearch
from hypothesis import given
from hypothesis import strategies as st
from support.engines import BACKENDS, Load

A, AB = "<|a|>", "<|a|>b"


@pytest.fixture
def prefixes(backend: BackendName) -> Encoding:
    """An encoding in which one special token is a prefix of another."""
    spec = EncodingSpec(
        name="prefixes", extends="r50k_base", special_tokens={A: 60000, AB: 60001, "ab": 60002}
    )
    return load_encoding(spec, backend=backend)


def test_the_longest_match_wins(prefixes: Encoding) -> None:
    """surogate #157; tiktoken joins an unordered map, so the longer one may never match."""
    assert prefixes.encode(f"{AB}{A}", allowed_special="all") == [60001, 60000]


def test_a_longer_token_that_is_not_allowed_hides_no_shorter_one(prefixes: Encoding) -> None:
    ids = prefixes.encode(AB, allowed_special={A}, disallowed_special=())
    assert ids == [60000, *prefixes.encode_ordinary("b")]


def test_a_name_of_no_special_token_allows_nothing(prefixes: Encoding) -> None:
    names = {f"x{A[:2]}", f"{A}bc", A}
    ids = prefixes.encode(f"x{A}bc", allowed_special=names, disallowed_special=())
    assert ids == [*prefixes.encode_ordinary("x"), 60000, *prefixes.encode_ordinary("bc")]


def test_the_names_may_come_from_a_generator(prefixes: Encoding) -> None:
    names: Any = (name for name in [A])
    assert prefixes.encode(A, allowed_special=names) == [60000]


def test_an_overlap_goes_to_the_leftmost(prefixes: Encoding) -> None:
    assert prefixes.encode(f"x{A}bab", allowed_special="all")[1:] == [60001, 60002]
    assert prefixes.encode("aab", allowed_special={"ab"})[1:] == [60002]


@pytest.mark.parametrize("name", [A, "ordinary"])
def test_the_error_of_a_disallowed_name_says_what_helps(prefixes: Encoding, name: str) -> None:
    """To allow a name does not help while it is disallowed."""
    allowed, disallowed = {name}, {name, AB}
    with pytest.raises(SpecialTokenFound) as caught:
        prefixes.encode(name, allowed_special=allowed, disallowed_special=disallowed)
    assert str(caught.value) == (
        f"the text contains the special token {name!r} at byte 0; remove it from "
        "disallowed_special, such as by disallowed_special=(), to encode it as ordinary text; "
        f'if that is "all", allowed_special={{{name!r}}} allows it'
    )
    for names in (disallowed - {name}, ()):
        assert prefixes.encode(name, disallowed_special=names) == prefixes.encode_ordinary(name)
    assert prefixes.encode(A, allowed_special={A}) == [60000]


def test_disallowed_tokens_are_searched_first(prefixes: Encoding) -> None:
    with pytest.raises(SpecialTokenFound) as caught:
        prefixes.encode(f"é{AB}", allowed_special={AB}, disallowed_special={A})
    assert (caught.value.token, caught.value.byte_offset) == (A, 2)
    assert A in str(caught.value)


def test_the_longest_disallowed_token_is_reported(prefixes: Encoding) -> None:
    with pytest.raises(SpecialTokenFound) as caught:
        prefixes.encode(f"{A} {AB}"[6:])
    assert caught.value.token == AB


@pytest.mark.slow
def test_two_names_for_one_id(load: Load) -> None:
    """200018 in o200k_harmony (tiktoken's openai_public.py): both names encode to it, and it
    decodes to the first one in sorted order."""
    encoding = load("o200k_harmony")
    both = "<|endofprompt|><|reserved_200018|>"
    assert encoding.encode(both, allowed_special="all") == [200018, 200018]
    assert encoding.decode([200018]) == "<|endofprompt|>"


def test_nothing_merges_across_a_special_token(load: Load) -> None:
    encoding = load("cl100k_base")
    left, right = encoding.encode_ordinary("hel"), encoding.encode_ordinary("lo")
    text = "hel<|endoftext|>lo"
    assert encoding.encode(text, allowed_special="all") == [*left, 100257, *right]


def test_an_array_is_not_accepted_as_a_collection(prefixes: Encoding) -> None:
    for names in (numpy.array([]), numpy.array([A]), numpy.array([A, AB])):
        given_names: Any = names
        with pytest.raises(TypeError, match=r"^allowed_special .* not an array: use a list$"):
            prefixes.encode(A, allowed_special=given_names)
        with pytest.raises(TypeError, match=r"disallowed_special .* not an array: use a list$"):
            prefixes.count(A, disallowed_special=given_names)


def test_a_string_is_not_accepted_as_a_collection(load: Load) -> None:
    encoding = load("r50k_base")
    for option in ("allowed_special", "disallowed_special"):
        with pytest.raises(InvalidOption) as caught:
            encoding.encode("x", **cast(Any, {option: "<|endoftext|>"}))
        assert caught.value.option == option
        with pytest.raises(InvalidOption):
            encoding.encode("x", **cast(Any, {option: {""}}))


@pytest.mark.slow
def test_all_methods_of_encoding_have_the_same_defaults(encoding: Encoding) -> None:
    """tiktoken's encode_single_token and some wrappers bypass the policy; no method here does."""
    text = f"a{next(iter(encoding.special_tokens))}"
    for call in (
        encoding.encode,
        encoding.encode_array,
        encoding.encode_packed,
        encoding.encode_with_offsets,
        lambda text: encoding.encode_batch([text]),
    ):
        with pytest.raises(SpecialTokenFound) as caught:
            call(text)
        assert caught.value.byte_offset == 1


def test_counting_never_fails_on_special_tokens_by_default(encoding: Encoding) -> None:
    text = f"a{next(iter(encoding.special_tokens))}"
    count = len(encoding.encode(text, disallowed_special=()))
    assert [encoding.count(text), *encoding.count_batch([text])] == [count] * 2
    for call in (
        lambda: encoding.count(text, disallowed_special="all"),
        lambda: encoding.count_batch([text], disallowed_special="all"),
    ):
        with pytest.raises(SpecialTokenFound):
            call()


def test_contains_special_finds_tokens_across_any_cut(prefixes: Encoding) -> None:
    """It raises no error and does not encode."""
    token = max(prefixes.special_tokens, key=len)
    whole = f"\u00e9{token}\u00e9".encode()
    start, end = 2, 2 + len(token.encode())
    for first in range(len(whole)):
        for last in range(first, len(whole) + 1):
            part = whole[first:last]
            shorter = any(name.encode() in part for name in prefixes.special_tokens)
            assert prefixes.contains_special(part) is shorter
            assert shorter or not (first <= start and last >= end)
    assert prefixes.contains_special(f"a{token}")
    assert not prefixes.contains_special(f"a{token}", allowed_special="all")
    assert not prefixes.contains_special("a\ud800")


SPELLINGS = [*get_encoding("cl100k_base").special_tokens]


@given(
    st.lists(
        st.one_of(
            st.sampled_from(SPELLINGS),
            st.sampled_from(["<|", "|>", "<|endof", "text|>", "\uff5c", "<\uff5cendoftext\uff5c>"]),
            st.text(max_size=3),
        ),
        max_size=8,
    ).map("".join)
)
def test_text_never_becomes_a_special_token_without_permission(text: str) -> None:
    """transformers #47853, #48052, GHSA-g5f9-3xfg-p9mf: cut, nested, joined, look-alike."""
    for backend in BACKENDS:
        encoding = get_encoding("cl100k_base", backend=backend)
        ids = encoding.encode(text, disallowed_special=())
        assert not any(encoding.is_special_id(i) for i in ids)
        assert encoding.decode(ids) == text
        assert ids == encoding.encode_ordinary(text)


@given(st.frozensets(st.text("ab|\n", min_size=1), max_size=9), st.text("ab|\n"))
def test_names_are_found_leftmost_and_longest(names: frozenset[str], text: str) -> None:
    expected: list[str] = []
    start = 0
    while start < len(text):
        name = max((name for name in names if text.startswith(name, start)), key=len, default="")
        expected += [name] * bool(name)
        start += len(name) or 1
    found = SpecialSearch(names).finditer(text, len(text))
    assert [match.group() for match in found] == expected


@pytest.mark.slow
def test_names_may_begin_with_each_other_many_times() -> None:
    names = SpecialSearch(frozenset("a" * size for size in range(1, 1000)))
    found = names.finditer("a" * 2500, 2500)
    assert [len(match.group()) for match in found] == [999, 999, 502]


def test_contains_special_reads_a_subclass_of_str_as_encode_does(prefixes: Encoding) -> None:
    class Other(str):
        __slots__ = ()

        def encode(self, encoding: str = "utf-8", errors: str = "strict") -> bytes:
            return b""

    text = Other(max(prefixes.special_tokens))
    assert prefixes.contains_special(text)
    with pytest.raises(SpecialTokenFound):
        prefixes.encode(text)
