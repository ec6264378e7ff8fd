"""Which encoding a model has, by tiktoken's published names and prefixes."""

from __future__ import annotations

from typing import Final

from bytepair_engine.tiktoken.core import Encoding
from bytepair_engine.tiktoken.registry import get_encoding
from bytepair_engine.vocabulary.aliases import MODELS, PREFIXES

#: Start of a model's name to the name of its encoding; the first that fits counts.
MODEL_PREFIX_TO_ENCODING: Final[dict[str, str]] = dict(PREFIXES)

#: A model's name to the name of its encoding.
MODEL_TO_ENCODING: Final[dict[str, str]] = {**MODELS, "gpt2": "gpt2", "gpt-2": "gpt2"}


def encoding_name_for_model(model_name: str) -> str:
    """The name of a model's encoding.

    Raises:
        KeyError: The name is unknown and starts with none of the prefixes.
    """
    if model_name in MODEL_TO_ENCODING:
        return MODEL_TO_ENCODING[model_name]
    for prefix, encoding_name in MODEL_PREFIX_TO_ENCODING.items():
        if model_name.startswith(prefix):
            return encoding_name
    raise KeyError(f"no encoding is known for the model {model_name!r}; use get_encoding")


def encoding_for_model(model_name: str) -> Encoding:
    """The encoding of a model; raises as `encoding_name_for_model` does."""
    return get_encoding(encoding_name_for_model(model_name))
