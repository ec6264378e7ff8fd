"""Convert the normalisers of a tokenizer.json to steps of a pipeline."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterator
from typing import Final, Literal, cast

from bytepair_engine.formats.json_file import Node
from bytepair_engine.formats.tokenizer_json_steps import (
    choice,
    converted,
    flattened,
    regular_expression,
)
from bytepair_engine.pipeline.charsmap import CharsMapFault, charsmap
from bytepair_engine.pipeline.definition import (
    CharsMap,
    Lowercase,
    Normaliser,
    Prepend,
    Replace,
    Strip,
    Surround,
    UnicodeForm,
)
from bytepair_engine.pipeline.unicode_tables import MORE_ACCENTS, NO_ACCENTS, NO_CONTROLS

_CONTROL: Final = rf"(?![{NO_CONTROLS}])[\p{{Cc}}\p{{Cf}}\p{{Co}}\ufffd]"
_ACCENT: Final = rf"(?![{NO_ACCENTS}])[\p{{Mn}}{MORE_ACCENTS}]"

#: The characters that BERT's normaliser surrounds by spaces. As in `tokenizers`, without U+2B820 to
#: U+2B91F.
_CJK: Final = (
    r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002a6df\U0002a700-\U0002b81f"
    r"\U0002b920-\U0002ceaf\U0002f800-\U0002fa1f]"
)


def normalisers(node: Node | None) -> tuple[Normaliser, ...]:
    """Read the member `normalizer`.

    Raises:
        VocabularyError: A step has an unknown type or setting.
    """
    return tuple(
        step
        for member in flattened(node, "normalizers")
        for step in converted(member, _NORMALISERS, "normalizer")
    )


def _unicode(node: Node) -> Iterator[Normaliser]:
    name = cast(Literal["NFC", "NFD", "NFKC", "NFKD"], node["type"].value)
    yield UnicodeForm(name)


def _lowercase(_node: Node) -> Iterator[Normaliser]:
    yield Lowercase()


def _prepend(node: Node) -> Iterator[Normaliser]:
    text = node["prepend"].a(str)
    if not text:
        # `tokenizers` then counts the first character twice in some texts.
        node["prepend"].reject("it is empty")
    yield Prepend(text)


def _replace(node: Node) -> Iterator[Normaliser]:
    yield Replace(regular_expression(node["pattern"]), node["content"].a(str))


def _strip(node: Node) -> Iterator[Normaliser]:
    yield Strip(choice(node, "strip_left"), choice(node, "strip_right"))


def _bert(node: Node) -> Iterator[Normaliser]:
    """Yield one step per option of BERT's normaliser."""
    lower = choice(node, "lowercase")
    if choice(node, "clean_text"):
        yield Replace(_CONTROL, "")
        yield Replace(r"\s", " ")
    if choice(node, "handle_chinese_chars"):
        yield Surround(_CJK, " ")
    if choice(node, "strip_accents", default=lower):
        yield UnicodeForm("NFD")
        yield Replace(_ACCENT, "")
    if lower:
        yield Lowercase()


def _precompiled(node: Node) -> Iterator[Normaliser]:
    member = node.get("precompiled_charsmap")
    if member is None:
        return
    try:
        table = base64.b64decode(member.a(str), validate=True)
        charsmap(table)
    except binascii.Error:
        member.reject("it is not base64")
    except CharsMapFault as fault:
        member.reject(f"it is not a valid map: {fault}")
    yield CharsMap(table)


_NORMALISERS: Final[dict[str, Callable[[Node], Iterator[Normaliser]]]] = {
    **dict.fromkeys(("NFC", "NFD", "NFKC", "NFKD"), _unicode),
    "Lowercase": _lowercase,
    "Prepend": _prepend,
    "Replace": _replace,
    "Strip": _strip,
    "Precompiled": _precompiled,
    "BertNormalizer": _bert,
}
