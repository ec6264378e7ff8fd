"""How much text fits, for rank tables of random tokens, many of which merges do not reach; tiktoken
counts."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import product

import pytest
import tiktoken
from bytepair_engine import Encoding
from bytepair_engine.backends.cores import resolve
from bytepair_engine.backends.interface import Fits
from bytepair_engine.building import build_encoding
from bytepair_engine.context import core_search, truncating
from bytepair_engine.context.boundaries import LEVELS
from bytepair_engine.context.measure import Measure
from bytepair_engine.context.splitting import SplitOptions
from bytepair_engine.context.truncating import truncated, truncated_part
from bytepair_engine.resources import Resources
from bytepair_engine.vocabulary.patterns import PATTERNS
from support.context_api import KEEPS, Cut, Library
from support.context_checks import check_pieces, check_split, check_truncation

SEED = 20261126
#: Parts of words, white space, digits, contractions and punctuation, of one to four bytes.
PARTS = [
    *"abAB 1!'\n\r\t/é日🧠",
    "  ",
    "\u0301",
    "\u3000",
    "\r\n",
    "'s",
    "'ll",
    "ab",
    " a",
    "x" * 9,
]
#: Those of which the end of a pre-token depends on where it starts, and on what follows.
GROUPS = [[*"\n ", "\r\n"], [*"aA日"], [*"1234"], [*"n'l", "'ll", "a"]]
#: Longer than what the core is given at first.
NAME = f"<|{'x' * 60}|>"


@dataclass(frozen=True)
class Case:
    """A vocabulary, what tiktoken counts, without special tokens and with them, and the parts of
    which tokens and texts are made."""

    encoding: Encoding
    count: Callable[[str], int]
    count_special: Callable[[str], int]
    parts: list[str]
    rng: random.Random

    def text(self, most: int = 24) -> str:
        return "".join(self.rng.choices(self.parts, k=self.rng.randrange(most)))


def cases(number: int) -> Iterator[Case]:
    """Random vocabularies. Their tokens may begin and end within a character."""
    for seed in range(number):
        rng = random.Random(f"{SEED} {seed}")
        parts = rng.choice([rng.choices(PARTS, k=rng.randrange(1, 5)), rng.choice(GROUPS)])
        ranks = {bytes([byte]): byte for byte in range(256)}
        for _ in range(rng.randrange(1, 30)):
            data = "".join(rng.choices(parts, k=rng.randrange(1, 12))).encode()
            start = rng.randrange(len(data)) if rng.random() < 0.3 else 0
            token = data[start : len(data) - rng.randrange(2)]
            if token:
                ranks.setdefault(token, len(ranks))
        pattern = rng.choice([PATTERNS[name] for name in PATTERNS if name != "deepseek_v3"])
        yield Case(*made(pattern, ranks), parts, rng)


def made(
    pattern: str, ranks: dict[bytes, int], name: str = NAME
) -> tuple[Encoding, Callable[[str], int], Callable[[str], int]]:
    """The encoding of a table, and what tiktoken counts, as in `Case`."""
    special, core = {name: len(ranks)}, resolve("native")
    peer = tiktoken.Encoding("made", pat_str=pattern, mergeable_ranks=ranks, special_tokens=special)
    encoding = build_encoding(
        core,
        core.from_items(list(ranks.items())),
        name="made",
        pattern=pattern,
        special_tokens=special,
        source="file:made",
        table_source="made",
        resources=Resources(),
    )
    return encoding, count_of(peer, set()), count_of(peer, {name})


def count_of(peer: tiktoken.Encoding, allowed: set[str]) -> Callable[[str], int]:
    return cache(
        lambda text: len(peer.encode(text, allowed_special=allowed, disallowed_special=()))
    )


@pytest.mark.parametrize(
    ("name", "tokens", "text", "budget"),
    [
        # Of white space, what follows decides where the pattern stops.
        ("llama3", [" \n\n ", "\n  ", "\n\n", "\n\n\n  ", "\n\n ", "  "], "\n\n\n  \n\n \n\n", 2),
        # The last token of `a'll` is in a pre-token that starts four characters before it ends.
        ("o200k_base", ["l'", "a'll"], "a'll'lla'll", 4),
    ],
    ids=["white space", "contractions"],
)
def test_a_pre_token_has_several_ends(name: str, tokens: list[str], text: str, budget: int) -> None:
    """Found by mutants of the core: random texts rarely need these rules."""
    ranks = {bytes([byte]): byte for byte in range(256)}
    ranks |= {token.encode(): 256 + at for at, token in enumerate(tokens)}
    encoding, count, _ = made(PATTERNS[name], ranks)
    assert encoding.fits is not None
    assert check_start(encoding.fits, count, text, "", budget, 0)
    assert check_end(encoding.fits, count, text, "", budget)


def test_a_special_token_may_overlap_itself() -> None:
    """Which four of five signs are the token depends on those before."""
    name = "----"
    ranks = {bytes([byte]): byte for byte in range(256)}
    encoding, _, count = made(PATTERNS["cl100k_base"], ranks, name)
    api, names = Library(encoding), frozenset([name])
    for length, most in product(range(24), (1, 2, 5)):
        for text in ("-" * length, "a-" + "-" * length + "b"):
            for keep in ("start", "end"):
                check_truncation(api, text, Cut(most, keep, "code_point", allowed=names), count)
            options = SplitOptions(most, most // 2, "code_point", 0, names)
            check_split(api, text, options, count, [3])


def test_overlapping_special_tokens_are_found_after_text_that_is_no_longer_held() -> None:
    """Every second sign ends a character, and every third one a token."""
    sign = "\U0001f1eb"
    ranks = {bytes([byte]): byte for byte in range(256)}
    encoding, _, _ = made(PATTERNS["cl100k_base"], ranks, sign * 3)
    options = SplitOptions(2, 0, "code_point", 0, frozenset([sign * 3]))
    check_pieces(Library(encoding), sign * 700, options, [300])


def test_shared_text_may_start_within_a_pre_token() -> None:
    """Law S6. `'ll` is a pre-token, and `ll\u1161` one without the apostrophe: one token."""
    ranks = {bytes([byte]): byte for byte in range(256)} | {"ll\u1161".encode(): 256}
    encoding, count, _ = made(PATTERNS["gpt2"], ranks)
    check_split(Library(encoding), "'ll\u1161,a", SplitOptions(6, 1, "paragraph", 0), count, [])


@pytest.mark.slow
def test_nothing_fits_beyond_what_the_core_searches() -> None:
    """One loop: tiktoken takes longer to make a vocabulary than to count these texts."""
    decided = 0
    for case in cases(1000):
        assert case.encoding.fits is not None
        decided += check_alone(case, case.encoding.fits)
        check_beside(case, case.encoding.fits)
        check_run(case, case.encoding.fits)
    assert decided > 10_000


def check_alone(case: Case, fits: Fits) -> int:
    """Whatever follows, or precedes, a text that is not complete. Returns how many texts decide
    what fits."""
    rng, decided = case.rng, 0
    for _ in range(10):
        text, more, budget = case.text(), case.text(9), rng.randrange(7)
        for is_complete in (True, False):
            after = "" if is_complete else more
            near = rng.choice([0, 0, 8])
            decided += check_start(fits, case.count, text, after, budget, near)
            decided += check_end(fits, case.count, text, after, budget)
    return decided


def check_beside(case: Case, fits: Fits) -> None:
    """Behind the end, or before the start, of texts of the same parts."""
    rng = case.rng
    for _ in range(10):
        text, other, budget = case.text(), case.text(), rng.randrange(12)
        near = rng.choice([0, 0, 8])
        for after in ("", other):
            assert check_start(fits, case.count, text, "", budget, near, after)
        if other:
            assert check_end(fits, case.count, text, "", budget, other)


def check_run(case: Case, fits: Fits) -> None:
    """Most of its tokens are the longest ones, one after another, up to near the end."""
    rng = case.rng
    text = case.text(3) + rng.choice(case.parts) * rng.randrange(100) + case.text(3)
    assert check_end(fits, case.count, text, "", rng.randrange(60), case.text() or "x")


def check_start(
    fits: Fits,
    count: Callable[[str], int],
    text: str,
    more: str,
    budget: int,
    near: int,
    after: str | None = None,
) -> bool:
    found = fits.fit_start(text, budget, not more, near, after)
    if found is None:
        assert more
        return False
    checkpoints, beyond, counts = found
    whole = text + more
    for place, number in counts:
        exact = count(text[:place] + (after or ""))
        assert number == exact or min(number, exact) > budget
    others = [""] if after is None else ["", after, text]
    for place, valid_from, number in checkpoints:
        for cut in range(max(place, valid_from), len(whole) + 1):
            for other in others:
                assert count(whole[:cut] + other) == number + count(whole[place:cut] + other)
    if beyond is None:
        assert count(text) <= budget
        assert not more
        return True
    cuts = range(beyond, len(whole) + 1)
    assert all(count(whole[:cut] + (after or "")) > budget for cut in cuts)
    return True


def check_end(
    fits: Fits, count: Callable[[str], int], text: str, more: str, budget: int, before: str = ""
) -> bool:
    found = fits.fit_end(text, budget, not more, before)
    if found is None:
        assert more
        return False
    beyond, counts = found
    for place, number in counts:
        exact = count(before + text[place:])
        assert number == exact or min(number, exact) > budget
    if beyond is None:
        assert count(text) <= budget
        assert not more
        return True
    whole = more + text
    assert all(count(before + whole[at:]) > budget for at in range(len(more) + beyond))
    return True


@pytest.mark.slow
def test_the_longest_that_fits_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Laws T1 to T7, S1 to S11, and T8 of parts, as if texts were much longer than what the core is
    given."""
    usual = Measure.near
    monkeypatch.setattr(core_search, "EXTRA_CHARACTERS", 0)
    monkeypatch.setattr(truncating, "_EXTRA_CHARACTERS", 0)
    for case in cases(300):
        api, rng = Library(case.encoding), case.rng
        for number in range(12):
            monkeypatch.setattr(Measure, "near", usual if number % 2 else 0)
            text, level, budget = case.text(), rng.choice(LEVELS), rng.randrange(6)
            cut = Cut(budget, rng.choice(KEEPS), level, rng.choice(["", "", *case.parts]))
            options = SplitOptions(budget + 1, rng.choice([0, (budget + 1) // 2]), level, 0)
            count = case.count
            if rng.random() < 0.7:
                text += rng.choice(["", NAME + case.text(9), NAME[:3]])
                allowed, count = frozenset([NAME]), case.count_special
                cut = replace(cut, allowed=allowed)
                options = replace(options, allowed_special=allowed)
            check_truncation(api, text, cut, count)
            check_split(api, text, options, count, [rng.choice([1, 3, 10])])
            place = rng.randrange(len(text) + 1)
            part = truncated_part(case.encoding, text[:place], budget, level=level)
            assert part is None or part == truncated(case.encoding, text, budget, level=level), "T8"
