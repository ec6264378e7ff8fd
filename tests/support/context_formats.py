"""Encodings of other formats than rank tables, and the libraries that say what their ids are."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from bytepair_engine import Encoding, EncodingSpec, load_encoding
from bytepair_engine.backends.cores import BackendName

from support import sentencepiece_models, tokenizer_json
from support.context_api import Cut, Encode
from support.context_laws import Count
from support.oracle import oracle

#: Files of tokenizer.json with a template: one becomes a rank table.
_FRAMED: Final = {
    "ranks, a template": "byte level",
    "a pipeline, a template": "spaces normalised",
}

#: Kinds of tokenizer.json, and models of SentencePiece.
OTHERS: Final = (*tokenizer_json.KINDS, *_FRAMED, *sentencepiece_models.MODELS)


def _is_model(name: str) -> bool:
    return name in sentencepiece_models.MODELS


def content(name: str) -> bytes:
    """The file of one of `OTHERS`."""
    if _is_model(name):
        return sentencepiece_models.trained(name)
    if name in _FRAMED:
        return tokenizer_json.framed(_FRAMED[name], tokenizer_json.template("<s> $A </s>"))
    return tokenizer_json.made(name)


def written(name: str, folder: Path) -> Path:
    """The file of one of `OTHERS`, in a folder."""
    file = folder / ("model.model" if _is_model(name) else "tokenizer.json")
    file.write_bytes(content(name))
    return file


def other(name: str, folder: Path, backend: BackendName | None = None) -> tuple[Encoding, Encode]:
    """One of `OTHERS`, and what gives the ids of its texts."""
    file = written(name, folder)
    encoding = load_encoding(EncodingSpec(name="made", file=file), backend=backend)
    return encoding, encode_of(name)


def encode_of(name: str) -> Encode:
    """What the library of its format gives. SentencePiece never encodes special tokens."""
    if _is_model(name):
        model = sentencepiece_models.oracle(content(name))

        def by_model(
            text: str, /, *, special: frozenset[str] = frozenset(), template: bool = False
        ) -> list[int]:
            assert not special
            return list(model.encode(text))

        return by_model
    tokenizer = tokenizer_json.oracle_of(content(name))

    def encode(
        text: str, /, *, special: frozenset[str] = frozenset(), template: bool = False
    ) -> list[int]:
        tokenizer.encode_special_tokens = not special
        return list(tokenizer.encode(text, add_special_tokens=template).ids)

    return encode


def oracle_of(name: str) -> Encode:
    """What tiktoken gives for a built-in encoding."""
    tiktoken = oracle(name)

    def encode(
        text: str, /, *, special: frozenset[str] = frozenset(), template: bool = False
    ) -> list[int]:
        return tiktoken.encode(text, allowed_special=set(special), disallowed_special=())

    return encode


def counts(encode: Encode, cut: Cut) -> Count:
    """The tokens of a text under the options of a request."""
    return lambda text: len(encode(text, special=cut.allowed, template=cut.template))
