"""The text of the benchmark: English from the corpora if they are there, or repeated prose."""

from __future__ import annotations

from functools import cache

from bench.texts import english

_PROSE = "The river ran high that spring, and 47 of the old boats – naïvely moored – were lost. "


def prose(size: int, start: int = 0) -> str:
    """Text of at most `size` bytes of UTF-8, and less by no more than one character.

    Args:
        size: In bytes.
        start: How many bytes of the text to leave out in front.
    """
    data = _all()
    repeated = data * ((start + size) // len(data) + 1)
    return repeated[start : start + size].decode(errors="ignore")


@cache
def _all() -> bytes:
    return english() or _PROSE.encode()
