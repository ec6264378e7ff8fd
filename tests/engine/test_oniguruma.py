"""Oniguruma patterns against Oniguruma itself, which `tokenizers` contains."""

from __future__ import annotations

import itertools
import random

import pytest
import regex
from bytepair_engine.formats.oniguruma import PatternFault, translate
from bytepair_engine.pipeline.definition import Split
from bytepair_engine.pipeline.splitting import spans
from bytepair_engine.pipeline.unicode_tables import MORE_MARKS, MORE_NUMBERS, NO_MARKS
from bytepair_engine.vocabulary.patterns import PATTERNS
from support.hard_text import HARD_CHARACTERS, HARD_PIECES, text_of_every_character
from support.random_patterns import random_pattern
from tokenizers import Regex, pre_tokenizers

SAME = [
    *PATTERNS["deepseek_v3"].split("\n"),
    PATTERNS["llama3"],
    PATTERNS["qwen2"],
    PATTERNS["tekken"],
    PATTERNS["o200k_base"],
    r"[0-9][0-9][0-9]",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)| ?\p{Han}+|[^\s\p{L}]+|\s+$".replace("$", r"(?!\S)"),
]
OTHERS = [
    r"\w+|[^\w\s]+",
    r"\W",
    r"\h+",
    r"^.|.$|a",
    r"(?m:a.b)|\Ax|x\z|x\Z",
    r"\p{N}{1,3}+",
    r"a{,2}b",
    r"\x{4e00}+|\x41|\u00e9|\e",
    r"[\w\h-]+",
    r"(?<name>a)(b)",
    "\n[\n]",
    r"\p{^L}+",
    r"(?i)ab|c",
    r" ?[^(\s|[.,!?…。，、।۔،])]+",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lo}&&[^\p{Han}]]*[\p{Ll}\p{Lo}&&[^\p{Han}]]+|[\p{Han}]+",
    r"[a-c[x-z]é]+",
    r"[^a[^b\s]]|b",
    r"[\w&&[^\d_]&&\S]+",
    r"[^\w&&[^e]]+",
    r"[a[-b]-]+",
    r"(a|b)+(?<=(a))",
    r"(?i:[a-z]+)|\s",
    r"(?i:is|i[n]|\x49a)",
    "\n^",
    "a^|^b",
]
REFUSED = {
    r"a(b)\1": 4,
    r"a\b": 1,
    r"[[:alpha:]]": 1,
    r"[a&&]": 4,
    r"(?i:[a[bc]&&b])": 4,
    r"[a-[b]]": 3,
    r"[[a]-z]": 4,
    r"[a[b]": 0,
    r"a{2}?": 1,
    r"\Ka": 0,
    r"(?~a)": 0,
    r"a(?i)b": 1,
    r"(?x: a)": 0,
    r"(?:(?<=a)|c)?b": 12,
    r"^*b": 1,
    "(" * 51 + "a" + ")" * 51: 50,
    "[" * 9999 + "a" + "]" * 9999: 51,
    r"(?<!(a))b": 4,
    r"(?i:strasse|ss)": 5,
    r"(?i:s(?:s))": 8,
    r"(?i:(?:s)\x73)": 9,
    r"(?i:\x{df})": 4,
    r"(?i)\u00df": 4,
    "(?i:\\ß)": 4,
    "(?i:a[ß])": 5,
    r"(?i:[\u00c0-\u00ff])": 4,
    "(?i:[z-a])": 4,
    "(?i:ı)": 4,
    "(?i:[ı])": 4,
    r"a*": 0,
    r"a|(?=b)|c": 0,
    r"(?:a?|b){2}|c": 0,
    r"[a--b]": 2,
    r"a{": 1,
    r"(a": 0,
    r"\R": 0,
    r"\xE9": 0,
}


def oracle(pattern: str, text: str) -> list[str]:
    split = pre_tokenizers.Split(Regex(pattern), "isolated")
    return [text[start:end] for _, (start, end) in split.pre_tokenize_str(text)]


def ours(pattern: str, text: str) -> list[str]:
    return [text[start:end] for start, end in spans(text, Split(translate(pattern))) if end > start]


def blocks() -> list[str]:
    """Return every character, in texts of some length."""
    text = text_of_every_character()
    return [text[start : start + 8192] for start in range(0, len(text), 8192)]


@pytest.mark.parametrize("pattern", SAME)
def test_a_published_pattern_keeps_its_spelling(pattern: str) -> None:
    """It decides which scanner and split points are used."""
    assert translate(pattern) == pattern


@pytest.mark.slow
@pytest.mark.parametrize("pattern", [PATTERNS["o200k_base"], r"\w+|[^\w\s]+", r"[\w\h-]+|\s"])
def test_every_code_point(pattern: str) -> None:
    for block in blocks():
        assert ours(pattern, block) == oracle(pattern, block)


@pytest.mark.slow
@pytest.mark.parametrize("pattern", [*SAME, *OTHERS])
def test_hard_texts(pattern: str) -> None:
    rng = random.Random(1)
    for _ in range(100):
        text = "".join(rng.choice(HARD_CHARACTERS + HARD_PIECES) for _ in range(rng.randrange(12)))
        assert ours(pattern, text) == oracle(pattern, text), text


@pytest.mark.parametrize("pattern", [*SAME[-3:], *OTHERS])
def test_every_short_text(pattern: str) -> None:
    for length in range(1, 4):
        for letters in itertools.product("abiIİıſ's\n", repeat=length):
            text = "".join(letters)
            assert ours(pattern, text) == oracle(pattern, text), text


@pytest.mark.slow
def test_random_patterns() -> None:
    """Those that both support."""
    rng, compared = random.Random(7), 0
    for _ in range(1500):
        pattern = random_pattern(rng)
        try:
            translate(pattern)
            oracle(pattern, "a")
        except Exception:
            continue
        compared += 1
        for _ in range(8):
            text = "".join(rng.choice("aAbBsS'é1٣ \n_-") for _ in range(rng.randrange(1, 10)))
            assert ours(pattern, text) == oracle(pattern, text), (pattern, text)
    assert compared > 50


@pytest.mark.parametrize("pattern", REFUSED)
def test_constructs_that_may_differ_are_rejected_with_their_place(pattern: str) -> None:
    with pytest.raises(PatternFault) as fault:
        translate(pattern)
    assert fault.value.position == REFUSED[pattern]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pattern", "step"),
    [
        (rf"[\p{{N}}{MORE_NUMBERS}]", pre_tokenizers.Digits(individual_digits=True)),
        (rf"(?![{NO_MARKS}])[\p{{P}}$+<=>^`|~{MORE_MARKS}]", pre_tokenizers.Punctuation()),
        (r"\s", pre_tokenizers.WhitespaceSplit()),
    ],
)
def test_classes_hold_the_same_characters(pattern: str, step: pre_tokenizers.PreTokenizer) -> None:
    member = regex.compile(pattern)
    for block in blocks():
        text = "a".join(block)
        pieces = {piece for piece, _ in step.pre_tokenize_str(text)}
        joined = "".join(piece for piece in pieces if piece != "a" and len(piece) > 1)
        assert {c for c in joined if c != "a" and member.match(c)} == set()
        alone = {c for c in block if member.match(c)}
        assert alone - {c for c in block if c.isspace()} <= pieces | {
            c for c in block if c.isspace()
        }
