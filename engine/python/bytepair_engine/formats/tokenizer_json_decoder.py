"""Convert the decoder of a tokenizer.json to the bytes of each token."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import regex

from bytepair_engine.formats.json_file import Node
from bytepair_engine.formats.replacement_budget import ReplacementBudget
from bytepair_engine.formats.tokenizer_json_steps import flattened, regular_expression
from bytepair_engine.pipeline.byte_alphabet import read_bytes
from bytepair_engine.pipeline.definition import Decoder
from bytepair_engine.pipeline.splitting import compiled

#: Converts the text of a token. Arguments: the text; whether it is the first token; the last one.
_Step = Callable[[str, bool, bool], str]

_BYTE: Final = regex.compile(r"<0x([0-9A-Fa-f]{2}|\+[0-9A-Fa-f])>")
_KNOWN: Final = "ByteLevel, ByteFallback, Fuse, Metaspace, Replace, Strip, BPEDecoder, Sequence"


def read_decoder(node: Node | None, spellings: Mapping[int, str]) -> Decoder:
    """Read the member `decoder`.

    Args:
        node: The member; None for null, which joins tokens by spaces.
        spellings: Id to spelling, for every token.
    Raises:
        VocabularyError: A step is unknown, or not supported exactly at its position.
    """
    chain = _Chain()
    if node is None:
        chain.by_position = True
        chain.steps.append(lambda text, first, _: text if first else " " + text)
    for step in flattened(node, "decoders"):
        chain.add(step)
    middle = chain.table(spellings, first=False, last=False)

    def others(*, first: bool, last: bool) -> dict[int, bytes]:
        if not chain.by_position:
            return {}
        table = chain.table(spellings, first=first, last=last)
        return {i: data for i, data in table.items() if data != middle[i]}

    return Decoder(
        middle=middle,
        first=others(first=True, last=False),
        last=others(first=False, last=True),
        only=others(first=True, last=True),
        strip_start=chain.strip_start,
        strip_end=chain.strip_end,
    )


class _Chain:
    """The steps of a decoder: those applied to each token, and those applied to the whole text.

    Attributes:
        steps: The steps applied to the text of each token.
        by_position: Whether a step depends on the position of the token.
        strip_start: The character to strip from the start of the text, and the maximum number.
        strip_end: The same for the end.
    """

    def __init__(self) -> None:
        self.steps: list[_Step] = []
        self.by_position = False
        self.strip_start = self.strip_end = ("", 0)
        self._to_bytes: Callable[[str], bytes] = str.encode
        self._joined = False
        self._budget: Final = ReplacementBudget()

    def table(self, spellings: Mapping[int, str], *, first: bool, last: bool) -> dict[int, bytes]:
        """Return the bytes of each token at one kind of position."""
        table = {}
        for token_id, text in spellings.items():
            for step in self.steps:
                text = step(text, first, last)
            table[token_id] = self._to_bytes(text)
        return table

    def add(self, node: Node) -> None:
        """Append a step."""
        match node["type"].a(str):
            case "ByteLevel":
                self._becomes_bytes(node, _byte_level)
            case "ByteFallback":
                self._becomes_bytes(node, _byte_fallback)
            case "Fuse":
                self._joined = True
            case "Strip" if self._joined:
                self._strip_whole(node)
            case "Strip" if self._to_bytes is str.encode:
                self.steps.append(_strip(node))
            case "Replace" if not self._joined and self._to_bytes is str.encode:
                self.steps.append(_replace(node, self._budget))
            case "Metaspace" if not self._joined and self._to_bytes is str.encode:
                self.steps.append(_metaspace(node, self._budget))
                self.by_position = True
            case "BPEDecoder" if not self._joined and self._to_bytes is str.encode:
                self.steps.append(_end_of_word(node, self._budget))
                self.by_position = True
            case "Strip" | "Replace" | "Metaspace" | "BPEDecoder":
                self._reject_position(node)
            case name:
                node.reject(f"the decoder {name!r} is not supported; supported are {_KNOWN}")

    def _becomes_bytes(self, node: Node, to_bytes: Callable[[str], bytes]) -> None:
        if self._joined or self._to_bytes is not str.encode:
            self._reject_position(node)
        self._to_bytes = to_bytes
        # ByteLevel joins all tokens. ByteFallback joins runs of byte tokens: only Fuse may follow.
        self._joined = to_bytes is _byte_level

    def _strip_whole(self, node: Node) -> None:
        if self.strip_start[1] or self.strip_end[1]:
            self._reject_position(node)
        content, start, stop = _strip_settings(node)
        self.strip_start, self.strip_end = (content, start), (content, stop)

    def _reject_position(self, node: Node) -> None:
        node.reject(f"{node['type'].value} is not supported after the steps before it")


def _byte_level(text: str) -> bytes:
    data = read_bytes(text)
    return text.encode() if data is None else data


def _byte_fallback(text: str) -> bytes:
    found = _BYTE.fullmatch(text) if text.startswith("<0x") else None
    return bytes([int(found[1], 16)]) if found else text.encode()


def _strip_settings(node: Node) -> tuple[str, int, int]:
    content, start, stop = node["content"].a(str), node["start"].a(int), node["stop"].a(int)
    if len(content) != 1:
        node["content"].reject("it must be one character")
    if start < 0 or stop < 0:
        node.reject("start and stop must be 0 or more")
    return content, start, stop


def _strip(node: Node) -> _Step:
    content, start, stop = _strip_settings(node)

    def strip(text: str, _first: bool, _last: bool) -> str:
        leading = min(start, len(text) - len(text.lstrip(content)))
        trailing = min(stop, len(text) - len(text.rstrip(content)), len(text) - leading)
        return text[leading : len(text) - trailing]

    return strip


def _replace(node: Node, budget: ReplacementBudget) -> _Step:
    content = node["content"].a(str)
    plain = node["pattern"].get("String")
    if plain is not None and plain.a(str) and node["pattern"].get("Regex") is None:
        old = plain.value
        return lambda text, _first, _last: budget.replaced_text(node, old, text, content)
    pattern = compiled(regular_expression(node["pattern"]))
    return lambda text, _first, _last: budget.replaced(node, pattern, text, content)


def _metaspace(node: Node, budget: ReplacementBudget) -> _Step:
    mark = node["replacement"].a(str)
    scheme = node.get("prepend_scheme")
    never = scheme is not None and scheme.value == "never"

    def metaspace(text: str, first: bool, _last: bool) -> str:
        space = "" if first and not never else " "
        return budget.replaced_text(node, mark, text, space)

    return metaspace


def _end_of_word(node: Node, budget: ReplacementBudget) -> _Step:
    suffix = node["suffix"].a(str)

    def end_of_word(text: str, _first: bool, last: bool) -> str:
        return budget.replaced_text(node, suffix, text, "" if last else " ")

    return end_of_word
