"""The regex engine for patterns without a scanner: it splits as the definition does, rejects
unsupported syntax, and no text makes it slow. docs/patterns.md describes the supported syntax."""

from __future__ import annotations

import base64
import random
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
import regex
from bytepair_engine import EncodingSpec, VocabularyError, _core, load_encoding
from bytepair_engine.backends.cores import BackendName
from bytepair_engine.backends.reference import split
from bytepair_engine.vocabulary.patterns import PATTERNS
from support.hard_text import (
    HARD_CHARACTERS,
    HARD_PIECES,
    every_character,
    random_character,
    text_of_every_character,
)
from support.random_patterns import random_pattern

PROPERTIES = Path(__file__).parents[2] / "engine/src/split/regex/property.rs"
TABLE = _core.RankTable.from_items((bytes([byte]), byte) for byte in range(256))

#: Patterns as operators write them, and each construct beside a similar one.
WRITTEN = [
    r"\w+|[^\w\s]+|\s+",
    r"\w+|\W",
    r"\d{1,3}(?=(?:\d{3})*\b)|[^\d]+",
    r"(?:[A-Z][a-z]+|[A-Z]+(?![a-z])|[a-z]+)|.",
    r"[\u4e00-\u9fff]|[^\u4e00-\u9fff\s]+|\s+",
    r"\p{Han}|\p{Hiragana}+|\p{Katakana}+|\p{Hangul}+|[^\s]+",
    r"(?i)the|and|[a-z]+",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|\p{L}+|\p{N}|\s+(?!\S)|\s+|.",
    r"(?<=[.!?])\s+|\S+|\s",
    r"(?<!\d)\d|\d\d?",
    r"(\S+)(\s*)",
    r"(?P<word>\w+)|(?<rest>.)",
    r"a*?b|a",
    r"(?:|a)b",
    r"x{0}a|b{2}",
    r"^\s+|\s+$|\S+",
    r"(?m:^\s+|\s+$)|\S+",
    r"(?s:.{1,5})",
    r".{1,5}",
    r"\x41|\u00e9|\U0001F642|\t|\-|\.",
    r"[\-\]\[\\^]|[a\-z]|[-az]|[az-]",
    r"[^\S\n]+|\n|\S+",
    r"\pL+|\PL",
    r"\p{Lu}\p{Ll}*+|\p{Ll}++",
    "[a-z]+\n[aeiou]\n.{1,2}",
]

#: Patterns with a text that shows what a construct does.
SHOWN = [
    ("[a-z]+", "ab, cd!"),
    ("x", "é中"),
    ("x", ""),
    ("a|ab", "abab"),
    ("(?:|a)b?", "ab"),
    ("a*?", "aaa"),
    ("a++ab|b", "aab"),
    ("(?>a|ab)c|b", "abc"),
    ("a{1,2}+ab", "aab"),
    (r"\s+(?!\S)|\s", "   x"),
    ("b+\n^a|[^b]", "aabba"),
    ("b+\n(?<=b)a|a$|a", "aba"),
    ("a$", "a\nba\n"),
    (r"\Aa|b\Z", "aaabbb"),
    (r"\b", "a b"),
    ("(?m:^a)|b", "aa\nab"),
]

#: Patterns that take exponential or quadratic time without memoization, with a text.
HOSTILE = [
    ("(a+)+$", "a", "b"),
    ("(a|a)*b", "a", ""),
    ("(a|aa)+$", "a", "b"),
    ("(.*)*x", "a", ""),
    (".*.*.*x", "a", ""),
    (r"\w(?=.*x)", "a", "x"),
    (r"\w(?!(?:ab|a|b)*x)", "ab", ""),
    ("(?=(?=.*y).*x)a|b", "ab", "xy"),
    ("(?>(?:ab)*)x", "ab", ""),
    ("(?:a(?=[ab]*c))*x", "a", "c"),
    ("(?:x?a*b)*c", "aaaab", ""),
    (r"(\p{L}+\s?)+[0-9]$", "word ", "!"),
]

