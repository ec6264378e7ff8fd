"""How fast are counts of new text in Japanese, Korean, Thai and Hindi, beside English prose?

    PYTHONPATH=tests:. python -m bench.engine.languages [FILE…]

Prints MB/s as multiples of those of English prose. New text is text that the process has not seen.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.engine.cold import in_child
from bench.engine.engines import NAMES, Work, documents_of, engines_of
from bench.texts import parsed, translations

#: Each round takes a few milliseconds for each text.
ROUNDS = 41
#: The first word of the Unicode names of most letters of a text, and the name of its language.
SCRIPTS = {"HIRAGANA": "Japanese", "HANGUL": "Korean", "THAI": "Thai", "DEVANAGARI": "Hindi"}
#: Words that are a fifth of English prose.
COMMON = frozenset(("the", "of", "and", "to", "a", "in", "is", "it", "that"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    _, texts = parsed(parser)
    for name in NAMES:
        for language, ratio in beside_english(engines_of(name), texts).items():
            print(f"{name} {language:9} {ratio:.2f}", flush=True)
    return 0


def beside_english(engines: dict[str, dict[str, Work]], texts: Sequence[Path]) -> dict[str, float]:
    """Return the MB/s of each language as a multiple of that of English prose; nothing without a
    text in English. Measures 120,000 characters of each text and of the translations of
    `bench.texts`. Ends the command if a count is not tiktoken's.

    The texts take turns, each pass in a new process. A round compares the medians over the texts of
    a language; the median over the rounds is returned.
    """
    count, tiktoken = engines["count"]["ours"], engines["list"]["tiktoken"]
    by_language = defaultdict(list)
    for path in dict.fromkeys([*texts, *translations()]):
        documents = documents_of(path, 10_000, 120_000)
        if language := language_of("".join(documents)):
            lists: list[Any] = in_child(tiktoken, documents)[1]
            if in_child(count, documents)[1] != [len(ids) for ids in lists]:
                sys.exit(f"the counts of {path} differ from tiktoken's")
            by_language[language].append((documents, sum(len(d.encode()) for d in documents)))
    if "English" not in by_language:
        return {}
    ratios = defaultdict(list)
    for _ in range(ROUNDS):
        speeds = {
            language: statistics.median(
                size / in_child(count, documents)[0] for documents, size in same
            )
            for language, same in by_language.items()
        }
        english = speeds.pop("English")
        for language, speed in speeds.items():
            ratios[language].append(speed / english)
    return {language: statistics.median(found) for language, found in sorted(ratios.items())}


def language_of(text: str) -> str | None:
    """Return the language of a text, by its letters, and English by its words; None for code and
    data, and for languages without a row."""
    letters = Counter(unicodedata.name(c, "").partition(" ")[0] for c in text if c.isalpha())
    for script, language in SCRIPTS.items():
        if letters[script] > 0.2 * letters.total():
            return language
    words = text.lower().split()
    is_english = sum(map(COMMON.__contains__, words)) > 0.12 * len(words)
    # Descriptions in YAML or JSON have these words too, between signs and indentation.
    is_prose = sum(letters.values()) > 0.6 * len(text)
    return "English" if is_english and is_prose else None


if __name__ == "__main__":
    sys.exit(main())
