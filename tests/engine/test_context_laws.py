"""The laws of Truncate, Split, SplitStream and Inspect.

    T1  the count is Count's, and fits       S1  every count is Count's, and fits
    T2  the text is the kept ranges          S2  a chunk is its range of the text
    T3  what fits is the input               S3  chunks join, or overlap without gaps
    T4  cuts are at boundaries               S4  starts and ends increase, none is empty
    T5  nothing longer fits                  S5  an end is the last that fits and fills
    T6  again gives the same                 S6  a start shares as much as fits
    T7  no special token is cut or made      S7  a stream gives the chunks of the whole
    T8  a start reads what it needs          S8  again gives the same; linear time
    T9  more tokens never keep less          S9  a code point that does not fit is an error
    I1  findings are sorted and inside       S10 no special token is cut
    I2  totals are complete                  S11 the level of an end is its best
    I3  the count is Count's                 I4  stable tokens stay, whatever follows
    I5  spelled tokens are Encode's          I6  NOT_NFC is Unicode's
    I7  the only text is a token's name      I8  joiners that are needed are not reported

The assertions of support/context_checks.py name their law, and so do the docstrings of tests.
tiktoken, `tokenizers` and `sentencepiece` count.
"""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import pytest
from bytepair_engine import Encoding, get_encoding, list_encodings
from bytepair_engine.backends.cores import BackendName
from bytepair_engine.context.boundaries import LEVELS
from bytepair_engine.context.splitting import SplitOptions, split
from bytepair_engine.streaming.encoder import can_stream
from support.context_api import KEEPS, Cut, Encode, Library
from support.context_cases import Cases
from support.context_checks import (
    check_budgets,
    check_inspection,
    check_pieces,
    check_split,
    check_truncation,
)
from support.context_formats import OTHERS, counts, oracle_of, other
from support.context_laws import AWKWARD, PARTS, shorter
from support.sentencepiece_models import MODELS

SEED = 20261123
MORE = ["the", " ", "\n", "\u0301", "a", "🧠", "1"]


def check(encoding: Encoding, encode: Encode, text: str, cases: Cases, cuts: Sequence[Cut]) -> None:
    """Every law, for some ways to cut a text."""
    api, rng = Library(encoding), cases.rng
    for cut in cuts:
        count, options = counts(encode, cut), cases.split(cut)
        check_truncation(api, text, cut, count)
        sizes = [rng.choice([1, 3, 10, 1000])] if can_stream(encoding) else []
        check_split(api, text, options, count, sizes)
    if can_stream(encoding) and encoding.backend == "native":
        options = cases.split(cases.cut(rng.randrange(20)))
        check_pieces(api, text + cases.text(100), options, [rng.choice([5, 100])])
    check_budgets(api, text, rng.choice(["start", "end"]), rng.choice(LEVELS), [0, 1, 2, 3, 7])
    check_inspection(api, text, "".join(rng.choices(MORE, k=2)), encode)


@pytest.mark.slow
@pytest.mark.parametrize("name", list_encodings())
def test_built_in_encodings(backend: BackendName, name: str) -> None:
    """Laws T1 to T7, T9, S1 to S11 and I1 to I7, for each awkward text, with every level and budget
    of 0 to 3, and for random ones; the reference, which is slow, with some of them."""
    encoding, encode = get_encoding(name, backend=backend), oracle_of(name)
    cases = Cases(f"{SEED} {name}", sorted(encoding.special_tokens)[:20])
    every = [(level, most) for level in LEVELS for most in range(4)]
    for text in map(shorter, AWKWARD):
        chosen = every if backend == "native" else cases.rng.sample(every, 1)
        check(encoding, encode, text, cases, [cases.cut(most, level) for level, most in chosen])
    for number in range(12 if backend == "native" else 4):
        check(encoding, encode, cases.text(12), cases, [cases.cut(number % 6)])


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_other_formats(backend: BackendName, name: str, tmp_path: Path) -> None:
    """Laws T1 to T7, T9, S1 to S11 and I1 to I7. Pipelines may normalise, drop and fuse: texts are
    cut, and counted again."""
    encoding, encode = other(name, tmp_path, backend)
    cases = Cases(f"{SEED} {name}", encoding.special_tokens, allow=name not in MODELS)
    for number in range(12 if backend == "native" else 4):
        text = cases.text(12) if number % 4 else shorter(cases.rng.choice(AWKWARD))
        check(encoding, encode, text, cases, [cases.cut(cases.rng.choice([0, 1, 2, 3, 8]))])


