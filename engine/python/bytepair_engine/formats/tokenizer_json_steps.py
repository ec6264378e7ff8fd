"""Convert the pre-tokenizers of a tokenizer.json to steps of a pipeline; helpers for all steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeVar

import regex

from bytepair_engine.formats.json_file import Node
from bytepair_engine.formats.oniguruma import PatternFault, translate
from bytepair_engine.pipeline.definition import (
    Behaviour,
    ByteAlphabet,
    Prefix,
    PreTokenizer,
    Split,
    Substitute,
)
from bytepair_engine.pipeline.unicode_tables import (
    MORE_MARKS,
    MORE_NUMBERS,
    NO_MARKS,
)
from bytepair_engine.vocabulary.patterns import COVERING, ONIGURUMA_SPELLINGS, PATTERNS

T = TypeVar("T")

_NUMBER: Final = rf"[\p{{N}}{MORE_NUMBERS}]"
_MARK: Final = rf"(?![{NO_MARKS}])[\p{{P}}$+<=>^`|~{MORE_MARKS}]"

_BEHAVIOURS: Final[dict[str, Behaviour]] = {
    "Isolated": "isolated",
    "Removed": "removed",
    "MergedWithPrevious": "merged_with_previous",
    "MergedWithNext": "merged_with_next",
    "Contiguous": "contiguous",
}

#: Equivalent spellings of published patterns; see docs/formats.md.
_SPELLINGS: Final = {
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+": PATTERNS["gpt2"],
    **{spelling: pattern for pattern, spelling in ONIGURUMA_SPELLINGS.items()},
}


def flattened(node: Node | None, members: str) -> list[Node]:
    """Return the steps of a sequence, or a single step as a list; [] for null."""
    if node is None:
        return []
    if node["type"].value == "Sequence":
        return [step for member in node[members].items() for step in flattened(member, members)]
    return [node]


def choice(node: Node, key: str, default: bool | None = None) -> bool:
    """Return a boolean member; `default` if it is missing or null."""
    found = node.get(key)
    if found is None and default is not None:
        return default
    return (found or node[key]).a(bool)


def regular_expression(node: Node) -> str:
    """Convert a member {"String": …} or {"Regex": …} to the syntax of docs/patterns.md."""
    text, expression = node.get("String"), node.get("Regex")
    if text is not None and expression is not None:
        node.reject("it has both String and Regex")
    if text is not None:
        if not text.a(str):
            text.reject("it is empty")
        return regex.escape(text.a(str)).replace("\n", r"\n")
    if expression is None:
        node.reject('it must be {"String": …} or {"Regex": …}')
    try:
        return _SPELLINGS.get(expression.a(str)) or translate(expression.a(str))
    except PatternFault as fault:
        expression.reject(f"its regular expression cannot be run exactly: {fault}")


def pre_tokenizers(node: Node | None) -> tuple[PreTokenizer, ...]:
    """Read the member `pre_tokenizer`. ByteLevel becomes `ByteAlphabet`, after its other steps.

    Raises:
        VocabularyError: A step has an unknown type or setting.
    """
    return tuple(
        step
        for member in flattened(node, "pretokenizers")
        for step in converted(member, _PRE_TOKENIZERS, "pre-tokenizer")
    )


def converted(
    node: Node, makers: dict[str, Callable[[Node], Iterator[T]]], kind: str
) -> Iterator[T]:
    """Convert one step of a file to steps of a pipeline, by a table of types."""
    name = node["type"].a(str)
    if name not in makers:
        node.reject(f"the {kind} {name!r} is not supported; supported are {', '.join(makers)}")
    return makers[name](node)


def _byte_level(node: Node) -> Iterator[PreTokenizer]:
    if choice(node, "add_prefix_space"):
        yield Prefix(" ")
    if choice(node, "use_regex", default=True):
        yield Split(PATTERNS["gpt2"])
    yield ByteAlphabet()


def _split(node: Node) -> Iterator[PreTokenizer]:
    pattern = regular_expression(node["pattern"])
    step = Split(pattern, _behaviour(node), choice(node, "invert", default=False))
    if pattern in COVERING and step == Split(pattern, "removed", inverted=True):
        step = Split(pattern)  # no text is left between matches
    yield step


def _behaviour(node: Node) -> Behaviour:
    name = node["behavior"].a(str)
    if name not in _BEHAVIOURS:
        node["behavior"].reject(f"{name!r} is not one of {', '.join(_BEHAVIOURS)}")
    return _BEHAVIOURS[name]


def _digits(node: Node) -> Iterator[PreTokenizer]:
    single = choice(node, "individual_digits", default=False)
    yield Split(_NUMBER, "isolated" if single else "contiguous")


def _punctuation(node: Node) -> Iterator[PreTokenizer]:
    yield Split(_MARK, "isolated" if node.get("behavior") is None else _behaviour(node))


def _whitespace(_node: Node) -> Iterator[PreTokenizer]:
    yield Split(r"\w+|[^\w\s]+", "removed", inverted=True)


def _whitespace_split(_node: Node) -> Iterator[PreTokenizer]:
    yield Split(r"\s", "removed")


def _bert_words(node: Node) -> Iterator[PreTokenizer]:
    yield from _whitespace_split(node)
    yield Split(_MARK)


def _metaspace(node: Node) -> Iterator[PreTokenizer]:
    mark = node["replacement"].a(str)
    if len(mark) != 1:
        node["replacement"].reject("it must be one character")
    scheme = node.get("prepend_scheme")
    name = "always" if scheme is None else scheme.a(str)
    if name not in ("always", "first", "never"):
        node["prepend_scheme"].reject(f"{name!r} is not one of always, first, never")
    if not choice(node, "add_prefix_space", default=True):
        if scheme is not None and name != "never":
            node.reject("add_prefix_space is false, but prepend_scheme is not never")
        if scheme is None:
            node.reject("add_prefix_space is false, and prepend_scheme is missing")
    yield Substitute(" ", mark)
    if name != "never":
        yield Prefix(mark, first_only=name == "first")
    if choice(node, "split", default=True):
        yield Split(regex.escape(mark), "merged_with_next")


_PRE_TOKENIZERS: Final[dict[str, Callable[[Node], Iterator[PreTokenizer]]]] = {
    "ByteLevel": _byte_level,
    "Split": _split,
    "Digits": _digits,
    "Punctuation": _punctuation,
    "Whitespace": _whitespace,
    "WhitespaceSplit": _whitespace_split,
    "Metaspace": _metaspace,
    "BertPreTokenizer": _bert_words,
}
