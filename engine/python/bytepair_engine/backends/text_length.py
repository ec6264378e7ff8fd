"""How long a text is, in each unit of offsets."""

from __future__ import annotations

from bytepair_engine.backends.interface import OffsetUnit


def text_length(text: str, unit: OffsetUnit) -> int:
    """The length of a text.

    Args:
        text: Without lone surrogates.
        unit: What is counted.
    """
    if unit == "code_point" or text.isascii():
        return len(text)
    return len(text.encode()) if unit == "byte" else len(text.encode("utf-16-le")) // 2
