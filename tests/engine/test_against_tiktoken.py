"""Ids equal tiktoken's, on the ordinary and special paths, for texts that are hard to split."""

from __future__ import annotations

import random
from itertools import product
from typing import Any

import pytest
from bytepair_engine import Encoding, SpecialTokenFound, aliases, get_encoding
from support.engines import Load
from support.hard_text import HARD_CHARACTERS, HARD_PIECES, every_white_space, random_texts
from support.oracle import oracle
from tiktoken.model import MODEL_PREFIX_TO_ENCODING, MODEL_TO_ENCODING, encoding_name_for_model

#: A text for each of many scripts, with its own punctuation, digits and line ends.
SCRIPTS = [
    "It's the year 2024; we've counted 1,234,567 tokens (don't ask).\n\n\tNext paragraph.",
    "Größe, Straße, ÆØÅ — «déjà vu» l'été. Çocuğun İstanbul'daki ıslak şapkası.",
    "Привет, мир! Съешь ещё этих мягких французских булок, да выпей чаю №5.",
    "Το ελληνικό αλφάβητο έχει 24 γράμματα· ΑΒΓ αβγ.",
    "今天天气不错，我们去公园散步吧！价格：￥１２３４．５６元。",
    "吾輩は猫である。名前はまだ無い。「ドラえもん」ーｶﾀｶﾅ〜",
    "삼겹살을 먹었습니다. ㅋㅋㅋ 정말 맛있어요!!",
    "नमस्ते दुनिया! क्षत्रिय १२३४, ज़िंदगी।",
    "สวัสดีชาวโลก ก็ดี น้ำ ๑๒๓",
    "مرحبا بالعالم، كَتَبَ ١٢٣ צָהֳרַיִם טוֹבִים",
    "👩‍👩‍👧‍👦 🇩🇪🇫🇷 👍🏽 ☺️ ✈️ 1️⃣ \U0001f642\U0001f642",
    'def f(x: int) -> str:\n    """Doc."""\n\treturn f"{x:>10}"  # ok\r\n\r\n\r\n',
    '{"a": [1, 2.5e-3, null], "b\\u00e9": "\\n"}\n',
    "a\u0301\u0302b\u20ddc ǅungla ʰ ªº Ⅷ ½²³ ſ 'ſ K Å",
]


@pytest.mark.slow
def test_scripts(encoding: Encoding) -> None:
    for text in SCRIPTS:
        assert encoding.encode_ordinary(text) == oracle(encoding.name).encode_ordinary(text)


@pytest.mark.slow
def test_random_texts(encoding: Encoding) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    number = 3000 if encoding.backend == "native" else 300
    for text in random_texts(rng, encoding.token_byte_values(), number):
        assert encoding.encode_ordinary(text) == oracle(encoding.name).encode_ordinary(text), text


@pytest.mark.slow
@pytest.mark.parametrize("name", ["r50k_base", "cl100k_base", "o200k_base"])
def test_every_code_point(load: Load, name: str) -> None:
    """Test each code point alone and between letters, many in one text for speed. A line feed
    separates them, which each of these patterns splits from the text after it."""
    encoding, tiktoken_encoding = load(name), oracle(name)
    step = 1 if encoding.backend == "native" else 16
    code_points = [chr(c) for c in range(0, 0x110000, step) if not 0xD800 <= c < 0xE000]
    for start in range(0, len(code_points), 4096):
        block = code_points[start : start + 4096]
        for text in ("\n".join(block), "\n".join(f"a{c}b" for c in block)):
            if encoding.encode_ordinary(text) != tiktoken_encoding.encode_ordinary(text):
                wrong = [
                    c
                    for c in block
                    for t in (c, f"a{c}b")
                    if encoding.encode_ordinary(t) != tiktoken_encoding.encode_ordinary(t)
                ]
                pytest.fail(f"code points U+{', U+'.join(f'{ord(c):04X}' for c in wrong)}")


@pytest.mark.slow
def test_white_space_runs(encoding: Encoding) -> None:
    spaces = every_white_space()
    for space, length, follow in product(spaces, (1, 2, 3, 5), ("", "x", ".", "7", "\n", "é")):
        text = "a" + space * length + follow
        assert encoding.encode_ordinary(text) == oracle(encoding.name).encode_ordinary(text)
    for pair in product(spaces, repeat=2):
        text = "".join(pair) + "x"
        assert encoding.encode_ordinary(text) == oracle(encoding.name).encode_ordinary(text)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["r50k_base", "cl100k_base", "o200k_base"])
