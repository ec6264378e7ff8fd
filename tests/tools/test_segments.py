"""Words and scripts do not depend on the cuts of a document, and follow Unicode's properties."""

from __future__ import annotations

import random
from collections import defaultdict

import pytest
import regex
from bytepair_tools.evaluation.scripts import COMMON, INHERITED, WITHOUT_SPACES, script_of
from bytepair_tools.evaluation.segments import Segmenter, Spans
from support.hard_text import HARD_CHARACTERS, HARD_PIECES

Named = list[tuple[int, str, str]]


def segments(pieces: list[str], block_characters: int = 1 << 18) -> tuple[Named, Named]:
    """Return all runs and words of a document: start, script and text of each."""
    text = "".join(pieces).encode()
    stretches: Named = []
    words: Named = []
    came = ""
    for piece, block in Segmenter(block_characters).blocks(pieces):
        came += piece
        for result, found in (
            (stretches, block.stretches if block else {}),
            (words, block.words if block else {}),
        ):
            for script, spans in found.items():
                parts = [text[a:b].decode() for a, b in zip(spans.starts, spans.ends, strict=True)]
                assert sum(map(len, parts)) == spans.characters
                assert sum(len(part.encode()) for part in parts) == spans.bytes
                result += [(a, script, p) for a, p in zip(spans.starts, parts, strict=True)]
    assert came.encode() == text
    return sorted(stretches), sorted(words)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Don't stop: 3rd of 2024, rock’n’roll", "Don't stop 3rd of rock’n’roll"),
        ("snake_case camelCase x86-64", "snake case camelCase x86"),
        ("iPhone用日本語 한국어 ไทย привет", "iPhone 한국어 привет"),
        ("cafe\u0301 नमस्ते ١٢٣ '' 'tis l'", "cafe\u0301 नमस्ते tis l"),
        ("12345 ½ …", ""),
        ("", ""),
    ],
)
def test_words(text: str, expected: str) -> None:
    assert [word for _, _, word in segments([text])[1]] == expected.split()


def test_a_run_includes_the_space_before_it_and_its_marks() -> None:
    stretches, words = segments(["one two,  три e\u0301 4 日本の"])
    assert [(script, part) for _, script, part in stretches] == [
        ("Latin", "one two"),
        (COMMON, ", "),
        ("Cyrillic", " три"),
        ("Latin", " e\u0301"),
        (COMMON, " 4"),
        ("Han", " 日本"),
        ("Hiragana", "の"),
    ]
    assert [(script, word) for _, script, word in words] == [
        ("Latin", "one"),
        ("Latin", "two"),
        ("Cyrillic", "три"),
        ("Latin", "e\u0301"),
    ]


def test_segments_do_not_depend_on_pieces_and_blocks() -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    pool = [*HARD_CHARACTERS, *HARD_PIECES, " ", " word", "\n"]
    for _ in range(60):
        parts = [rng.choice(pool) for _ in range(90)]
        text = "".join(parts)
        stretches, words = segments([text])
        assert "".join(part for _, _, part in stretches) == text
        cut_stretches, cut_words = segments(parts, rng.choice([1, 7, 40]))
        assert cut_words == words
        assert by_script(cut_stretches) == by_script(stretches)


def by_script(stretches: Named) -> dict[str, str]:
    """Join the text of each script: a cut inside a run makes two runs."""
    found: defaultdict[str, str] = defaultdict(str)
    for _, script, part in stretches:
        found[script] += part
    return dict(found)


def test_a_document_without_white_space_is_one_block() -> None:
    blocks = [b for _, b in Segmenter(10).blocks(["日本語" * 10] * 50) if b]
    assert len(blocks) == 1
    assert blocks[0].stretches["Han"] == Spans([0], [4500], 1500)


@pytest.mark.slow
def test_every_character_has_the_script_that_unicode_gives_it() -> None:
    """Except for unassigned characters, and for one character with two scripts."""
    characters = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x110000)]))
    none = regex.compile(r"\p{Script=Unknown}|\p{Script=Katakana_Or_Hiragana}|\p{Script=Common}")
    scripts = {script_of(c) for c in none.sub("", characters)[::7]}
    assert COMMON not in scripts
    assert {INHERITED, *WITHOUT_SPACES} <= scripts
    assert len(scripts) > 150
