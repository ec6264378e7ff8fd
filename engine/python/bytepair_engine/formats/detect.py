"""Detect the format of a vocabulary file by its content, never by its name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

from bytepair_engine.errors import VocabularyError
from bytepair_engine.formats.json_file import Node, read_json
from bytepair_engine.formats.protobuf_wire import WireFault, fields

Format = Literal["tiktoken", "gpt2", "tekken", "sentencepiece", "tokenizer.json"]

#: Every format, and what a person calls it.
FORMATS: Final[dict[Format, str]] = {
    "tiktoken": "a rank file in tiktoken's format",
    "gpt2": "GPT-2's merges, whose ids are in another file",
    "tekken": "a Tekken file of Mistral's",
    "sentencepiece": "a SentencePiece model",
    "tokenizer.json": "a tokenizer.json of HuggingFace's tokenizers",
}

_REMEDY: Final = f"give a file of one of the formats {', '.join(FORMATS)}"
_JSON_REMEDY: Final = "check that this is a vocabulary file, and that it is whole"
_RANK_LINE: Final = re.compile(rb"[A-Za-z0-9+/]+=* [0-9]+\r?(\n|$)")

#: How other files start that are found in a vocabulary's place, and what to do then.
_OTHERS: Final = (
    (
        rb"version https://git-lfs\.",
        "a pointer of Git LFS, and not the file",
        "fetch the file: git lfs pull",
    ),
    (rb"(?i)\s*<(!doctype|html|\?xml)", "a web page", "fetch the file itself"),
    (rb"PK\x03\x04", "a ZIP archive", "unpack it first"),
    (rb"\x80[\x02-\x05]", "a Python pickle, which is never loaded", _REMEDY),
    (rb"GGUF", "a GGUF model", "give the vocabulary file that it was made from"),
    (rb"(?s).{8}\{\"", "a safetensors file, which holds no vocabulary", _REMEDY),
)


@dataclass(frozen=True)
class Detected:
    """What a file is.

    Attributes:
        format: Its format.
        root: Its content, if it is JSON: so that it is parsed once.
    """

    format: Format
    root: Node | None = None


def detect(data: bytes, source: str) -> Detected:
    """Say what a file is.

    Only as much is looked at as tells the formats apart: whether the file is a sound one of its
    format is for that format's reader to say.

    Args:
        data: The whole file, uncompressed.
        source: Its name, for errors.
    Raises:
        VocabularyError: It is of no known format, or it is JSON and damaged.
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
                "it is a table from token to id, as vocab.json and encoder.json are, which needs "
                "its merges",
                "give merges.txt (or vocab.bpe) as file, and this one as encoder_file",
            )
    raise VocabularyError(root.source, "it is JSON of an unknown format", _REMEDY)


def _starts_as_sentencepiece(data: bytes) -> bool:
    """Whether the first field can be one of a model's, and all of it can be a message."""
    try:
        number, kind, start, end = next(fields(data, 0, len(data)))
        return kind == "bytes" and number <= 5 and any(True for _ in fields(data, start, end))
    except (WireFault, StopIteration):
        return False
