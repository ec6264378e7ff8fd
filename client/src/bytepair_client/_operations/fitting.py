"""What the operations on text that must fit share."""

from __future__ import annotations

from typing import Any, Final, Literal

from bytepair.v1 import context_pb2, text_pb2

from bytepair_client._options import checked_limit, invalid
from bytepair_client._text import set_text

Level = Literal["code_point", "grapheme", "word", "sentence", "line", "paragraph"]

PREFIX: Final = "CUT_LEVEL_"
CODE_POINT: Final = text_pb2.OFFSET_UNIT_CODE_POINT


def set_one_text(request: Any, text: object) -> None:
    """Put a text into a request that has no segments. Raises as `set_text`."""
    if not isinstance(text, str):
        raise TypeError(f"text: a str, not {type(text).__name__}")
    set_text(request, text)


def tokens(option: str, value: int) -> int:
    """A number of tokens for a request. Raises InvalidOption for a negative one."""
    if value < 0:
        raise invalid(option, f"0 or more, and not {value}")
    return checked_limit(value) or 0


def wire_level(level: str) -> context_pb2.CutLevel:
    """The level of a request. Raises InvalidOption for none of `Level`."""
    name = f"{PREFIX}{level.upper()}"
    if name not in context_pb2.CutLevel.keys() or level == "unspecified":  # noqa: SIM118
        levels = [name.removeprefix(PREFIX).lower() for name in context_pb2.CutLevel.keys()[1:]]
        raise invalid("level", f"one of {', '.join(levels)}")
    found: Any = context_pb2.CutLevel.Value(name)
    value: context_pb2.CutLevel = found
    return value
