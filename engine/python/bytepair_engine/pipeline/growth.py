"""Bound how many times longer the steps of a pipeline can make a text.

Steps multiply: three that replace each "a" by a thousand make a billion of one.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Final

from bytepair_engine.pipeline.charsmap import charsmap
from bytepair_engine.pipeline.definition import (
    ByteAlphabet,
    CharsMap,
    Lowercase,
    Normaliser,
    Prefix,
    Prepend,
    PreTokenizer,
    Replace,
    Spacing,
    Surround,
    UnicodeForm,
)

#: Maximum of `growth`. Two steps of NFKC, which have 18 each, are below it.
MAX_GROWTH: Final = 1000

#: The most characters that one becomes: U+1D160, U+1F82 and U+FDFA.
_OF_FORMS: Final = {"NFC": 3, "NFD": 4, "NFKC": 18, "NFKD": 18}


def growth(steps: Iterable[Normaliser | PreTokenizer]) -> int:
    """Return an upper bound of the number of characters that the steps make of each one."""
    return prod(map(_of_step, steps))


def _of_step(step: Normaliser | PreTokenizer) -> int:
    match step:
        case UnicodeForm(form):
            return _OF_FORMS[form]
        case Lowercase():
            return 2
        case Prepend(text):
            return 1 + len(text)
        case Replace(_, content):
            return max(1, len(content))  # no match is empty
        case Surround(_, content):
            return 1 + 2 * len(content)
        case CharsMap(table):
            return _longest(table)
        case Spacing(table):
            return 1 + _longest(table)
        case Prefix():
            return 2
        case ByteAlphabet():
            return 4
    return 1


def _longest(table: bytes) -> int:
    return max(1, *map(len, charsmap(table).values)) if table else 1
