"""tiktoken's encodings by name, cached."""

from __future__ import annotations

from typing import Final

from bytepair_engine import registry
from bytepair_engine.tiktoken.core import Encoding

#: Name in tiktoken to name in this engine.
_NAMES: Final = {"gpt2": "r50k_base"} | {name: name for name in registry.list_encodings()}

#: The encodings created so far, by name.
ENCODINGS: Final[dict[str, Encoding]] = {}


def get_encoding(encoding_name: str) -> Encoding:
    """Get an encoding.

    Returns:
        The same object for the same name.
    Raises:
        ValueError: The name is unknown or not a string.
    """
    if not isinstance(encoding_name, str):
        raise ValueError(f"encoding_name must be a string, not {type(encoding_name)}")
    found = ENCODINGS.get(encoding_name)
    if found is not None:
        return found
    if encoding_name not in _NAMES:
        raise ValueError(
            f"unknown encoding {encoding_name!r}; known: {', '.join(list_encoding_names())}"
        )
    encoding = Encoding.of(encoding_name, registry.get_encoding(_NAMES[encoding_name]))
    # If two threads create it, both return the first object.
    return ENCODINGS.setdefault(encoding_name, encoding)


def list_encoding_names() -> list[str]:
    """Return the names that `get_encoding` accepts."""
    return list(_NAMES)
