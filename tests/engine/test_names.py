"""Names with patterns, compared with a definition by `fnmatch`, and the published model names."""

from __future__ import annotations

from fnmatch import fnmatchcase
from itertools import product

import pytest
from bytepair_engine import UnknownEncoding, aliases, get_encoding
from bytepair_engine.vocabulary.names import MAX_CHARACTERS, Names, tie
from hypothesis import given
from hypothesis import strategies as st

letters = st.text("ab", max_size=5)
patterns = st.text("ab*", min_size=1, max_size=5).filter(lambda text: "*" in text)
tables = st.dictionaries(letters | patterns, st.sampled_from("xyz"), max_size=6)

#: Every name of at most five letters. Overlapping patterns match one of at most ten.
SHORT = ["".join(each) for size in range(6) for each in product("ab", repeat=size)]


def weight(pattern: str) -> int:
    return len(pattern.replace("*", ""))


@given(tables, letters)
def test_an_exact_name_wins_and_then_the_longest_pattern(table: dict[str, str], name: str) -> None:
    fitting = [each for each in table if "*" in each and fnmatchcase(name, each)]
    most = max(map(weight, fitting), default=0)
    expected: set[str | None] = {table[each] for each in fitting if weight(each) == most}
    found = Names(table).find(name)
    assert found == table[name] if name in table else found in (expected or {None})


@given(tables)
def test_a_table_without_a_tie_gives_each_name_one_encoding(table: dict[str, str]) -> None:
    tied = tie(table)
    if tied is None:
        for name in SHORT:
            fitting = [each for each in table if "*" in each and fnmatchcase(name, each)]
            most = max(map(weight, fitting), default=0)
            assert len({table[each] for each in fitting if weight(each) == most}) <= 1
    else:
        one, other = tied
        assert table[one] != table[other]
        assert weight(one) == weight(other)
        both = ("".join(each) for size in range(11) for each in product("ab", repeat=size))
        assert any(fnmatchcase(name, one) and fnmatchcase(name, other) for name in both)


def test_a_hostile_name_matches_nothing() -> None:
    """The cost of a pattern with many stars is bounded by the length of the name."""
    names = Names({"a*" * 60 + "b": "x"})
    assert names.find("a" * MAX_CHARACTERS) is None
    assert names.find("a" * (MAX_CHARACTERS - 1) + "b") == "x"
    assert names.find("a" * MAX_CHARACTERS + "b") is None


@pytest.mark.parametrize(
    ("model", "encoding"),
    [
        ("gpt-4o-mini-2024-07-18", "o200k_base"),
        ("gpt-4-turbo", "cl100k_base"),
        ("gpt-oss-120b", "o200k_harmony"),
        ("ft:gpt-4o-mini-2024-07-18:org::id", "o200k_base"),
        ("ft:gpt-4-0613:org::id", "cl100k_base"),
        # tiktoken has no prefix for it, and counts with GPT-4's encoding.
        ("ft:gpt-4.1-mini-2025-04-14:org::id", "o200k_base"),
    ],
)
def test_a_published_prefix_names_an_encoding(model: str, encoding: str) -> None:
    assert get_encoding(model) is get_encoding(encoding)


def test_no_two_published_patterns_tie() -> None:
    assert tie(aliases()) is None


def test_a_similar_name_is_never_used_instead() -> None:
    for name in ("gpt-4o_mini", "GPT-4o-mini", "xgpt-4o-mini", "claude-3"):
        with pytest.raises(UnknownEncoding):
            get_encoding(name)
