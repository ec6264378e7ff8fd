"""What Inspect reports, and that it reports nothing else."""

from __future__ import annotations

import tracemalloc
import unicodedata
from pathlib import Path

import pytest
from bytepair_engine import CancelScope, get_encoding, list_encodings
from bytepair_engine.backends.cores import BackendName
from bytepair_engine.context import inspecting
from bytepair_engine.context.inspecting import FindingCode, inspect
from bytepair_engine.errors import InvalidOption, SpecialTokenFound
from hypothesis import given
from hypothesis import strategies as st
from support.context_api import Library
from support.context_checks import check_inspection
from support.context_formats import other
from support.context_laws import encodings, repeated, texts
from support.oracle import oracle


@pytest.mark.slow
@given(encodings, texts | repeated, texts)
def test_stable_tokens_stay_whatever_follows(name: str, text: str, more: str) -> None:
    """Law I4, and the counts of I3."""
    encoding, tiktoken = get_encoding(name), oracle(name)
    found = inspect(encoding, text)
    ids = tiktoken.encode_ordinary(text)
    assert found.count == len(ids)
    stable = ids[: found.stable_tokens]
    assert tiktoken.decode_bytes(stable) == text[: found.stable_end].encode()
    assert tiktoken.encode_ordinary(text + more)[: found.stable_tokens] == stable


@pytest.mark.slow
@given(encodings, texts | repeated | st.text(max_size=30), st.integers(0, 5))
def test_findings_are_sorted_and_counted(name: str, text: str, most: int) -> None:
    """Laws I1, I2, I5 and I6."""
    encoding = get_encoding(name)
    found = inspect(encoding, text, max_findings=most)
    whole = inspect(encoding, text)
    assert found.findings == whole.findings[:most]
    assert found.totals == whole.totals
    places = [(f.start, f.end, f.code) for f in whole.findings]
    assert places == sorted(places)
    assert all(0 <= start < end <= len(text) for start, end, _ in places)
    assert sum(whole.totals.values()) == len(whole.findings)
    spelled = [f for f in whole.findings if f.code == FindingCode.SPECIAL_TOKEN_SPELLED]
    if spelled:
        with pytest.raises(SpecialTokenFound) as error:
            encoding.encode(text)
        assert len(text[: spelled[0].start].encode()) == error.value.byte_offset
        assert spelled[0].token == error.value.token
    else:
        encoding.encode(text)
    not_nfc = whole.totals.get(FindingCode.NOT_NFC, 0) > 0
    assert not_nfc == (unicodedata.normalize("NFC", text) != text)


