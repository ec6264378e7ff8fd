"""The length of a text in a unit of offsets."""

from __future__ import annotations

from bytepair_engine.backends.interface import OffsetUnit


def text_length(text: str, unit: OffsetUnit) -> int:
    """Return the length of a text.

    Args:
        text: Any text without lone surrogates.
        unit: The unit of the length.
    """
    if unit == "code_point" or text.isascii():
        return len(text)
    return len(text.encode()) if unit == "byte" else len(text.encode("utf-16-le")) // 2
