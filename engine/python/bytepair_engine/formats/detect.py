"""Detect the format of a vocabulary file by its content, never by its name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

from bytepair_engine.errors import VocabularyError
from bytepair_engine.formats.json_file import Node, read_json
from bytepair_engine.formats.protobuf_wire import WireFault, fields

Format = Literal["tiktoken", "gpt2", "tekken", "sentencepiece", "tokenizer.json"]

#: The formats with their descriptions.
FORMATS: Final[dict[Format, str]] = {
    "tiktoken": "a rank file in tiktoken's format",
    "gpt2": "GPT-2's merges, whose ids are in another file",
    "tekken": "a Tekken file by Mistral",
    "sentencepiece": "a SentencePiece model",
    "tokenizer.json": "a tokenizer.json of Hugging Face's tokenizers",
}

_REMEDY: Final = f"use a file of one of the formats {', '.join(FORMATS)}"
_JSON_REMEDY: Final = "check that this is a vocabulary file, and that it is complete"
_RANK_LINE: Final = re.compile(rb"[A-Za-z0-9+/]+=* [0-9]+\r?(\n|$)")

#: Starts of other files that are often used by mistake, with a description and a remedy.
_OTHERS: Final = (
    (
        rb"version https://git-lfs\.",
        "a pointer of Git LFS, and not the file",
        "fetch the file: git lfs pull",
    ),
    (rb"(?i)\s*<(!doctype|html|\?xml)", "a web page", "fetch the file itself"),
    (rb"PK\x03\x04", "a ZIP archive", "unpack it first"),
    (rb"\x80[\x02-\x05]", "a Python pickle, which is never loaded", _REMEDY),
    (
        rb'(?:\s+|#[^\n]*\n)*+\[+[A-Za-z_](?:[\w.-]|"[^"\n]*")*\]+\s*(?:[#\n]|$)',
        "TOML, such as a declaration",
        f"use the file that it declares, of one of the formats {', '.join(FORMATS)}",
    ),
    (rb"GGUF", "a GGUF model", "use the vocabulary file that it was made from"),
    (rb"(?s).{4}\0{4}\{\"", "a safetensors file, which contains no vocabulary", _REMEDY),
)


@dataclass(frozen=True)
class Detected:
    """A detected format.

    Attributes:
        format: The format.
        root: The parsed content if it is JSON, which need not be parsed again; else None.
    """

    format: Format
    root: Node | None = None


def detect(data: bytes, source: str) -> Detected:
    """Detect the format of a file.

    This only distinguishes the formats. The reader of the format validates the file.

    Args:
        data: The content of the file, uncompressed.
        source: The name of the file, for errors.
    Raises:
        VocabularyError: The format is unknown, or the file is damaged JSON.
    """
    if not data:
        raise VocabularyError(source, "the file is empty", "fetch it again: it was cut off")
    for start, name, remedy in _OTHERS:
        if re.match(start, data):
            raise VocabularyError(source, f"it is {name}", remedy)
    if _RANK_LINE.match(data):
        return Detected("tiktoken")
    if data.startswith(b"#version"):
        return Detected("gpt2")
    if data.lstrip()[:1] in (b"{", b"["):
        return _json_format(read_json(data, source, _JSON_REMEDY))
    if _starts_as_sentencepiece(data):
        return Detected("sentencepiece")
    raise VocabularyError(source, "its format is unknown", _REMEDY)


def _json_format(root: Node) -> Detected:
    value = root.value
    if isinstance(value, dict):
        if isinstance(value.get("model"), dict):
            return Detected("tokenizer.json", root)
        if isinstance(value.get("config"), dict) and isinstance(value.get("vocab"), list):
            return Detected("tekken", root)
        if value and all(type(number) is int for number in value.values()):
            raise VocabularyError(
                root.source,
                "it is a table from token to id, like vocab.json and encoder.json, without its "
                "merges",
                "set file to merges.txt (or vocab.bpe), and encoder_file to this one",
            )
    raise VocabularyError(root.source, "it is JSON of an unknown format", _REMEDY)


def _starts_as_sentencepiece(data: bytes) -> bool:
    """Whether the first field can be a field of a model and contains a message."""
    try:
        number, kind, start, end = next(fields(data, 0, len(data)))
        return kind == "bytes" and number <= 5 and any(True for _ in fields(data, start, end))
    except (WireFault, StopIteration):
        return False