def test_a_first_call_folds_the_names_and_the_characters_of_the_text_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Folding all characters of Unicode takes a second, in which a server answers no one else."""
    fold, folded = inspecting._folded, set()

    def counted(text: str) -> str:
        folded.add(text)
        return fold(text)

    monkeypatch.setattr(inspecting, "_folded", counted)
    inspecting._folded_names.cache_clear()
    encoding = get_encoding("cl100k_base")
    inspect(encoding, "abba")
    assert folded == {*"ab", *encoding.special_tokens}


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        ("Hello ", "TRAILING_WHITESPACE", (5, 6)),
        ("a <｜endoftext｜>", "SPECIAL_TOKEN_LOOKALIKE", (2, 15)),
        ("a <|EndOf\u200bText|>", "SPECIAL_TOKEN_LOOKALIKE", (2, 16)),
        ("a\u200bb", "INVISIBLE_CHARACTER", (1, 2)),
        ("a\U000e0041b", "TAG_CHARACTER", (1, 2)),
        ("a\u202eb", "BIDI_CONTROL", (1, 2)),
        ("a\ufffdb", "REPLACEMENT_CHARACTER", (1, 2)),
        ("a\x07b", "CONTROL_CHARACTER", (1, 2)),
    ],
)
def test_each_kind_is_found(text: str, code: str, place: tuple[int, int]) -> None:
    found = inspect(get_encoding("o200k_base"), text, codes=[FindingCode[code]])
    assert [(f.code.name, (f.start, f.end)) for f in found.findings] == [(code, place)]


@pytest.mark.parametrize("name", list_encodings())
@pytest.mark.parametrize("text", ["👨‍👩‍👧", "❤️", "می‌خواهم", "क्‍ष", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "1️⃣", "葛󠄀"])
def test_joiners_that_emoji_and_scripts_need_are_not_reported(name: str, text: str) -> None:
    """Law I8."""
    quiet = {FindingCode.UNSTABLE_TAIL, FindingCode.NOT_NFC}
    assert set(inspect(get_encoding(name), text).totals) <= quiet


@pytest.mark.parametrize("text", ["a ＜S＞x b", "＜S＞x＜S＞x", "＜S＞ <S>x ＜S＞x"])
def test_special_tokens_in_normalised_text_are_reported_as_encode_rejects_them(
    backend: BackendName, text: str, tmp_path: Path
) -> None:
    """Law I5, for a special token that is looked for in normalised text."""
    encoding, encode = other("normalised, NFKC", tmp_path, backend)
    check_inspection(Library(encoding), text, "", encode)
    assert FindingCode.SPECIAL_TOKEN_SPELLED in inspect(encoding, text).totals


def test_tokens_of_a_list_are_found_and_long_runs() -> None:
    encoding = get_encoding("r50k_base")
    found = inspect(
        encoding, "x SolidGoldMagikarp", flagged=[43453], codes=[FindingCode.FLAGGED_TOKEN]
    )
    assert [(f.start, f.end, f.token_id) for f in found.findings] == [(1, 19, 43453)]
    runs = inspect(
        encoding, "a b " + "x" * 500 + " c", codes=[FindingCode.LONG_RUN], long_run_bytes=100
    )
    assert [(f.start, f.end) for f in runs.findings] == [(3, 504)]
    with pytest.raises(InvalidOption):
        inspect(encoding, "", max_findings=-1)


@pytest.mark.parametrize(
    ("name", "index", "place"), [("default", 0, (0, 1)), ("suffix", -1, (1, 2))]
)
def test_a_space_that_the_encoding_adds_is_found_at_the_character_beside_it(
    name: str, index: int, place: tuple[int, int], tmp_path: Path
) -> None:
    encoding, _ = other(name, tmp_path)
    space = encoding.encode("h日")[index]
    found = inspect(encoding, "h日", flagged=[space], codes=[FindingCode.FLAGGED_TOKEN])
    assert [(f.start, f.end, f.token_id) for f in found.findings] == [(*place, space)]


@pytest.mark.slow
def test_many_tokens_of_a_list_are_found_in_linear_time() -> None:
    """In quadratic time they take minutes, and the test its time limit."""
    encoding = get_encoding("r50k_base")
    (flagged,) = encoding.encode(" a")
    found = inspect(encoding, " a" * 1_000_000, flagged=[flagged], max_findings=0)
    assert found.totals[FindingCode.FLAGGED_TOKEN] == 1_000_000


def test_findings_beyond_the_maximum_are_counted_without_being_held() -> None:
    encoding, text = get_encoding("cl100k_base"), "\x01" * 100_000
    inspect(encoding, text, max_findings=0)
    tracemalloc.start()
    try:
        found = inspect(encoding, text, max_findings=1)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found.totals[FindingCode.CONTROL_CHARACTER] == len(text)
    assert most < 40 * len(text)  # a finding has 80 bytes


def test_a_maximum_keeps_the_order_of_tokens_within_one_character() -> None:
    """They are at one place: the order of their ids decides, not that of the text."""
    encoding = get_encoding("cl100k_base")
    flagged = encoding.encode("\U0001f9ff")
    assert flagged != sorted(flagged)
    whole = inspect(encoding, "\U0001f9ff" * 3, flagged=flagged)
    for most in range(len(whole.findings) + 2):
        found = inspect(encoding, "\U0001f9ff" * 3, flagged=flagged, max_findings=most)
        assert found.findings == whole.findings[:most]
        assert found.totals == whole.totals


class Counted(CancelScope):
    """A scope that counts how often it is checked."""

    checks = 0

    def check(self) -> None:
        self.checks += 1
        super().check()


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (FindingCode.SPECIAL_TOKEN_SPELLED, "<|endoftext|>"),
        (FindingCode.SPECIAL_TOKEN_LOOKALIKE, "<"),
        (FindingCode.NOT_NFC, "e\u0301"),
        (FindingCode.CONTROL_CHARACTER, "\x01"),
        (FindingCode.FLAGGED_TOKEN, " a"),
    ],
)
def test_a_search_is_checked_for_cancellation_throughout(code: FindingCode, text: str) -> None:
    def checks(times: int) -> int:
        with Counted() as scope:
            inspect(encoding, text * times, codes=[code], flagged=[0], max_findings=0)
        return scope.checks

    encoding = get_encoding("cl100k_base")
    assert checks(50_000) >= checks(1) + 10
