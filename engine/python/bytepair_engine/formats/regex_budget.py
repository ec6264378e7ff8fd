"""A time limit for the regular expressions of a file while it is loaded.

For texts, the core runs regular expressions in bounded time. While a file is loaded, a library that
backtracks applies those of normalisers to added tokens, and those of decoders to all tokens.
"""

from __future__ import annotations

from time import monotonic
from typing import Final

import regex

from bytepair_engine.formats.json_file import Node

#: Time limit in seconds for all tokens together. Published files take a thousandth of it.
SECONDS: Final = 5.0


class RegexBudget:
    """The remaining time of one file."""

    def __init__(self, seconds: float = SECONDS) -> None:
        """Start with all of the time."""
        self._left = seconds

    def replaced(self, node: Node, pattern: regex.Pattern[str], text: str, content: str) -> str:
        """Replace each match in `text` by `content`.

        Raises:
            VocabularyError: The time is over; the error has the path of `node`.
        """
        start = monotonic()
        try:
            # A timeout of 0 would mean no timeout.
            result = pattern.sub(lambda _: content, text, timeout=max(self._left, 1e-3))
        except TimeoutError:
            node.reject(
                f"its regular expression takes more than {SECONDS:g} seconds for the tokens of the "
                "vocabulary, because it backtracks"
            )
        self._left -= monotonic() - start
        return result