def test_the_template_counts(tmp_path: Path) -> None:
    """Laws T1 to T7 and S1 to S6, of ordinary text, which the core cuts by itself."""
    encoding, encode = other("ranks, a template", tmp_path, "native")
    assert encoding.template
    api, text = Library(encoding), "one two three, four five. " * 4
    count = counts(encode, Cut(8, template=True))
    for most in (1, 2, 8):
        check_split(api, text, SplitOptions(most, most // 4, add_special_tokens=True), count, [])
    for most, keep in product((1, 2, 8, 200), KEEPS):
        check_truncation(api, text, Cut(most, keep, template=True), count)


@pytest.mark.slow
def test_an_end_has_fewer_tokens_alone_than_after_other_text(tmp_path: Path) -> None:
    """Laws T1 to T7, of text from a space on, which a model leaves out at the start of a text."""
    encoding, encode = other("case folding", tmp_path, "native")
    cut = Cut(15, "end", "code_point")
    text = "\n twoctwo. twoé\nc   two two   two.  écc    .cc cé"
    check_truncation(Library(encoding), text, cut, counts(encode, cut))


END = "<|endoftext|>"


@pytest.mark.parametrize(
    ("text", "markers"),
    [
        ("a <|endo and more", ["ftext|>", ""]),  # a marker would make the token
        ("more, and ftext|> a", ["<|endo", ""]),
        (f"{END} b", ["="]),  # `<=` and `->` are one token
        (f"a b{END}", ["-"]),
        (f"one two{END}= three four", [""]),  # so is `>=`, which two chunks would share
    ],
)
def test_special_tokens_are_neither_cut_nor_made(text: str, markers: list[str]) -> None:
    """Laws T1 to T7 and S1 to S11, where a cut within a special token would have fewer tokens."""
    encoding, encode = get_encoding("cl100k_base"), oracle_of("cl100k_base")
    api, names = Library(encoding), frozenset([END])
    for most, keep, marker in product(range(1, 9), KEEPS, markers):
        for allowed in (frozenset[str](), names):
            cut = Cut(most, keep, "code_point", marker, allowed=allowed)
            check_truncation(api, text, cut, counts(encode, cut))
    for most in range(1, 7):
        for overlap in range(most // 2 + 1):
            options = SplitOptions(most, overlap, "code_point", 0, names)
            check_split(api, text, options, counts(encode, Cut(most, allowed=names)), [1])


def test_no_chunk_starts_within_a_special_token() -> None:
    """Laws S1 to S11, where all of a chunk that starts with the token may be shared."""
    encoding, names = get_encoding("cl100k_base"), frozenset([END])
    count = counts(oracle_of("cl100k_base"), Cut(16, allowed=names))
    options = SplitOptions(16, 8, "paragraph", 0, names)
    check_split(Library(encoding), f"{END}.\n\n" + "one two three " * 7, options, count, [7])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "most"),
    [
        ("a b c " * 200 + "🧠 d", 1),  # an error after text that is no longer held
        ("🇪\u0903" + "🇪" * 601 + "中", 8),
    ],
)
def test_pieces_end_anywhere(text: str, most: int) -> None:
    """Law S7."""
    options = SplitOptions(most, 0, "code_point", 0, frozenset([END]))
    check_pieces(Library(get_encoding("cl100k_base")), text, options, [1, 7, 300])


@pytest.mark.slow
def test_the_reference_cuts_where_the_core_does() -> None:
    """Laws T5 and S5."""
    native, reference = (
        get_encoding("cl100k_base", backend=backend) for backend in ("native", "reference")
    )
    rng = random.Random(SEED)
    for _ in range(20):
        text, most = "".join(rng.choices(PARTS, k=rng.randrange(25))), rng.choice([1, 2, 5])
        for keep in KEEPS:
            cut = Cut(most, keep)
            assert Library(native).truncate(text, cut) == Library(reference).truncate(text, cut)
        assert native.split(text, most + 3) == reference.split(text, most + 3)


PROSE = (
    "It rained. “Why?” she asked, 12.5 km on! Dr. Ąčę said: no…\r\n",
    "日本語の文章です。次の文。カタカナ\n\n",
    "def a(b):\n    return naïve_🧠_value, 👨\u200d👩\u200d👧  # 🇩🇪🇫🇷\n \t\n",
    "One line without an end; and more of it, and more. ",
    "\u2028camelCaseWord\x85functio ",
)


@pytest.mark.slow
def test_the_core_finds_the_chunks_that_the_definition_finds() -> None:
    """Laws S5 and S6, on prose, of which the core finds nearly all chunks by itself, with every
    option."""
    native, reference = (
        get_encoding("o200k_base", backend=backend) for backend in ("native", "reference")
    )
    rng = random.Random(SEED)
    for level in LEVELS:
        for overlap in (0, 25, 50):
            text = "".join(rng.choices(PROSE, k=30))
            most = rng.choice([4, 20, 60])
            fill = rng.choice([0, 50, 100])
            options = SplitOptions(most, most * overlap // 100, level, fill)
            assert list(split(native, text, options)) == list(split(reference, text, options))


TESTS = Path(__file__).parents[1]
#: Those that one test holds, of the library alone.
OF_THE_LIBRARY = {"T8", "I8"}


def listed() -> set[str]:
    return set(re.findall(r"\b[TSI]\d+(?= +[a-zN])", __doc__ or ""))


def asserted() -> set[str]:
    tree = ast.parse((TESTS / "support/context_checks.py").read_text(encoding="utf-8"))
    names = [each.msg for each in ast.walk(tree) if isinstance(each, ast.Assert)]
    assert all(isinstance(name, ast.Constant) for name in names)
    return {str(name.value) for name in names if isinstance(name, ast.Constant)}


def named(file: str) -> set[str]:
    """The laws that docstrings of tests name, as `Laws T1 to T3 and T5`."""
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    tests = [each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef)]
    found: set[str] = set()
    for test in tests:
        words = ast.get_docstring(test) or ""
        for sentence in re.findall(r"\bLaws? ((?:[TSI]\d+|to|and|,|\s)+)", words):
            for kind, first, last in re.findall(r"([TSI])(\d+)(?: to [TSI](\d+))?", sentence):
                found |= {f"{kind}{n}" for n in range(int(first), int(last or first) + 1)}
    return found


def test_every_law_is_asserted_and_named_by_tests() -> None:
    laws = listed()
    assert len(laws) == 28
    assert asserted() == laws - OF_THE_LIBRARY
    files = ["context_laws", "truncate", "split", "inspect"]
    assert set().union(*(named(f"engine/test_{file}.py") for file in files)) == laws
    assert named("server/test_context_laws.py") == laws - OF_THE_LIBRARY