#: Unsupported patterns, with the position of the error in characters.
REFUSED = [
    (r"(a)\1", 3),
    (r"(a)\g<1>", 3),
    (r"(?P<x>a)(?P=x)", 8),
    ("(?(1)a|b)", 0),
    ("(?R)", 0),
    ("a(?i)b", 1),
    ("(?x)a b", 2),
    ("(?f)a", 2),
    ("(?V1)a", 0),
    ("(?b:a)", 2),
    ("(?|a|b)", 0),
    ("(?#note)a", 0),
    ("(?:ab){e<=1}", 6),
    ("a{,2}", 1),
    ("a{x}", 1),
    ("a{1,2", 1),
    ("a{1001}", 2),
    ("(?:(?:ab){500}){500}", 0),
    ("(?<=a+)b", 0),
    ("(?<=^)b", 0),
    (r"\K", 0),
    (r"\G", 0),
    (r"\X", 0),
    (r"\R", 0),
    (r"\h", 0),
    (r"\m", 0),
    (r"\0", 0),
    (r"\N{BULLET}", 0),
    (r"\L<words>", 0),
    (r"a\p{Block=Arabic}", 1),
    (r"\p{^L}", 0),
    (r"\p{lu}", 0),
    (r"é\p{Nope}", 1),
    ("[[:alpha:]]", 1),
    ("[a||b]", 2),
    ("[a&&b]", 2),
    ("[[a]]", 1),
    ("[]a]", 1),
    (r"[\w-a]", 3),
    ("(?:|a)*", 6),
    ("(?:a*?)+", 7),
    (r"\b+", 0),
    ("a**", 2),
    ("a(b", 1),
    ("ab)", 2),
    (r"(?i)\p{Lu}", 4),
    (r"(?i:[\p{L}x])", 5),
    (r"(?i:c)?\P{Lu}", 0),
    ("x\n(?i:c)d?|[^ab]e", 2),
    ("(?i:c)|[b]|[^a]", 0),
    ("(?i:')x?|[^ab]c", 0),
    ("[^a]|[^b]", 0),
    ("ok\na(?x)", 6),
    ("(?:" * 60 + "a" + ")" * 60, 150),
    pytest.param("(" * 100_000, 50, id="100,000 brackets"),
]


def native(pattern: str) -> _core.Bpe:
    return _core.Bpe(TABLE, pattern, {}, cache_bytes=1 << 20, threads=1)


def random_texts(rng: random.Random, number: int, longest: int) -> Iterator[str]:
    pools = [list("ab"), list("abc "), list("aAbBkK1 x\n"), HARD_CHARACTERS, HARD_PIECES]
    for _ in range(number):
        pool = rng.choice(pools)
        yield "".join(rng.choice(pool) for _ in range(rng.randrange(longest)))
        yield "".join(random_character(rng) for _ in range(rng.randrange(4)))


def check(pattern: str, texts: Iterator[str]) -> None:
    core = native(pattern)
    for text in texts:
        assert core.split(text) == split(text, pattern), (pattern, text)


@pytest.fixture
def rng() -> random.Random:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    return random.Random(seed)


@pytest.mark.parametrize(("pattern", "text"), SHOWN)
def test_a_construct_splits_as_the_definition(pattern: str, text: str) -> None:
    check(pattern, iter([text]))


@pytest.mark.slow
@pytest.mark.parametrize("name", PATTERNS)
def test_a_published_pattern_without_its_scanner(name: str, rng: random.Random) -> None:
    pattern = "(?:)" + PATTERNS[name]
    assert native(PATTERNS[name]).splitter != "regex"
    assert native(pattern).splitter == "regex"
    check(pattern, random_texts(rng, 1000, 60))


@pytest.mark.slow
@pytest.mark.parametrize("pattern", WRITTEN)
def test_patterns_as_operators_write_them(pattern: str, rng: random.Random) -> None:
    check(pattern, random_texts(rng, 300, 40))
    check(pattern, ("".join(four) for four in product("aA1 \n.", repeat=4)))


@pytest.mark.slow
def test_random_patterns(rng: random.Random) -> None:
    """Patterns on which `regex` takes exponential time are left to the hostile patterns."""
    run = 0
    while run < 1500:
        pattern = random_pattern(rng)
        try:
            regex.compile(pattern)
            core = native(pattern)
        except (regex.error, VocabularyError, AttributeError):
            continue  # AttributeError: a bug of `regex`, as in (?i)\p{L}|\P{L}
        run += 1
        for text in random_texts(rng, 8, 14):
            try:
                regex.findall(pattern, text[:20], timeout=0.1)
            except TimeoutError:
                continue
            assert core.split(text[:20]) == split(text[:20], pattern), (pattern, text[:20])


def property_names(table: str) -> list[str]:
    """Return the names that the core knows: CATEGORIES or SCRIPTS of its source."""
    names = PROPERTIES.read_text().split(f'const {table}: &str = "')[1].split('";')[0]
    return names.replace("\\\n", "").split()


