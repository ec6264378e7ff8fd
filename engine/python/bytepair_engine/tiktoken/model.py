"""The encoding of a model, by tiktoken's published names and prefixes."""

from __future__ import annotations

from typing import Final

from bytepair_engine.tiktoken.core import Encoding
from bytepair_engine.tiktoken.registry import get_encoding
from bytepair_engine.vocabulary.aliases import MODELS, PREFIXES

#: Prefix of a model name to the name of its encoding; the first match is used.
MODEL_PREFIX_TO_ENCODING: Final[dict[str, str]] = dict(PREFIXES)

#: Model name to the name of its encoding.
MODEL_TO_ENCODING: Final[dict[str, str]] = {**MODELS, "gpt2": "gpt2", "gpt-2": "gpt2"}


def encoding_name_for_model(model_name: str) -> str:
    """Return the name of a model's encoding.

    Raises:
        KeyError: The model name is unknown and has no known prefix.
    """
    if model_name in MODEL_TO_ENCODING:
        return MODEL_TO_ENCODING[model_name]
    for prefix, encoding_name in MODEL_PREFIX_TO_ENCODING.items():
        if model_name.startswith(prefix):
            return encoding_name
    raise KeyError(f"no encoding is known for the model {model_name!r}; use get_encoding")


def encoding_for_model(model_name: str) -> Encoding:
    """Return the encoding of a model; errors are those of `encoding_name_for_model`."""
    return get_encoding(encoding_name_for_model(model_name))
