"""Encodings of other formats than rank tables, and the libraries that say what their ids are."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from bytepair_engine import Encoding, EncodingSpec, load_encoding
from bytepair_engine.backends.cores import BackendName

from support import sentencepiece_models, tokenizer_json
from support.context_api import Encode

#: Kinds of tokenizer.json, and models of SentencePiece.
OTHERS: Final = (*tokenizer_json.KINDS, *sentencepiece_models.MODELS)


def written(name: str, folder: Path) -> Path:
    """The file of one of `OTHERS`, in a folder."""
    is_json = name in tokenizer_json.KINDS
    file = folder / ("tokenizer.json" if is_json else "model.model")
    content = tokenizer_json.made(name) if is_json else sentencepiece_models.trained(name)
    file.write_bytes(content)
    return file


def other(name: str, folder: Path, backend: BackendName | None = None) -> tuple[Encoding, Encode]:
    """One of `OTHERS`, and what gives the ids of ordinary text."""
    file = written(name, folder)
    encoding = load_encoding(EncodingSpec(name="made", file=file), backend=backend)
    return encoding, encode_of(name)


def encode_of(name: str) -> Encode:
    """What the library of its format gives for ordinary text."""
    if name in tokenizer_json.KINDS:
        oracle = tokenizer_json.oracle_of(tokenizer_json.made(name))
        oracle.encode_special_tokens = True  # those that a text contains stay text
        return lambda text: list(oracle.encode(text, add_special_tokens=False).ids)
    model = sentencepiece_models.oracle(sentencepiece_models.trained(name))
    return lambda text: list(model.encode(text))