def test_every_script_of_unicode_is_known() -> None:
    assert len(property_names("SCRIPTS")) == 168 + len(["Common", "Inherited"])


@pytest.mark.slow
@pytest.mark.parametrize("name", property_names("CATEGORIES") + property_names("SCRIPTS"))
def test_a_property_holds_the_same_characters(name: str) -> None:
    text = text_of_every_character()
    assert native(rf"\p{{{name}}}").split(text) == split(text, rf"\p{{{name}}}")
    assert native(rf"\P{{{name}}}+").split(text) == split(text, rf"\P{{{name}}}+")


@pytest.mark.slow
@pytest.mark.parametrize("pattern", [r"\w", r"\W+", r"\s", r"\S+", r"\d", r"\D+", "."])
def test_a_class_holds_the_same_characters(pattern: str) -> None:
    text = text_of_every_character()
    assert native(pattern).split(text) == split(text, pattern)


@pytest.mark.slow
def test_word_boundaries_at_every_character() -> None:
    text = "".join(f"a{character} " for character in every_character())
    assert native(r"a\b.").split(text) == split(text, r"a\b.")


@pytest.mark.slow
def test_case_variants_of_every_character() -> None:
    cased = [c for c in every_character() if {c.lower(), c.upper(), c.title(), c.casefold()} != {c}]
    text = "".join(cased)
    for character in cased:
        pattern = f"(?i:{regex.escape(character)})"
        assert native(pattern).split(text) == split(text, pattern), pattern
    for pattern in ["(?i:[a-z])", "(?i:[^a-z])", "(?i:[à-ÿ]+)", "(?i:[H-J])", "(?i:[^İ])"]:
        assert native(pattern).split(text) == split(text, pattern), pattern


@pytest.mark.parametrize(("pattern", "position"), REFUSED)
def test_unsupported_constructs_are_rejected_with_their_place(pattern: str, position: int) -> None:
    with pytest.raises(VocabularyError, match=rf"at character {position}: "):
        native(pattern)


@pytest.mark.slow
@pytest.mark.parametrize(("pattern", "unit", "tail"), HOSTILE)
def test_hostile_patterns(pattern: str, unit: str, tail: str) -> None:
    """They end on 300 KB, which would take years without memoization; the core's own tests count
    the steps. On a short text the pieces are those of the definition."""
    core = native(pattern)
    text = unit * (300_000 // len(unit)) + tail
    assert "".join(core.split(text)) == text
    short = unit * (12 // len(unit)) + tail
    assert core.split(short) == split(short, pattern)


def test_many_pieces_between_two_matches() -> None:
    """The core finds pieces in batches; its state is kept between them."""
    text = "ab" * 2000 + "é" * 3000 + "ab" * 500
    for pattern in ["ab", "a|b", "é{2}|a", "[a-b]+\nb", r"\w(?=.*é)"]:
        assert native(pattern).split(text) == split(text, pattern)


def test_an_encoding_with_a_custom_pattern(backend: BackendName, tmp_path: Path) -> None:
    file = tmp_path / "v.tiktoken"
    file.write_bytes(rank_file())
    pattern = r"[a-c]{2}|\s"
    encoding = load_encoding(EncodingSpec(name="v", file=file, pattern=pattern), backend=backend)
    assert encoding.splitter == "regex"
    assert encoding.encode("abcab c") == [256, 257, 98, 32, 99]


def test_an_error_about_a_pattern_has_the_position_and_a_remedy(tmp_path: Path) -> None:
    file = tmp_path / "v.tiktoken"
    file.write_bytes(rank_file())
    spec = EncodingSpec(name="v", file=file, pattern=r"(a)\1")
    with pytest.raises(VocabularyError, match=r"at character 3: .* write the pattern without it"):
        load_encoding(spec, backend="native")


def test_a_pattern_that_is_no_regular_expression(backend: BackendName, tmp_path: Path) -> None:
    file = tmp_path / "v.tiktoken"
    file.write_bytes(rank_file())
    for pattern, problem in (
        (r"(?i)\p{L}|\P{L}", "does not compile"),
        ("a|\ud800", "holds a lone surrogate"),
    ):
        spec = EncodingSpec(name="v", file=file, pattern=pattern)
        with pytest.raises(VocabularyError, match=problem):
            load_encoding(spec, backend=backend)


def rank_file() -> bytes:
    tokens = [*(bytes([byte]) for byte in range(256)), b"ab", b"ca"]
    return b"".join(base64.b64encode(t) + b" %d\n" % i for i, t in enumerate(tokens))
