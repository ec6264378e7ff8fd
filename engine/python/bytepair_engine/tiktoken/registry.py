"""tiktoken's encodings by name, each made once."""

from __future__ import annotations

from typing import Final

from bytepair_engine import registry
from bytepair_engine.tiktoken.core import Encoding

#: Name in tiktoken to name in this engine.
_NAMES: Final = {"gpt2": "r50k_base"} | {name: name for name in registry.list_encodings()}

#: The encodings that were made, by name.
ENCODINGS: Final[dict[str, Encoding]] = {}


def get_encoding(encoding_name: str) -> Encoding:
    """Get an encoding.

    Returns:
        The same object at each call.
    Raises:
        ValueError: There is none of that name, or the name is no string.
    """
    if not isinstance(encoding_name, str):
        raise ValueError(f"the name of an encoding is a string, and not {type(encoding_name)}")
    found = ENCODINGS.get(encoding_name)
    if found is not None:
        return found
    if encoding_name not in _NAMES:
        raise ValueError(
            f"unknown encoding {encoding_name!r}; known: {', '.join(list_encoding_names())}"
        )
    encoding = Encoding.of(encoding_name, registry.get_encoding(_NAMES[encoding_name]))
    # Of two threads one wins, and both return its object.
    return ENCODINGS.setdefault(encoding_name, encoding)


def list_encoding_names() -> list[str]:
    """The names that `get_encoding` takes."""
    return list(_NAMES)