def test_every_string_of_three_hard_characters(load: Load, name: str) -> None:
    encoding, tiktoken_encoding = load(name), oracle(name)
    alphabet = "aA1 \n\r\t'sſ.中/\u0301\xa0²ǅ"
    if encoding.backend == "reference":
        alphabet = "aA1 \n'ſ.\u0301\xa0"
    for length in (1, 2, 3):
        for characters in product(alphabet, repeat=length):
            text = "".join(characters)
            got = encoding.encode_ordinary(text)
            assert got == tiktoken_encoding.encode_ordinary(text), repr(text)


@pytest.mark.slow
def test_special_paths(encoding: Encoding) -> None:
    """Every choice of the two options, on texts with whole and truncated special tokens."""
    tiktoken_encoding = oracle(encoding.name)
    names = list(encoding.special_tokens)[:3]
    texts = [
        "plain",
        *names,
        f"a{names[0]}b{names[-1]}c{names[0]}{names[0]}",
        f"<{names[0]} {names[-1]}>",
        names[0][:-1],
        f"<|end{names[0]}oftext|>",
    ]
    options: list[Any] = [set(), {names[0]}, set(names), "all"]
    for text, allowed, disallowed in product(texts, options, options):
        chosen = {"allowed_special": allowed, "disallowed_special": disallowed}
        try:
            expected = tiktoken_encoding.encode(text, **chosen)
        except ValueError:
            with pytest.raises(SpecialTokenFound):
                encoding.encode(text, **chosen)
        else:
            assert encoding.encode(text, **chosen) == expected


def test_disallowed_may_be_any_string(load: Load) -> None:
    """As in tiktoken, it is a plain search."""
    encoding = load("cl100k_base")
    with pytest.raises(ValueError, match="cat"):
        oracle("cl100k_base").encode("a cat", disallowed_special={"cat"})
    with pytest.raises(SpecialTokenFound) as caught:
        encoding.encode("ä cat", disallowed_special={"cat"})
    assert (caught.value.token, caught.value.byte_offset) == ("cat", 3)


@pytest.mark.slow
def test_decode_and_single_tokens(encoding: Encoding) -> None:
    tiktoken_encoding = oracle(encoding.name)
    assert encoding.n_vocab == tiktoken_encoding.n_vocab
    assert encoding.max_token_id == tiktoken_encoding.max_token_value
    assert encoding.token_byte_values() == tiktoken_encoding.token_byte_values()
    assert dict(encoding.special_tokens) == tiktoken_encoding._special_tokens
    rng = random.Random(7)
    tokens = rng.sample(encoding.token_byte_values(), 2000)
    ids = [encoding.encode_single_token(token) for token in tokens]
    assert ids == [tiktoken_encoding.encode_single_token(token) for token in tokens]
    assert encoding.decode_bytes(ids) == tiktoken_encoding.decode_bytes(ids)
    assert encoding.decode(ids) == tiktoken_encoding.decode(ids)
    special = list(encoding.special_tokens.values())
    assert encoding.decode_bytes(special) == tiktoken_encoding.decode_bytes(special)


@pytest.mark.slow
def test_offsets(encoding: Encoding) -> None:
    """tiktoken's decode_with_offsets counts code points by the same rule."""
    for text in [*SCRIPTS, *HARD_PIECES, "".join(HARD_CHARACTERS)]:
        ids, offsets = encoding.encode_with_offsets(text, unit="code_point", disallowed_special=())
        decoded, expected = oracle(encoding.name).decode_with_offsets(ids)
        assert (decoded, offsets) == (text, expected)


def test_both_backends_have_the_unicode_version_of_the_oracle(encoding: Encoding) -> None:
    """Letters of Unicode 16 and of Unicode 17, with which a letter splits differently from an
    unassigned character (rust-lang/regex #1387)."""
    for letter in ("\u1c89", "\ua7cb", "\U00010940", "\ua7ce", "\U00011db0"):
        for text in (f"{letter}'s", f"1{letter}.", f".{letter}x\n", f"{letter}'LL{letter}"):
            assert encoding.encode_ordinary(text) == oracle(encoding.name).encode_ordinary(text)


def test_aliases() -> None:
    """Every model and prefix that tiktoken names has its encoding, and no other."""
    same = {"gpt2": "r50k_base"}  # two names of one encoding
    prefixes = {f"{prefix}*" for prefix in MODEL_PREFIX_TO_ENCODING}
    own = {"ft:gpt-4.1*"}  # tiktoken matches these by its prefix "ft:gpt-4"
    assert aliases().keys() == MODEL_TO_ENCODING.keys() | prefixes | own
    for model in aliases().keys() - own:
        name = get_encoding(model).name
        expected = encoding_name_for_model(model)
        assert same.get(expected, expected) == name
